//! What goes from rank to rank when process sets are split and released, of values that lie on several ranks.

use std::ops::Range;
use std::sync::atomic::Ordering;

use sde::ranks::Transfer;
use sde::store::{DirStore, StoreOptions};
use sde::{DistArray, ErrorKind, EventLog, Handle, Peek, Policy, SavePolicy, Sde, Source, inputs};
use sde_tests::ranks::{Ranks, Threads};

use super::counting::{counted, counts_of};

#[sde::app(name = "ranks.splitting.array", distributed)]
fn array(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[1024], |at| (at[0] + number) as f64)
}

/// A replicated result: each rank has the whole sum.
#[sde::app(name = "ranks.splitting.sum", distributed)]
fn sum(sde: &Handle, number: usize) -> Result<f64, sde::Error> {
    array.call(sde, number)?.sum(sde)
}

fn make(sde: &Handle, numbers: Range<usize>) {
    numbers.for_each(|number| drop(array.call(sde, number).unwrap()));
}

/// Each rank for itself.
fn alone(sde: &Handle) -> u32 {
    sde.rank().unwrap() as u32
}

/// Found by a program that split its ranks for a short piece, which took seconds: all arrays that were remembered went
/// with them, and none was asked for.
#[test]
fn a_split_moves_no_array_that_nobody_asks_for() {
    let split_twice = |arrays: usize| {
        let split = |sde: &Sde| sde.split_for(alone(sde), 0, |_| Ok(())).unwrap();
        let twice = |sde: &Sde| (0..2).for_each(|_| split(sde));
        counted(2, |sde| make(sde, 0..arrays), twice)
    };
    let (moved, told) = split_twice(20);
    assert_eq!(moved, 0, "{moved} bytes of arrays were moved");
    assert_eq!(told, split_twice(0).1, "ranks told one another of arrays");
}

#[test]
fn a_split_moves_the_array_that_is_named() {
    let key = |sde: &Sde| {
        sde.peek(&array, &inputs! { number: 3_usize })
            .unwrap()
            .key()
    };
    let named: [&(dyn Fn(&Sde) -> Transfer + Sync); 2] =
        [&|sde| Transfer::of_runs([key(sde)]), &|_| {
            Transfer::of_apps(["ranks.splitting.array"])
        }];
    for (transfer, arrays) in named.into_iter().zip([1, 20]) {
        let (moved, _) = counted(
            2,
            |sde| make(sde, 0..20),
            |sde| {
                let ask = |part: &Handle| array.call(part, 3);
                let whole = sde.split_for_with(alone(sde), 0, &transfer(sde), ask);
                assert_eq!(whole.unwrap().local()[1023], 1026.0);
                assert_eq!(sde.stats().total.computed, 20);
            },
        );
        // Each rank has half of each array and gets the other; and what is said of each.
        let halves = arrays * 2 * 512 * 8;
        assert!((halves..halves + arrays * 700).contains(&moved), "{moved}");
    }
}

/// It would be computed again by a part of the ranks, for hours perhaps, though the program has it.
#[test]
fn an_array_that_was_not_named_is_an_error_until_the_release() {
    let errors = Ranks::of(&Threads, 4).run_with_log(|sde, log: EventLog| {
        make(&sde, 0..2);
        let half = sde.split(alone(&sde) / 2, 0).unwrap();
        let here = inputs! { number: 1_usize };
        let peeked = half.peek(&array, &here).unwrap();
        let Peek::Miss { key, why, .. } = &peeked else {
            panic!("{peeked:?}")
        };
        assert!(why.contains("lies on the larger process set"), "{why}");
        let error = array.call(&half, 1).unwrap_err();
        let ErrorKind::LeftBehind { app, key: left, .. } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((&**app, left), ("ranks.splitting.array", key));
        // In a part of a part too, and in a run that needs it.
        let inner = half.split(alone(&half), 0).unwrap();
        assert!(sum.call(&inner, 1).is_err());
        inner.release().unwrap();
        // What nobody remembers is computed, and what is asked for otherwise.
        array.call(&half, 7).unwrap();
        let request = half.request(&array, &here).policy(Policy::Bypass);
        assert!(request.run().is_ok());
        let request = half.request(&array, &here).policy(Policy::OnlyIfRemembered);
        let refused = request.run().unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::NotRemembered { .. }));
        half.release().unwrap();
        let _ = log.take();
        assert_eq!(array.call(&sde, 1).unwrap().gather(&sde).unwrap()[5], 6.0);
        array.call(&sde, 7).unwrap();
        assert_eq!(log.started("ranks.splitting.array"), 0);
        format!("{error:#}")
    });
    for error in &errors {
        assert_eq!(*error, errors[0]);
        for says in [
            "ranks.splitting.array [",
            "Transfer::of_apps",
            "after the release",
        ] {
            assert!(error.contains(says), "{error}");
        }
    }
}

