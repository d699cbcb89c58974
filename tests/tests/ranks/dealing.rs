//! Points that are dealt out as ranks become free, where threads stand for ranks and sequence one another.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sde::ranks::{GroupError, ProcessGroup, ThreadGroup};
use sde::store::Cbor;
use sde::{
    App, AppError, AppInfo, Cost, Error, ErrorKind, EventLog, Fingerprint, Handle, Inputs,
    ResultMap, Sde,
};
use sde_tests::{Counter, LIMIT, Made, Watchdog, number, x, y};

/// Every fourth point is costly, and all of those begin with one rank: they end when all of them have been begun, and all
/// others are done.
#[test]
fn each_rank_takes_a_costly_point_and_others_have_those_that_are_cheap() {
    let _in_time = Watchdog::new("a sweep on four ranks", LIMIT);
    let (done, begun) = (Counter::new(), Counter::new());
    let point = number("point", move |_, x| {
        match x % 4 {
            0 => {
                begun.add();
                begun.reach(4);
                done.reach(12);
            }
            _ => drop(done.add()),
        }
        Ok(x)
    });
    let list: Vec<Inputs> = (0..16).map(x).collect();
    let computed = ThreadGroup::run(4, |group| {
        let sde = Sde::builder().threads(1).process_group(group, Cbor);
        let sde = sde.build().unwrap();
        let points = sde.par_map(&point, &list);
        for (x, point) in (0..).zip(&points) {
            assert_eq!(y(point.as_ref().unwrap()).unwrap(), x);
        }
        sde.stats().total.computed
    });
    assert_eq!(computed.iter().sum::<u64>(), 16, "{computed:?}");
}

/// The threads of a rank are no ranks: one may be busy while another has the rank take more.
#[test]
fn a_rank_of_several_threads_takes_more_when_one_is_free() {
    let _in_time = Watchdog::new("a sweep on two ranks", LIMIT);
    let done = Counter::new();
    let point = number("point", move |_, x| {
        match x {
            // One thread of each rank.
            0 | 1 => done.reach(18),
            _ => drop(done.add()),
        }
        Ok(x)
    });
    let list: Vec<Inputs> = (0..20).map(x).collect();
    ThreadGroup::run(2, |group| {
        let sde = Sde::builder().threads(2).process_group(group, Cbor);
        let points = sde.build().unwrap().par_map(&point, &list);
        assert!(points.iter().all(Result::is_ok));
    });
}

/// The others begin nothing more, and wait for nobody.
#[test]
fn a_point_that_panics_ends_it_on_all_ranks() {
    let _in_time = Watchdog::new("a sweep on two ranks", LIMIT);
    let panics = Counter::new();
    let point = number("point", move |_, x| {
        if x == 0 {
            panics.add();
            panic!("this point");
        }
        panics.reach(1);
        Ok(x)
    });
    let list: Vec<Inputs> = (0..1000).map(x).collect();
    let errors = ThreadGroup::run(2, |group| {
        let log = EventLog::new();
        let sde = Sde::builder().threads(1).observer(log.clone());
        let sde = sde.process_group(group, Cbor).build().unwrap();
        let points = catch_unwind(AssertUnwindSafe(|| sde.par_map(&point, &list)));
        assert!(log.started("point") < 1000);
        points.ok().map(|mut points| points.remove(0).unwrap_err())
    });
    // Whichever has begun it.
    let panicked = errors.iter().position(Option::is_none).unwrap();
    let other = errors[1 - panicked].as_ref().map(Error::kind);
    let left = GroupError::left(panicked);
    assert!(
        matches!(other, Some(ErrorKind::Ranks { source, .. }) if *source == left),
        "{errors:?}"
    );
}

#[sde::app(name = "ranks.dealing.half")]
fn half(number: u64) -> u64 {
    number / 2
}

/// Nodes may have other numbers of cores: the same call was refused on all ranks.
#[test]
fn ranks_of_other_numbers_of_threads_take_the_same_items() {
    let _in_time = Watchdog::new("items one by one on two ranks", LIMIT);
    ThreadGroup::run(2, |group| {
        let threads = 1 + group.rank();
        let sde = Sde::builder().threads(threads).process_group(group, Cbor);
        let sde = sde.build().unwrap();
        let mut sum = 0;
        half.par_call_each(&sde, 0..50_u64, |_, value| sum += *value)
            .unwrap();
        assert_eq!(sum, 600);
    });
}

thread_local! {
    static RANK: Cell<usize> = const { Cell::new(0) };
}

/// A distributed app of which each rank is told which of the program it is. On the first one a thread that has not said so runs it.
fn on_sets(
    body: impl Fn(&Handle, usize, u64) -> Result<u64, AppError> + Send + Sync + 'static,
) -> Made {
    let point = number("point", move |sde, x| body(sde, RANK.get(), x));
    point.described(AppInfo::distributed)
}

