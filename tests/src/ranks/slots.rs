//! Apps that say nothing of ranks, with distributed apps in their slots.

use super::{Ranks, all_are, names};
use crate::{Made, assert_kind, made, number, number_info, says, x, y};
use sde::store::DirStore;
use sde::{
    AppInfo, Builder, DistArray, Error, Handle, Instance, ResultMap, ResultSpec, SavePolicy, Sde,
    Slot, Source, SubApp, inputs,
};

/// The sum of what all ranks give.
fn sum() -> Made {
    let sum = number("ranks.slots.sum", |sde, x| {
        Ok(sde.gather("numbers", x)?.iter().map(|one| **one).sum())
    });
    sum.described(AppInfo::distributed)
}

fn ordinary() -> Made {
    number("ranks.slots.ordinary", |_, x| Ok(x))
}

/// One more than what the app in its slot makes of a number.
fn outer(inner: impl Into<SubApp>) -> Instance {
    let info = number_info("ranks.slots.outer", "1").slot(Slot::new("inner", ordinary()));
    let outer = made(info, |sde, inputs| {
        let of_inner = y(&sde.run(&sde.sub_app("inner")?, inputs)?)?;
        Ok(ResultMap::new().with("y", of_inner + 1))
    });
    Instance::new(outer).fill("inner", inner).unwrap()
}

fn run(sde: &Handle, app: &Instance, of: u64) -> u64 {
    y(&sde.run(app, &x(of)).unwrap()).unwrap()
}

/// Found by reading: such an app was an error that named the app in the slot, whoever called it.
pub(super) fn an_app_that_slots_a_distributed_one_is_run_by_all_ranks(ranks: Ranks<'_>) {
    let size = ranks.size() as u64;
    let sources = ranks.run_with_log(|sde, log| {
        let rank = sde.rank().unwrap();
        let (flat, nested) = (outer(sum()), outer(outer(sum())));
        assert_eq!(run(&sde, &flat, 4), 4 * size + 1);
        assert_eq!(run(&sde, &nested, 5), 5 * size + 2);
        // What a name leads to counts.
        sde.apps().register("chosen", sum()).unwrap();
        assert_eq!(run(&sde, &outer("chosen"), 4), 4 * size + 1);
        // It is a hit only where all hit.
        if rank == 0 {
            sde.clear_app("ranks.slots.outer").unwrap();
        }
        assert_eq!(run(&sde, &flat, 4), 4 * size + 1);
        // With an ordinary app in the slot each rank runs it for itself.
        if rank == 0 {
            assert_eq!(run(&sde, &outer(ordinary()), 4), 5);
        }
        sde.finish().unwrap();
        let keys = [flat, nested].map(|app| {
            let key = sde.peek(&app, &x(4)).unwrap().key();
            assert_eq!(key, Sde::new().peek(&app, &x(4)).unwrap().key());
            key.to_string()
        });
        let mut sources = names(log.sources("ranks.slots.outer"));
        sources.truncate(5);
        (sources, keys)
    });
    all_are(&sources, &sources[0]);
    let computed = Source::Computed;
    // The nested app runs one that it slots.
    let expected = [computed, computed, computed, Source::Memory, computed];
    assert_eq!(sources[0].0, names(expected));
    // In a program without ranks too.
    assert_eq!(run(&Sde::new(), &outer(outer(sum())), 4), 6);
}

pub(super) fn what_it_returned_goes_with_the_ranks(ranks: Ranks<'_>) {
    let half = ranks.size() as u64 / 2;
    let sources = ranks.run_with_log(|sde, log| {
        let app = outer(sum());
        let of_half = |sde: &Handle, of: u64| assert_eq!(run(sde, &app, of), of * half + 1);
        let color = u64::from(sde.rank().unwrap() as u64 >= half);
        sde.split_for(color as u32, 0, |part| {
            of_half(part, color);
            Ok(())
        })
        .unwrap();
        of_half(&sde, 0);
        of_half(&sde, 1);
        names(log.sources("ranks.slots.outer"))
    });
    all_are(
        &sources,
        &names([Source::Computed, Source::Memory, Source::Memory]),
    );
}

