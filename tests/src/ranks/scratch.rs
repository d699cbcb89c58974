//! Iterations over ranks that are cut off, and go on from what they have saved.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::archiver::MemoryArchiver;
use sde::store::DirStore;
use sde::{AppError, AppInfo, Event, EventLog, Handle, Policy, SavePolicy, Sde};
use serde::{Deserialize, Serialize};

use super::{Rank, Ranks, all_are};
use crate::{Made, number, x, y};

const STEPS: u32 = 9;

/// How an iteration goes.
#[derive(Clone, Copy)]
struct Iteration {
    /// Whether the states are the same on all ranks, and are said to be.
    is_same: bool,
    is_said_so: bool,
    /// Before which step it is cut off.
    stops_at: u32,
    /// Whether the second rank is before it has saved the last one.
    ends_apart: bool,
}

const OWN: Iteration = Iteration {
    is_same: false,
    is_said_so: false,
    stops_at: STEPS,
    ends_apart: false,
};
const REPLICATED: Iteration = Iteration {
    is_same: true,
    is_said_so: true,
    ..OWN
};

/// What came of a job on one rank.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Came {
    /// How many steps it made.
    pub(super) made: u32,
    pub(super) result: Option<u64>,
    /// What it was warned of.
    pub(super) warned: Vec<String>,
}

impl Iteration {
    fn stops_at(self, stops_at: u32) -> Self {
        Self { stops_at, ..self }
    }

    /// The app; `then` is called with each step when it is saved.
    fn app(self, made: Arc<AtomicU32>, then: impl Fn(u32) + Send + Sync + 'static) -> Made {
        number("scratch.iteration", move |sde, start| {
            let rank = sde.rank()?;
            let mut scratch = sde.scratch::<(u32, u64)>();
            if self.is_said_so {
                scratch = scratch.replicated();
            }
            let own = if self.is_same {
                start
            } else {
                start + rank as u64
            };
            let (mut step, mut at) = scratch.resume_or(|| (0, own))?;
            while step < STEPS {
                if step == self.stops_at {
                    return Err(AppError::message("the job is cut off"));
                }
                at = at.wrapping_mul(31) + all(sde, at)?;
                step += 1;
                made.fetch_add(1, Ordering::Relaxed);
                if self.ends_apart && rank == 1 && step == self.stops_at {
                    return Err(AppError::message("the job is cut off"));
                }
                scratch.save((step, at))?;
                then(step);
            }
            all(sde, at)
        })
        .described(AppInfo::distributed)
    }

    /// A job of it, in an engine that `engine` makes.
    fn job(self, ranks: Ranks<'_>, engine: impl Fn(Rank, &EventLog) -> Sde + Sync) -> Vec<Came> {
        ranks.run_ranks(|rank| {
            let log = EventLog::new();
            let sde = engine(rank, &log);
            let came = self.call(&sde, &log);
            sde.finish().unwrap();
            came
        })
    }

    fn call(self, sde: &Sde, log: &EventLog) -> Came {
        let made = Arc::new(AtomicU32::new(0));
        let result = sde.run(&self.app(Arc::clone(&made), |_| ()), &x(1));
        Came {
            made: made.load(Ordering::Relaxed),
            result: result.ok().map(|map| y(&map).unwrap()),
            warned: warned(log),
        }
    }

    /// The same over a store that all ranks share.
    fn job_in(self, ranks: Ranks<'_>, store: &Path) -> Vec<Came> {
        self.job(ranks, |rank, log| over(rank, log, store))
    }

    /// The same where each rank has a store of its own.
    fn job_apart(self, ranks: Ranks<'_>, folder: &Path) -> Vec<Came> {
        self.job(ranks, |rank, log| {
            let own = folder.join(rank.number().to_string());
            over(rank, log, &own)
        })
    }

    fn undisturbed(self, ranks: Ranks<'_>) -> Option<u64> {
        let whole = Self {
            ends_apart: false,
            ..self.stops_at(STEPS)
        };
        let came = whole.job(ranks, |rank, _| rank.join(Sde::builder()).build().unwrap());
        came[0].result
    }
}

/// What depends on all ranks: the largest of their values where they are the same, which any number has.
fn all(sde: &Handle, at: u64) -> Result<u64, AppError> {
    let all = sde.gather("values", at)?;
    let largest = all.iter().map(|at| **at).max().unwrap_or(0);
    Ok(largest ^ (largest >> 3))
}

pub(super) fn warned(log: &EventLog) -> Vec<String> {
    let warning = |event: Event| match event {
        Event::Warning { message, .. } => Some(message),
        _ => None,
    };
    log.events().into_iter().filter_map(warning).collect()
}

