//! What is made of a distributed value is remembered for that value, and for no other.
//!
//! An array is known as an input by where it came from, not by its elements. So whatever may have an
//! app return another array under the key of an earlier one must be part of what it is known by.

use std::path::Path;

use sde::{
    App, AppError, AppInfo, DistArray, EventLog, Fingerprint, Handle, Inputs, Policy, ResultMap,
    ResultSpec, Sde, Source, Tag, inputs,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::restart::with_store;
use super::{Ranks, all_are, names};

/// An app that a maker calls, in no slot of it.
#[derive(Clone, Fingerprint)]
struct Helper(#[fingerprint(skip)] &'static str);

impl App for Helper {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.origins.helper", self.0).result(ResultSpec::new::<u64>("x"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("x", *inputs.get::<u64>("x")?))
    }
}

/// Makes an array of 24 equal numbers. Which they are is in no key: as if the helper had another version.
#[derive(Clone, Fingerprint)]
struct Maker {
    #[fingerprint(skip)]
    says: f64,
    #[fingerprint(skip)]
    helper: Helper,
    /// Whether each rank calls the helper for itself only.
    is_uneven: bool,
    is_random: bool,
}

impl Maker {
    fn of(says: f64) -> Self {
        Self {
            says,
            helper: Helper("1"),
            is_uneven: false,
            is_random: false,
        }
    }
}

impl App for Maker {
    fn info(&self) -> AppInfo {
        let array = ResultSpec::distributed::<DistArray<f64>>("array");
        let info = AppInfo::new("ranks.origins.maker", "1")
            .distributed()
            .result(array.tagged(Tag::Intermediate | Tag::Distributed));
        match self.is_random {
            true => info.nondeterministic(),
            false => info,
        }
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let rank = sde.rank()?;
        if !self.is_uneven || rank + 1 == sde.ranks()? {
            sde.run(&self.helper, &inputs! { x: rank as u64 })?;
        }
        let array = DistArray::from_fn(sde, &[12, 2], |_| self.says)?;
        Ok(ResultMap::new().with("array", array))
    }
}

#[sde::app(name = "ranks.origins.sum", distributed)]
fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    let mine: f64 = array.local().iter().sum();
    Ok(sde.gather("sums", mine)?.iter().map(|one| **one).sum())
}

/// The sum of what a maker makes.
fn sum_of(sde: &Sde, maker: &Maker, policy: Policy) -> f64 {
    // As linking it would show it.
    sde.peek(&maker.helper, &inputs! { x: 0_u64 }).unwrap();
    let inputs = inputs! {};
    let made = sde.request(maker, &inputs).policy(policy).run().unwrap();
    let array = made.results.get::<DistArray<f64>>("array").unwrap();
    *sum.call(sde, &array).unwrap()
}

/// A program over a store.
fn program<R: Serialize + DeserializeOwned>(
    ranks: Ranks<'_>,
    store: &Path,
    program: impl Fn(&Sde, &EventLog) -> R + Sync,
) -> Vec<R> {
    with_store(ranks, store, |sde, log| {
        let returned = program(sde, log);
        sde.finish().unwrap();
        returned
    })
}

/// Found by a program of which a function was edited that the maker of an array called: the array was
/// made anew, a hundred times as large, and its sum was still said to be 24.
pub(super) fn an_edit_beneath_the_maker_has_what_was_made_of_it_made_anew(ranks: Ranks<'_>) {
    // Also where the function that was edited is called by one rank alone.
    for is_uneven in [false, true] {
        let folder = ranks.folder();
        let store = folder.path().join("store");
        for (version, says, expected) in [("1", 1.0, 24.0), ("2", 100.0, 2400.0)] {
            let sums = program(ranks, &store, |sde, _| {
                let maker = Maker {
                    helper: Helper(version),
                    is_uneven,
                    ..Maker::of(says)
                };
                sum_of(sde, &maker, Policy::Use)
            });
            assert_eq!(sums, vec![expected; ranks.size()], "{is_uneven}");
        }
    }
}

/// Found by a program that had its array made anew, and was told the sum of the one before.
pub(super) fn a_refreshed_array_is_another(ranks: Ranks<'_>) {
    let sums = ranks.run(|sde| {
        [
            sum_of(&sde, &Maker::of(1.0), Policy::Use),
            sum_of(&sde, &Maker::of(10.0), Policy::Bypass),
            sum_of(&sde, &Maker::of(1.0), Policy::Use),
            sum_of(&sde, &Maker::of(100.0), Policy::Refresh),
            sum_of(&sde, &Maker::of(100.0), Policy::Use),
        ]
    });
    assert_eq!(
        sums,
        vec![[24.0, 240.0, 24.0, 2400.0, 2400.0]; ranks.size()]
    );
}

