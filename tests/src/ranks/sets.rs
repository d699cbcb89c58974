//! Splitting the ranks, and releasing them.

use super::{Ranks, names};
use crate::{assert_kind, says};
use sde::ranks::Transfer;
use sde::store::DirStore;
use sde::{ErrorKind, EventLog, Policy, Sde, Source, inputs};

#[sde::app(name = "ranks.sets.square")]
fn square(x: u64) -> u64 {
    x * x
}

#[sde::app(name = "ranks.sets.array")]
fn array(length: u64) -> Vec<f64> {
    (0..length).map(|n| n as f64).collect()
}

#[sde::app(name = "ranks.sets.held", tags(no_cache))]
fn held(x: u64) -> u64 {
    x + 1
}

#[sde::app(name = "ranks.sets.dice", nondeterministic)]
fn dice(rank: u64) -> u64 {
    rank + 100
}

#[sde::app(name = "ranks.sets.nested")]
fn nested(sde: &sde::Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(*square.call(sde, x)? + 1)
}

/// What a part has computed, all have after it is released: the nested runs too, and
/// each value is sent once.
pub(super) fn what_a_part_computes_all_have_when_it_is_released(ranks: Ranks<'_>) {
    let computed = ranks.run_with_log(|sde, log| {
        let rank = sde.rank().unwrap() as u64;
        let half = sde.split((rank / 2) as u32, 0).unwrap();
        let got = (half.rank().unwrap(), half.ranks().unwrap());
        assert_eq!(got, (rank as usize % 2, 2));
        nested.call(&half, rank / 2).unwrap();
        half.release().unwrap();
        let computed = sde.stats().total.computed;
        let _ = log.take();
        for x in 0..2 {
            assert_eq!(*nested.call(&sde, x).unwrap(), x * x + 1);
            assert_eq!(*square.call(&sde, x).unwrap(), x * x);
        }
        assert_eq!(
            log.started("ranks.sets.nested") + log.started("ranks.sets.square"),
            0
        );
        computed
    });
    assert_eq!(computed, [2, 2, 2, 2]);
}

pub(super) fn sets_nest_and_are_released_in_order(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap() as u64;
        let half = sde.split((rank / 2) as u32, 0).unwrap();
        let alone = half.split((rank % 2) as u32, 0).unwrap();
        assert_eq!(alone.ranks().unwrap(), 1);
        square.call(&alone, rank).unwrap();
        alone.release().unwrap();
        let other = rank ^ 1;
        assert_eq!(*square.call(&half, other).unwrap(), other * other);
        half.release().unwrap();
        for x in 0..4 {
            assert_eq!(*square.call(&sde, x).unwrap(), x * x);
        }
        assert_eq!(sde.stats().total.computed, 1);
        sde.finish().unwrap();
    });
}

/// In the order of keys, not of ranks.
pub(super) fn a_split_orders_its_ranks(ranks: Ranks<'_>) {
    let places = ranks.run(|sde| {
        let rank = sde.rank().unwrap() as i64;
        let part = sde.split(0, -rank).unwrap();
        let place = part.rank().unwrap();
        part.release().unwrap();
        place
    });
    assert_eq!(places, [2, 1, 0]);
}

pub(super) fn a_handle_of_a_released_set_is_an_error(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let part = sde.split(0, 0).unwrap();
        let kept = (*part).clone();
        let error = sde.split(0, 0).unwrap_err();
        assert_kind!(error, IsSplit);
        part.release().unwrap();
        let error = square.call(&kept, 3).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Released), "{error}");
        assert!(kept.rank().is_err());
        assert_eq!(*square.call(&sde, 3).unwrap(), 9);
    });
}

pub(super) fn the_closure_form_releases_after_an_error_and_a_panic_too(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap() as u64;
        let x = sde
            .split_for(rank as u32, 0, |part| square.call(part, 5 + rank))
            .unwrap();
        assert_eq!(*x, (5 + rank) * (5 + rank));
        let error = sde
            .split_for(0, 0, |part| part.run("nobody", &inputs! {}).map(drop))
            .unwrap_err();
        assert_kind!(error, UnknownApp);
        assert_eq!(*square.call(&sde, 6).unwrap(), 36);
        assert_eq!(sde.stats().total.computed, 1);
    });
}

/// One that is dropped without a release holds up nobody: the others get an error.
pub(super) fn a_part_that_is_dropped_is_an_error_where_the_others_release(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let part = sde.split(0, 0).unwrap();
        let error = match sde_is_first(&part) {
            true => {
                drop(part);
                sde.gather("numbers", 1_u64).map(drop).unwrap_err()
            }
            false => part.release().unwrap_err(),
        };
        assert_kind!(error, Disagree);
        // Nothing is broken by that.
        assert_eq!(sde.gather("numbers", 1_u64).unwrap().len(), 2);
        format!("{error:#}")
    });
    assert_eq!(texts[0], texts[1]);
    says(&texts[0], "rank 0 gathers numbers, rank 1 releases");
}