pub(super) fn over(rank: Rank, log: &EventLog, store: &Path) -> Sde {
    let store = DirStore::open(store).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    let builder = builder.observer(log.clone());
    rank.join(builder).build().unwrap()
}

/// That all ranks made so many steps and came to an end, without a word.
pub(super) fn ended(came: &[Came], made: u32, result: Option<u64>) {
    let expected = Came {
        made,
        result,
        warned: Vec::new(),
    };
    assert!(came.iter().all(|came| *came == expected), "{came:#?}");
}

/// That all ranks began again, and the first says why.
pub(super) fn began_again(came: &[Came], made: u32, why: &str) {
    assert!(came.iter().all(|came| came.made == made), "{came:#?}");
    let warned: Vec<_> = came.iter().map(|came| came.warned.len()).collect();
    assert!(
        warned[0] == 1 && warned[1..].iter().all(|number| *number == 0),
        "{came:#?}"
    );
    assert!(came[0].warned[0].contains(why), "{}", came[0].warned[0]);
}

/// Found by an iteration over ranks that was killed: every rank began again at step 0, without a word.
pub(super) fn any_number_of_ranks_goes_on_from_a_state_that_all_have(ranks: Ranks<'_>) {
    let result = REPLICATED.undisturbed(ranks.resized(2));
    for (first, second) in [(3, 2), (2, 3), (4, 1), (1, 4), (3, 3)] {
        let folder = ranks.folder();
        let store = folder.path().join("store");
        let came = REPLICATED.stops_at(5).job_in(ranks.resized(first), &store);
        ended(&came, 5, None);
        let came = REPLICATED.stops_at(7).job_in(ranks.resized(second), &store);
        ended(&came, 2, None);
        let came = REPLICATED.job_in(ranks.resized(first), &store);
        ended(&came, STEPS - 7, result);
    }
}

/// One process without ranks is as good as any.
pub(super) fn a_program_without_ranks_goes_on_from_a_state_that_all_have(ranks: Ranks<'_>) {
    let result = REPLICATED.undisturbed(ranks.resized(1));
    let folder = ranks.folder();
    let store = folder.path().join("store");
    REPLICATED.stops_at(5).job_in(ranks.resized(3), &store);
    ranks.once(|| {
        let builder = Sde::builder()
            .store(DirStore::open(&store).unwrap())
            .save(SavePolicy::OnRequest);
        let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
        let came = REPLICATED.stops_at(7).call(&sde, &EventLog::new());
        ended(&[came], 2, None);
        sde.finish().unwrap();
    });
    let came = REPLICATED.job_in(ranks.resized(2), &store);
    ended(&came, STEPS - 7, result);
}

/// On another number of ranks they would be something else, and be there for others.
pub(super) fn each_rank_goes_on_from_its_own_state_on_as_many_ranks(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let three = ranks.resized(3);
    ended(&OWN.stops_at(5).job_in(three, &store), 5, None);
    let came = OWN.stops_at(1).job_in(ranks.resized(2), &store);
    began_again(
        &came,
        1,
        "each of 3 ranks has saved its own, and here are 2",
    );
    // That has left a state of each rank.
    ended(
        &OWN.job_in(three, &store),
        STEPS - 5,
        OWN.undisturbed(three),
    );
}

pub(super) fn states_that_are_said_to_be_the_same_and_are_not_are_left(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let wrong = Iteration {
        is_said_so: true,
        ..OWN
    };
    wrong.stops_at(5).job_in(ranks.resized(3), &store);
    for size in [3, 2] {
        let came = wrong.stops_at(2).job_in(ranks.resized(size), &store);
        began_again(&came, 2, "the same on all");
    }
}

/// A rank that is killed has not saved what another has.
pub(super) fn a_state_that_one_rank_has_not_saved_is_not_gone_on_from(ranks: Ranks<'_>) {
    for iteration in [OWN, REPLICATED] {
        let result = iteration.undisturbed(ranks);
        let apart = Iteration {
            ends_apart: true,
            ..iteration.stops_at(5)
        };
        let folder = ranks.folder();
        apart.job_apart(ranks, folder.path());
        let came = iteration.job_apart(ranks, folder.path());
        ended(&came, STEPS - 4, result);
        // Memory has one state: in the same process, too, they go on from the store.
        let folder = ranks.folder();
        let came = iteration.job(ranks, |rank, log| {
            let own = folder.path().join(rank.number().to_string());
            let sde = over(rank, log, &own);
            assert_eq!(apart.call(&sde, log).result, None);
            sde
        });
        ended(&came, STEPS - 4, result);
        // Without one they have none in common.
        let came = iteration.job(ranks, |rank, log| {
            let sde = rank.join(Sde::builder().observer(log.clone()));
            let sde = sde.build().unwrap();
            assert_eq!(apart.call(&sde, log).result, None);
            sde
        });
        began_again(&came, STEPS, "no state is there of all ranks");
    }
}