#[sde::app(name = "ranks.slots.line", distributed)]
fn line(sde: &Handle, size: usize) -> Result<DistArray<f64>, Error> {
    DistArray::from_fn(sde, &[size], |at| at[0] as f64)
}

#[sde::app(name = "ranks.slots.total", distributed)]
fn total(sde: &Handle, array: &DistArray<f64>) -> Result<f64, Error> {
    array.sum(sde)
}

/// An ordinary app that was given one rank's part would take it for the whole.
pub(super) fn an_array_may_be_its_input(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let info = AppInfo::new("ranks.slots.doubled", "1").slot(Slot::new("total", total));
        let doubled = made(info.result(ResultSpec::new::<f64>("y")), |sde, inputs| {
            let results = sde.run(&sde.sub_app("total")?, inputs)?;
            Ok(ResultMap::new().with("y", 2.0 * *results.get::<f64>("result")?))
        });
        let inputs = inputs! { array: line.call(&sde, 8).unwrap() };
        let results = sde.run(&doubled, &inputs).unwrap();
        assert_eq!(*results.get::<f64>("y").unwrap(), 56.0);
    });
}

pub(super) fn what_three_ranks_saved_of_it_any_number_of_ranks_loads(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let path = folder.path().join("store");
    let program = |builder: Builder| {
        let store = DirStore::open(&path).unwrap();
        let builder = builder.store(store).save(SavePolicy::EveryResult);
        let sde = builder.build().unwrap();
        // As three ranks make it.
        assert_eq!(run(&sde, &outer(sum()), 4), 13);
        sde.finish().unwrap();
    };
    for size in [3, 1, 2, 4] {
        ranks
            .resized(size)
            .run_ranks(|rank| program(rank.join(Sde::builder())));
    }
    ranks.once(|| program(Sde::builder()));
}

#[sde::app(name = "ranks.slots.rank", distributed)]
fn rank_of(sde: &Handle, x: u64) -> Result<u64, Error> {
    Ok(sde.ranks()? as u64 + x)
}

/// Each item failed with an error that said nothing of what to do instead.
pub(super) fn par_map_refuses_what_all_ranks_run_and_says_why(ranks: Ranks<'_>) {
    let check = |sde: &Handle| {
        let list = [x(1), x(2)];
        for (app, why) in [
            (
                outer(sum()),
                "ranks.slots.outer has the distributed ranks.slots.sum in its slots",
            ),
            (
                outer(outer(sum())),
                "the distributed ranks.slots.sum in its slots",
            ),
            (Instance::new(sum()), "ranks.slots.sum"),
        ] {
            for refused in sde.par_map(&app, &list) {
                let error = refused.unwrap_err();
                assert_kind!(error, RunTogether);
                says(&error, why);
                says(&error, "`split_for`");
            }
        }
        let each = rank_of.par_call_each(sde, [1, 2], |_, _| -> () { unreachable!() });
        for error in [rank_of.par_call(sde, [1, 2]).map(drop), each] {
            let error = error.unwrap_err();
            says(&error, "ranks.slots.rank is `distributed`");
            says(&error, "`split_for`");
        }
        assert!(
            sde.par_map(&outer(ordinary()), &list)
                .iter()
                .all(Result::is_ok)
        );
    };
    ranks.run(|sde| check(&sde));
    check(&Sde::new());
}

/// Found by reading: the error named the distributed app as the one that has to be declared so.
pub(super) fn who_calls_one_is_named_as_who_has_to_be_distributed(ranks: Ranks<'_>) {
    let check = |sde: &Handle| {
        let error = sde.run(&caller(), &x(1)).unwrap_err();
        let error = error.app_error::<Error>().unwrap();
        assert_kind!(error, NotDistributed);
        says(error, "ranks.slots.caller [");
        says(
            error,
            "runs ranks.slots.outer, which has the distributed ranks.slots.sum in its slots",
        );
        says(error, "declare ranks.slots.caller `distributed`");
        // What that says is what helps.
        let declared = caller().described(AppInfo::distributed);
        assert!(sde.run(&declared, &x(1)).is_ok());
    };
    ranks.run(|sde| check(&sde));
    check(&Sde::new());
}

fn caller() -> Made {
    number("ranks.slots.caller", |sde, of| {
        Ok(y(&sde.run(&outer(sum()), &x(of))?)?)
    })
}