/// The others of its part may wait for it there, and it waits for them where the part is released.
pub(super) fn an_error_on_one_rank_of_a_part_reaches_the_others(ranks: Ranks<'_>) {
    let ended = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let ended = sde.split_for((rank / 2) as u32, 0, |part| {
            if rank == 0 {
                return part.run("nobody", &inputs! {}).map(|_| 0);
            }
            Ok(part.gather("ranks", rank as u64)?.len())
        });
        // Nothing is broken by that.
        assert_eq!(sde.gather("ranks", rank as u64).unwrap().len(), 4);
        ended.map_err(|error| format!("{error:#}"))
    });
    assert!(
        ended[0].as_ref().is_err_and(|e| e.contains("nobody")),
        "{ended:?}"
    );
    assert!(
        ended[1].as_ref().is_err_and(|e| e.contains("rank 0")),
        "{ended:?}"
    );
    assert_eq!(ended[2..], [Ok(2), Ok(2)]);
}

/// A handle that is kept keeps nobody waiting.
pub(super) fn a_part_that_is_dropped_while_its_handle_lives_holds_up_nobody(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let part = sde.split(0, 0).unwrap();
        let kept = (*part).clone();
        let error = match sde_is_first(&part) {
            true => {
                drop(part);
                sde.gather("numbers", 1_u64).map(drop).unwrap_err()
            }
            false => {
                let error = kept.gather("numbers", 1_u64).map(drop).unwrap_err();
                assert!(part.release().is_err());
                error
            }
        };
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Disagree { .. } | ErrorKind::Ranks { .. }
            ),
            "{error}"
        );
    });
}

/// Not even when a part of it is released after it.
pub(super) fn a_released_set_does_not_come_to_life_again(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let outer = sde.split(0, 0).unwrap();
        let kept = (*outer).clone();
        let inner = outer.split(rank as u32, 0).unwrap();
        let error = outer.release().unwrap_err();
        says(&error, "split");
        assert!(matches!(
            kept.rank().unwrap_err().kind(),
            ErrorKind::Released
        ));
        let error = inner.release().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Released), "{error}");
        assert!(matches!(
            kept.rank().unwrap_err().kind(),
            ErrorKind::Released
        ));
        assert!(kept.split(0, 0).is_err());
        assert!(sde.gather("ranks", rank as u64).is_ok());
    });
}

fn sde_is_first(sde: &sde::Handle) -> bool {
    sde.rank().unwrap() == 0
}

/// What is too large stays where it is, and is computed where it is needed.
pub(super) fn values_that_are_too_large_or_not_wanted_do_not_move(ranks: Ranks<'_>) {
    for (transfer, moves) in [
        (Transfer::all(), [true, true]),
        (Transfer::all().at_most(100_000), [true, false]),
        (
            Transfer::all().only(|app, _, _| app != "ranks.sets.square"),
            [false, true],
        ),
    ] {
        let sources = ranks.run_with_log(|sde, log| {
            let rank = sde.rank().unwrap();
            let part = sde.split(rank as u32, 0).unwrap();
            if rank == 0 {
                square.call(&part, 2).unwrap();
                array.call(&part, 20_000).unwrap();
            }
            part.release_with(&transfer).unwrap();
            let _ = log.take();
            square.call(&sde, 2).unwrap();
            assert_eq!(array.call(&sde, 20_000).unwrap()[19_999], 19_999.0);
            [
                names(log.sources("ranks.sets.square")),
                names(log.sources("ranks.sets.array")),
            ]
        });
        let of = |moved| {
            if moved {
                Source::Loaded
            } else {
                Source::Computed
            }
        };
        assert_eq!(
            sources[1],
            [names([of(moves[0])]), names([of(moves[1])])],
            "{transfer:?}"
        );
        let computed = format!("{:?}", Source::Computed);
        let mut each = sources[0].iter().flatten();
        assert!(each.all(|source| *source != computed));
    }
}

/// What came without its values is no reason not to ask the store.
pub(super) fn what_came_without_its_value_is_looked_for_in_the_store(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let run = |is_second: bool| {
        ranks.run_ranks(|rank| {
            let log = EventLog::new();
            let builder = Sde::builder().observer(log.clone());
            let builder = builder.store(DirStore::open(&store).unwrap());
            let builder = builder.save(sde::SavePolicy::OnRequest);
            let sde = rank.join(builder).build().unwrap();
            let rank = sde.rank().unwrap();
            let part = sde.split(rank as u32, 0).unwrap();
            if rank == 0 {
                let inputs = inputs! { x: 2_u64 };
                let asked = part.request(&square, &inputs).policy(Policy::Refresh);
                asked.run().unwrap();
            }
            let none = Transfer::all().only(|_, _, _| false);
            part.release_with(&none).unwrap();
            let _ = log.take();
            if is_second {
                assert_eq!(*square.call(&sde, 2).unwrap(), 4);
            }
            sde.finish().unwrap();
            names(log.sources("ranks.sets.square"))
        })
    };
    run(false);
    assert_eq!(run(true)[1], names([Source::Loaded]));
}