/// Whichever set it is, also that of the rank which deals, and though it meets nobody while it computes.
#[test]
fn a_set_that_is_busy_holds_up_no_other() {
    let _in_time = Watchdog::new("a sweep on two sets", LIMIT);
    for busy in [0, 1] {
        let (done, begun) = (Counter::new(), Counter::new());
        let point = on_sets(move |sde, rank, x| {
            match rank / 2 == busy {
                true => {
                    begun.add();
                    done.reach(10);
                }
                false => {
                    begun.reach(2);
                    sde.gather("ranks", rank)?;
                    done.add();
                }
            }
            Ok(x)
        });
        let list: Vec<Inputs> = (0..6).map(x).collect();
        let computed = ThreadGroup::run(4, |group| {
            RANK.set(group.rank());
            let sde = Sde::builder().threads(1).process_group(group, Cbor);
            let sde = sde.build().unwrap();
            let points = sde.par_map_on_sets(&point, &list, 2);
            for (x, point) in (0..).zip(&points) {
                assert_eq!(y(point.as_ref().unwrap()).unwrap(), x);
            }
            sde.stats().total.computed
        });
        let right = if busy == 0 {
            [1, 1, 5, 5]
        } else {
            [5, 5, 1, 1]
        };
        assert_eq!(computed, right);
    }
}

/// An app whose cost is asked for by the first rank alone, and panics.
#[derive(Fingerprint)]
struct Costly;

impl App for Costly {
    fn info(&self) -> AppInfo {
        AppInfo::new("costly", "1").distributed()
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }

    fn cost(&self, _: &Inputs) -> Option<Cost> {
        panic!("this cost")
    }
}

/// The first rank asked for costs when the sets waited for points already: they waited for ever.
#[test]
fn a_cost_that_panics_is_an_error_of_the_others() {
    let _in_time = Watchdog::new("a sweep of unknown cost", LIMIT);
    let list: Vec<Inputs> = (0..10).map(x).collect();
    let failed = ThreadGroup::run(4, |group| {
        let sde = Sde::builder().process_group(group, Cbor).build().unwrap();
        let points = catch_unwind(AssertUnwindSafe(|| sde.par_map_on_sets(&Costly, &list, 2)));
        // The program of the first rank goes on.
        sde.gather("numbers", 1).is_err() | points.is_ok_and(|all| all.iter().all(Result::is_err))
    });
    assert_eq!(failed, [true; 4]);
}

/// The others begin nothing more, and wait for nobody: whether the rank that panics is the first of its set, deals, or neither.
#[test]
fn a_point_that_panics_on_a_set_ends_it_on_all_ranks() {
    let _in_time = Watchdog::new("a sweep on sets of ranks", LIMIT);
    for (size, who) in [(4, 0), (4, 1), (4, 2), (4, 3), (3, 1), (3, 2)] {
        let panics = Counter::new();
        let point = on_sets(move |_, rank, x| {
            if rank == who {
                panics.add();
                panic!("this point");
            }
            panics.reach(1);
            Ok(x)
        });
        let list: Vec<Inputs> = (0..1000).map(x).collect();
        let errors = ThreadGroup::run(size, |group| {
            RANK.set(group.rank());
            let log = EventLog::new();
            let sde = Sde::builder().threads(1).observer(log.clone());
            let sde = sde.process_group(group, Cbor).build().unwrap();
            let points = catch_unwind(AssertUnwindSafe(|| sde.par_map_on_sets(&point, &list, 2)));
            assert!(log.started("point") < 1000);
            points.ok().map(|points| points.iter().all(Result::is_err))
        });
        for (rank, errors) in errors.into_iter().enumerate() {
            let right = if rank == who { None } else { Some(true) };
            assert_eq!(errors, right, "rank {who} of {size} panics, on rank {rank}");
        }
    }
}

/// The rank that had panicked went on with its program without the others: they waited for it, though none of them failed.
#[test]
fn a_rank_that_catches_the_panic_of_its_point_leaves_none_waiting() {
    for (size, who) in [(4, 0), (4, 1), (4, 2), (4, 3), (3, 1), (3, 2)] {
        let _in_time = Watchdog::new("a sweep on sets of ranks", LIMIT);
        let (panics, ended) = (Counter::new(), Counter::new());
        let point = on_sets(move |_, rank, x| {
            if rank == who {
                panics.add();
                panic!("this point");
            }
            panics.reach(1);
            Ok(x)
        });
        let list: Vec<Inputs> = (0..1000).map(x).collect();
        ThreadGroup::run(size, |group| {
            let rank = group.rank();
            RANK.set(rank);
            let sde = Sde::builder().threads(1).process_group(group, Cbor);
            let sde = sde.build().unwrap();
            let points = catch_unwind(AssertUnwindSafe(|| sde.par_map_on_sets(&point, &list, 2)));
            match points {
                Err(_) => assert_eq!(rank, who),
                Ok(points) => {
                    let error = format!("{:#}", points[0].as_ref().unwrap_err());
                    assert!(points.iter().all(Result::is_err));
                    assert!(error.contains("on rank"), "rank {rank} of {size}: {error}");
                }
            }
            ended.add();
            ended.reach(size);
            // All ranks are at one place of the program.
            assert_eq!(sde.gather("ranks", rank).unwrap().len(), size);
        });
    }
}