/// Each rank has a store of its own in one directory, or all have opened one together.
#[test]
fn an_array_that_was_not_named_comes_from_the_store() {
    for is_together in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        Ranks::of(&Threads, 4).run_ranks(|rank| {
            let log = EventLog::new();
            let store = match is_together {
                true => StoreOptions::new()
                    .open_together(&store, rank.group())
                    .unwrap(),
                false => DirStore::open(&store).unwrap(),
            };
            let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
            let sde = rank.join(builder.observer(log.clone())).build().unwrap();
            make(&sde, 0..2);
            let _ = log.take();
            let half = sde.split(alone(&sde) / 2, 0).unwrap();
            assert_eq!(array.call(&half, 1).unwrap().gather(&half).unwrap()[5], 6.0);
            half.release().unwrap();
            assert_eq!(array.call(&sde, 1).unwrap().gather(&sde).unwrap()[5], 6.0);
            sde.finish().unwrap();
            let sources = log.sources("ranks.splitting.array");
            assert_eq!(sources, [Source::Loaded, Source::Memory]);
        });
    }
}

/// Each rank has it already.
#[test]
fn what_is_the_same_on_all_ranks_is_there_in_a_part() {
    let of_nothing = counted(
        4,
        |_| (),
        |sde| sde.split_for(alone(sde), 0, |_| Ok(())).unwrap(),
    );
    let (moved, told) = counted(
        4,
        |sde| drop(sum.call(sde, 3).unwrap()),
        |sde| {
            let ask = |part: &Handle| sum.call(part, 3);
            let got = sde.split_for(alone(sde), 0, ask).unwrap();
            assert_eq!(*got, *sum.call(sde, 3).unwrap());
            assert_eq!(sde.stats().apps["ranks.splitting.sum"].computed, 1);
        },
    );
    assert_eq!(moved, of_nothing.0);
    // A meeting in the part, one of the whole for the last call.
    assert!(
        told <= of_nothing.1 + 5 * sde::__private::MEETING_BYTES,
        "{told} {of_nothing:?}"
    );
}

/// Found by counting: each of 1,024 arrays of 1 KiB made five rounds of all ranks, 200 ms where their bytes take one.
#[test]
fn many_arrays_move_in_as_few_rounds_as_few() {
    type Piece<'a> = &'a (dyn Fn(&Sde, usize) + Sync);
    let rounds = |arrays: usize, before: Piece<'_>, then: Piece<'_>| {
        let counts = counts_of(4, |sde| before(sde, arrays), |sde| then(sde, arrays));
        counts.operations.load(Ordering::SeqCst) / 4
    };
    let made: Piece<'_> = &|sde, arrays| make(sde, 0..arrays);
    let split: Piece<'_> = &|sde, _| {
        let half = sde.split_with(alone(sde) / 2, 0, &Transfer::all()).unwrap();
        half.release().unwrap();
    };
    let release: Piece<'_> = &|sde, arrays| {
        let half = sde.split(alone(sde) / 2, 0).unwrap();
        let first = 1000 * (alone(sde) / 2) as usize;
        make(&half, first..first + arrays);
        half.release().unwrap();
    };
    // Of a split, and of a release besides the runs in the parts.
    let in_runs = rounds(1, &|_, _| (), made);
    let of = |arrays: usize| {
        let released = rounds(arrays, &|_, _| (), release);
        [rounds(arrays, made, split), released - arrays * in_runs]
    };
    assert_eq!(of(2), of(50), "of 2 arrays, and of 50");
}