/// Of what took the place of another only the record is left, here and in an archive: it is made again, and what was
/// made of the first is not used for it.
pub(super) fn an_array_that_was_refreshed_and_is_gone_is_not_the_first_again(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let (store, archive) = (folder.path().join("store"), folder.path().join("archive"));
    let sums = program(ranks, &store, |sde, _| {
        let first = sum_of(sde, &Maker::of(1.0), Policy::Use);
        sum_of(sde, &Maker::of(100.0), Policy::Refresh);
        sde.archive_to(&archive).unwrap();
        first
    });
    assert_eq!(sums, vec![24.0; ranks.size()]);
    let sums = program(ranks, &archive, |sde, log| {
        let again = sum_of(sde, &Maker::of(100.0), Policy::Use);
        assert_eq!(log.sources("ranks.origins.maker"), [Source::Computed]);
        again
    });
    assert_eq!(sums, vec![2400.0; ranks.size()]);
    let sums = ranks.run(|sde| {
        let first = sum_of(&sde, &Maker::of(1.0), Policy::Use);
        sum_of(&sde, &Maker::of(100.0), Policy::Refresh);
        sde.clear_app("ranks.origins.maker").unwrap();
        [first, sum_of(&sde, &Maker::of(100.0), Policy::Use)]
    });
    assert_eq!(sums, vec![[24.0, 2400.0]; ranks.size()]);
}

/// The array itself was not refreshed, and had to be made again for another reason.
pub(super) fn an_array_made_of_what_was_refreshed_is_another(ranks: Ranks<'_>) {
    let sums = ranks.run(|sde| {
        let first = sum_of(&sde, &Maker::of(1.0), Policy::Use);
        let inputs = inputs! { x: sde.rank().unwrap() as u64 };
        let asked = sde.request(&Helper("1"), &inputs);
        asked.policy(Policy::Refresh).run().unwrap();
        sde.clear_app("ranks.origins.maker").unwrap();
        [first, sum_of(&sde, &Maker::of(100.0), Policy::Use)]
    });
    assert_eq!(sums, vec![[24.0, 2400.0]; ranks.size()]);
}

/// Found by a user who had said that an array was wrong: what had been made of it was still used, here
/// and in programs that went on from there.
pub(super) fn an_array_made_in_place_of_a_wrong_one_is_another(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    for (is_wrong, says, expected) in [
        (false, 1.0, 24.0),
        (true, 100.0, 2400.0),
        (false, 100.0, 2400.0),
    ] {
        let sums = program(ranks, &store, |sde, _| {
            let key = sde.peek(&Maker::of(says), &inputs! {}).unwrap().key();
            if is_wrong {
                sde.invalidate(&key, "it was wrong").unwrap();
            }
            // None is made before all have said so.
            sde.gather("said", is_wrong).unwrap();
            sum_of(sde, &Maker::of(says), Policy::Use)
        });
        assert_eq!(sums, vec![expected; ranks.size()]);
    }
}

/// Found by a program that drew an array twice, and was given the sum of the first for both.
pub(super) fn each_array_that_is_drawn_is_another(ranks: Ranks<'_>) {
    let sums = ranks.run(|sde| {
        [1.0, 100.0].map(|says| {
            let maker = Maker {
                is_random: true,
                ..Maker::of(says)
            };
            sum_of(&sde, &maker, Policy::Use)
        })
    });
    assert_eq!(sums, vec![[24.0, 2400.0]; ranks.size()]);
}

/// An array that had to be made again, as it was, is the one that it was: also for any other number of
/// ranks.
pub(super) fn an_array_that_is_made_again_is_the_same(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let sources = |ranks: Ranks<'_>, store: &Path| {
        let told = program(ranks, store, |sde, log| {
            assert_eq!(sum_of(sde, &Maker::of(1.0), Policy::Use), 24.0);
            ["maker", "sum"].map(|app| names(log.sources(&format!("ranks.origins.{app}"))))
        });
        all_are(&told, &told[0]);
        told[0].concat()
    };
    let got = sources(ranks.resized(3), &store);
    assert_eq!(got, names([Source::Computed, Source::Computed]));
    for size in [2, 1, 4] {
        let got = sources(ranks.resized(size), &store);
        assert_eq!(got, names([Source::Loaded, Source::Loaded]));
    }
    // Arrays are intermediates here, so an archive has none.
    for size in [3, 1] {
        let archive = folder.path().join(format!("archive {size}"));
        program(ranks, &store, |sde, _| sde.archive_to(&archive).unwrap());
        let got = sources(ranks.resized(size), &archive);
        assert_eq!(got, names([Source::Computed, Source::Loaded]));
    }
}