/// Who got only the key before gets the value when all are given.
pub(super) fn what_came_without_its_value_is_sent_when_all_is(ranks: Ranks<'_>) {
    let sources = ranks.run_with_log(|sde, log| {
        let rank = sde.rank().unwrap();
        let none = Transfer::all().only(|_, _, _| false);
        let half = sde.split(0, 0).unwrap();
        let alone = half.split(rank as u32, 0).unwrap();
        if rank == 0 {
            square.call(&alone, 2).unwrap();
        }
        alone.release_with(&none).unwrap();
        half.release().unwrap();
        let _ = log.take();
        assert_eq!(*square.call(&sde, 2).unwrap(), 4);
        names(log.sources("ranks.sets.square"))
    });
    assert_eq!(sources[1], names([Source::Loaded]));
}

/// Keys always, large values by choice, and later.
pub(super) fn what_was_left_elsewhere_is_fetched_later(ranks: Ranks<'_>) {
    let sources = ranks.run_with_log(|sde, log| {
        let rank = sde.rank().unwrap();
        let part = sde.split(rank as u32, 0).unwrap();
        if rank == 0 {
            square.call(&part, 2).unwrap();
            array.call(&part, 20_000).unwrap();
        }
        let small = Transfer::all().at_most(100_000);
        part.release_with(&small).unwrap();
        let left = sde.elsewhere();
        assert_eq!(left.len(), usize::from(rank != 0));
        // It is too large still.
        assert_eq!(sde.fetch(&left, &small).unwrap(), left);
        assert_eq!(sde.fetch(&left, &Transfer::all()).unwrap(), []);
        assert_eq!(sde.elsewhere(), []);
        let _ = log.take();
        assert_eq!(array.call(&sde, 20_000).unwrap()[19_999], 19_999.0);
        names(log.sources("ranks.sets.array"))
    });
    let is_loaded = |source: &Vec<String>| *source == names([Source::Loaded]);
    assert!(sources[1..].iter().all(is_loaded), "{sources:?}");
}

pub(super) fn each_rank_fetches_what_it_asks_for(ranks: Ranks<'_>) {
    let computed = ranks.run(|sde| {
        let rank = sde.rank().unwrap() as u64;
        let part = sde.split(rank as u32, 0).unwrap();
        square.call(&part, rank).unwrap();
        part.release_with(&Transfer::all().only(|_, _, _| false))
            .unwrap();
        let key = |x: u64| sde.peek(&square, &inputs! { x: x }).unwrap().key();
        let mut left = sde.elsewhere();
        left.sort();
        let mut others: Vec<_> = (0..3).filter(|x| *x != rank).map(key).collect();
        others.sort();
        assert_eq!(left, others);
        // Nobody has the last one.
        let next = [key((rank + 1) % 3), key(77)];
        let asked = if rank == 0 { &[][..] } else { &next };
        let lacking = sde.fetch(asked, &Transfer::all()).unwrap();
        assert_eq!(lacking, asked.get(1..).unwrap_or_default());
        assert_eq!(sde.elsewhere().len(), if rank == 0 { 2 } else { 1 });
        square.call(&sde, (rank + 1) % 3).unwrap();
        sde.stats().total.computed
    });
    assert_eq!(computed, [2, 1, 1]);
}

pub(super) fn no_cache_values_never_move(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let part = sde.split(rank as u32, 0).unwrap();
        let kept = (rank == 0).then(|| held.call(&part, 1).unwrap());
        part.release().unwrap();
        held.call(&sde, 1).unwrap();
        let computed = sde.stats().total.computed;
        assert_eq!(computed, 1);
        drop(kept);
    });
}

/// Non-deterministic results are the records of what was computed: the lowest rank's counts.
pub(super) fn of_different_results_the_lowest_rank_s_counts(ranks: Ranks<'_>) {
    let runs = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let part = sde.split((rank == 0) as u32, 0).unwrap();
        if rank > 0 {
            dice.call(&part, 7).unwrap();
        }
        part.release().unwrap();
        let of_dice = |record: &sde::record::Record| &*record.app == "ranks.sets.dice";
        let records = crate::records(&sde);
        let record = records.iter().find(|record| of_dice(record)).unwrap();
        record.run
    });
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0], runs[2]);
}

/// The same program, whatever the number of ranks.
pub(super) fn the_results_do_not_depend_on_the_number_of_ranks(ranks: Ranks<'_>) {
    let size = ranks.size();
    let sums = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let color = (rank * 2 / size) as u32;
        let part = sde.split(color, 0).unwrap();
        let mine = *nested.call(&part, u64::from(color)).unwrap();
        part.release().unwrap();
        let all = sde.gather("sums", mine).unwrap();
        let sum = *nested.call(&sde, 0).unwrap() + *nested.call(&sde, 1).unwrap();
        assert!(all.iter().all(|one| **one == 1 || **one == 2));
        sum
    });
    assert!(sums.iter().all(|sum| *sum == 3), "{size}: {sums:?}");
}