/// Ranks have no state in common; a rank that went on from its own would go on alone, or from what another job made.
pub(super) fn without_a_state_in_common_all_begin_again(ranks: Ranks<'_>) {
    for iteration in [OWN, REPLICATED] {
        let result = iteration.undisturbed(ranks);
        let folder = ranks.folder();
        let path = |name: &str| folder.path().join(name);
        for job in ["a", "b", "c"] {
            iteration.stops_at(5).job_apart(ranks, &path(job));
        }
        ranks.once(|| {
            // The second rank's is of another run, of as many steps.
            std::fs::remove_dir_all(path("a").join("1")).unwrap();
            std::fs::rename(path("b").join("1"), path("a").join("1")).unwrap();
            // It has none.
            std::fs::remove_dir_all(path("c").join("0")).unwrap();
        });
        for job in ["a", "c"] {
            let came = iteration.job_apart(ranks, &path(job));
            began_again(&came, STEPS, "no state is there of all ranks");
            assert_eq!(came[0].result, result);
        }
    }
}

/// Checkpoints that each rank makes when it is time are of different steps: the ranks had nothing in common that was saved.
pub(super) fn ranks_that_checkpoint_at_different_times_save_one_state(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let made = ranks.run_ranks(|rank| {
        let own = 2 + 2 * rank.number() as u32;
        let is_first = rank.number() == 0;
        let builder = Sde::builder()
            .store(DirStore::open(&store).unwrap())
            .save(SavePolicy::OnRequest);
        let sde = rank.join(builder.save(SavePolicy::Never)).build().unwrap();
        let sde = Arc::new(Mutex::new(Some(sde)));
        let of_body = Arc::clone(&sde);
        let app = OWN.stops_at(8).app(Arc::default(), move |step| {
            // As another thread does it; the first rank goes on to.
            if step == own || is_first && [6, 7].contains(&step) {
                let sde = of_body.lock().unwrap().clone().unwrap();
                sde.checkpoint().unwrap();
            }
        });
        let own = sde.lock().unwrap().clone().unwrap();
        let result = own.run(&app, &x(1)).is_ok();
        sde.lock().unwrap().take();
        result
    });
    assert!(made.iter().all(|result| !result), "{made:?}");
    let last = 2 * ranks.size() as u32 + 1;
    let came = OWN.job_in(ranks, &store);
    ended(&came, STEPS - last, OWN.undisturbed(ranks));
}

/// It would be of no other rank, in the place of one that all have.
pub(super) fn a_state_that_a_failed_run_owes_is_not_saved_by_the_next(ranks: Ranks<'_>) {
    let saved = ranks.run_ranks(|rank| {
        let store = MemoryArchiver::new();
        let builder = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest);
        let sde = rank.join(builder.save(SavePolicy::Never)).build().unwrap();
        let app = number("scratch.owing", |sde, number| {
            if number == 2 || sde.rank()? != 1 {
                sde.scratch().save(number)?;
            }
            Err(AppError::message("the job is cut off"))
        });
        let app = app.described(AppInfo::distributed);
        sde.checkpoint().unwrap();
        for run in [1, 2] {
            sde.run(&app, &x(run)).unwrap_err();
        }
        store.saved_scratch().len()
    });
    let first_run = |rank| usize::from(rank != 1);
    let expected: Vec<_> = (0..saved.len()).map(first_run).collect();
    assert_eq!(saved, expected);
}

/// What another thread cleans while the ranks are in the middle of it.
pub(super) fn a_run_in_progress_keeps_its_states_when_its_app_is_cleaned(ranks: Ranks<'_>) {
    let came = ranks.run_with_log(|sde, log| {
        let of_body = Mutex::new(Some(sde.clone()));
        let app = OWN.stops_at(5).app(Arc::default(), move |step| {
            if step == 5 {
                let sde = of_body.lock().unwrap().take().unwrap();
                sde.clear_app("scratch.iteration").unwrap();
            }
        });
        sde.run(&app, &x(1)).unwrap_err();
        OWN.call(&sde, &log)
    });
    ended(&came, STEPS - 5, OWN.undisturbed(ranks));
}

/// The run makes no more, so that nobody has to agree.
pub(super) fn a_checkpoint_after_a_failed_run_saves_its_states(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let path = folder.path().join("store");
    let came = OWN.stops_at(5).job(ranks, |rank, log| {
        let store = DirStore::open(&path).unwrap();
        let builder = Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .observer(log.clone());
        rank.join(builder).build().unwrap()
    });
    ended(&came, 5, None);
    let came = OWN.job_in(ranks, &path);
    ended(&came, STEPS - 5, OWN.undisturbed(ranks));
}

/// They would pile up, and a run that is to be made again would go on from them.
pub(super) fn states_are_gone_when_the_run_has_ended(ranks: Ranks<'_>) {
    let result = OWN.undisturbed(ranks);
    let came = ranks.run_ranks(|rank| {
        let (store, log) = (MemoryArchiver::new(), EventLog::new());
        let builder = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest)
            .observer(log.clone());
        let builder = builder.save(SavePolicy::EveryResult);
        let sde = rank.join(builder).build().unwrap();
        OWN.stops_at(5).call(&sde, &log);
        assert_eq!(store.saved_scratch(), ["scratch.iteration"]);
        OWN.call(&sde, &log);
        assert!(store.saved_scratch().is_empty());
        let made = Arc::new(AtomicU32::new(0));
        let app = OWN.app(Arc::clone(&made), |_| ());
        let again = sde.request(&app, &x(1)).policy(Policy::Refresh).run();
        let result = y(&again.unwrap().results).unwrap();
        sde.finish().unwrap();
        (made.load(Ordering::Relaxed), result)
    });
    all_are(&came, &(STEPS, result.unwrap()));
}

/// A rank may be any number of them ahead.
pub(super) fn of_states_between_two_meetings_the_first_counts(ranks: Ranks<'_>) {
    let results = ranks.run(|sde| {
        let app = number("scratch.twice", |sde, _| {
            let scratch = sde.scratch::<(u64, u64)>();
            if let Some(state) = scratch.load()? {
                let all = sde.gather("states", state.0 * 10 + state.1)?;
                return Ok(all.iter().map(|state| **state).max().unwrap_or(0));
            }
            for step in 1..=3 {
                sde.gather("step", step)?;
                for number in 0..=2 * u64::from(sde.rank()? == 0) {
                    scratch.save((step, number))?;
                }
            }
            Err(AppError::message("the job is cut off"))
        });
        let app = app.described(AppInfo::distributed);
        sde.run(&app, &x(1)).unwrap_err();
        y(&sde.run(&app, &x(1)).unwrap()).unwrap()
    });
    all_are(&results, &30);
}

#[sde::app(name = "ranks.scratch.part", distributed)]
fn in_a_part(sde: &Handle, loads: bool) -> Result<bool, AppError> {
    let color = sde.rank()? as u32;
    let mut failed = false;
    sde.split_for(color, 0, |part| {
        let scratch = part.scratch::<u32>();
        let done = if loads {
            scratch.load().map(drop)
        } else {
            scratch.save(1)
        };
        failed = done.is_err();
        Ok(())
    })?;
    Ok(failed)
}

/// Both parts have a first rank, and the states of both would be that of the run's.
pub(super) fn a_part_of_the_ranks_has_no_scratch_of_their_run(ranks: Ranks<'_>) {
    let failed = ranks.run(|sde| [true, false].map(|loads| *in_a_part.call(&sde, loads).unwrap()));
    all_are(&failed, &[true; 2]);
}

/// The records of ranks had the time of the last job alone.
pub(super) fn a_run_that_went_on_took_what_all_its_legs_took(ranks: Ranks<'_>) {
    const HOUR: Duration = Duration::from_secs(3600);
    for (first, second) in [(3, 3), (3, 2), (2, 4)] {
        let folder = ranks.folder();
        let store = folder.path().join("store");
        let leg = |size: usize, is_last: bool| {
            ranks.resized(size).run_ranks(|rank| {
                let sde = over(rank, &EventLog::new(), &store);
                let app = number("scratch.legs", move |sde, _| {
                    let scratch = sde.scratch::<u64>().replicated();
                    let leg = scratch.resume_or(|| 0)? + 1;
                    // The last rank is the slowest.
                    let slow = sde.rank()? + 1 == sde.ranks()?;
                    sde.took(if slow { HOUR } else { HOUR / 2 });
                    scratch.save(leg)?;
                    sde.gather("legs", leg)?;
                    match is_last {
                        true => Ok(leg),
                        false => Err(AppError::message("the job is cut off")),
                    }
                });
                let app = app.described(AppInfo::distributed);
                assert_eq!(sde.run(&app, &x(1)).is_ok(), is_last);
                let took = crate::records(&sde).first().map(|record| record.took);
                sde.finish().unwrap();
                took
            })
        };
        leg(first, false);
        for (rank, took) in leg(second, true).into_iter().enumerate() {
            let own = if rank + 1 == second { HOUR } else { HOUR / 2 };
            let more = took.unwrap().checked_sub(HOUR + own);
            assert!(more.is_some_and(|more| more < HOUR / 4), "{rank}: {took:?}");
        }
    }
}
