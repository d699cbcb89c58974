//! Runs that all ranks make together.

use std::cell::Cell;

use super::{Rank, Ranks, all_are, names};
use crate::{assert_kind, one_says, says};
use sde::archiver::MemoryArchiver;
use sde::{AppError, ErrorKind, Handle, Policy, SavePolicy, Sde, Source, inputs};

/// How many ranks ran it together.
#[sde::app(name = "ranks.runs.count", distributed)]
fn count(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    let numbers = sde.gather("numbers", x)?;
    Ok(numbers.iter().map(|number| **number).sum())
}

#[sde::app(name = "ranks.runs.outer", distributed)]
fn outer(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(*count.call(sde, x)? + *half(sde, x)?)
}

fn half(sde: &Handle, x: u64) -> Result<sde::Value<u64>, sde::Error> {
    halved.call(sde, x)
}

#[sde::app(name = "ranks.runs.halved")]
fn halved(x: u64) -> u64 {
    x / 2
}

#[sde::app(name = "ranks.runs.ordinary")]
fn ordinary(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(*count.call(sde, x)?)
}

#[sde::app(name = "ranks.runs.asks")]
fn asks(sde: &Handle) -> Result<u64, sde::Error> {
    Ok(sde.rank()? as u64)
}

pub(super) fn all_ranks_run_it_and_all_remember_it(ranks: Ranks<'_>) {
    let sources = ranks.run_with_log(|sde, log| {
        for _ in 0..2 {
            assert_eq!(*outer.call(&sde, 4).unwrap(), 14);
        }
        sde.finish().unwrap();
        names(log.sources("ranks.runs.outer"))
    });
    for of_rank in sources {
        assert_eq!(of_rank, names([Source::Computed, Source::Memory]));
    }
}

/// A rank that has it while another has not would leave that one waiting in the body.
pub(super) fn it_is_a_hit_only_where_all_hit(ranks: Ranks<'_>) {
    let sources = ranks.run_with_log(|sde, log| {
        count.call(&sde, 1).unwrap();
        if sde.rank().unwrap() == 1 {
            sde.clear_app("ranks.runs.count").unwrap();
        }
        assert_eq!(*count.call(&sde, 1).unwrap(), 3);
        count.call(&sde, 1).unwrap();
        names(log.sources("ranks.runs.count"))
    });
    for of_rank in sources {
        assert_eq!(
            of_rank,
            names([Source::Computed, Source::Computed, Source::Memory])
        );
    }
}

/// How often this rank has run it.
#[sde::app(name = "ranks.runs.varying", distributed)]
fn varying() -> u64 {
    thread_local! {
        static CALLS: Cell<u64> = const { Cell::new(0) };
    }
    CALLS.replace(CALLS.get() + 1)
}

/// Each rank has both.
pub(super) fn two_computations_of_a_run_are_compared(ranks: Ranks<'_>) {
    let differing = ranks.run(|sde| {
        let inputs = inputs! {};
        for policy in [Policy::Use, Policy::Refresh] {
            let request = sde.request(&varying, &inputs).policy(policy);
            request.run().unwrap();
        }
        sde.stats().total.differing
    });
    all_are(&differing, &1);
}

/// One computation has one name on all ranks.
pub(super) fn all_ranks_have_one_computation(ranks: Ranks<'_>) {
    let runs = ranks.run(|sde| {
        let inputs = inputs! { x: 2_u64 };
        let first = sde.request(&count, &inputs).run().unwrap().made_by;
        let again = sde.request(&count, &inputs).policy(Policy::Refresh).run();
        let again = again.unwrap().made_by;
        assert_ne!(first, again);
        let last = sde
            .request(&count, &inputs)
            .policy(Policy::OnlyIfRemembered);
        assert_eq!(last.run().unwrap().made_by, again);
        [first, again]
    });
    assert_eq!(runs[0], runs[1]);
}

pub(super) fn only_if_remembered_fails_alike_where_one_rank_has_nothing(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        count.call(&sde, 5).unwrap();
        if sde.rank().unwrap() == 0 {
            sde.clear_app("ranks.runs.count").unwrap();
        }
        let inputs = inputs! { x: 5_u64 };
        let asked = sde
            .request(&count, &inputs)
            .policy(Policy::OnlyIfRemembered);
        let error = asked.run().unwrap_err();
        assert_kind!(error, NotRemembered);
    });
}

/// One that asks only for what is remembered would not be in the body in which others wait for it.
pub(super) fn ranks_that_ask_otherwise_get_the_same_error(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let first = sde.rank().unwrap() == 0;
        let inputs = inputs! { x: 6_u64 };
        let ask = |policy| sde.request(&count, &inputs).policy(policy).run().map(drop);
        let mut texts = Vec::new();
        for policy in [Policy::OnlyIfRemembered, Policy::Bypass, Policy::Refresh] {
            let error = ask(if first { policy } else { Policy::Use }).unwrap_err();
            assert_kind!(error, Disagree);
            texts.push(format!("{error:#}"));
        }
        assert_eq!(sde.stats().total.computed, 0);
        ask(Policy::Bypass).unwrap();
        // Which results each wants is its own affair.
        match first {
            true => ask(Policy::Use).unwrap(),
            false => drop(count.call(&sde, 6).unwrap()),
        }
        ask(Policy::OnlyIfRemembered).unwrap();
        assert_eq!(sde.stats().total.computed, 2);
        texts
    });
    all_are(&texts, &texts[0]);
    let first = &texts[0][0];
    says(&first, "rank 0 runs ranks.runs.count, only if remembered [");
}

/// On one process too: a program is not to fail only when it runs on many.
pub(super) fn an_ordinary_app_can_not_run_a_distributed_one_or_ask_for_its_rank(ranks: Ranks<'_>) {
    let check = |sde: &Handle| {
        let error = ordinary.call(sde, 1).unwrap_err();
        let cause = error.app_error::<sde::Error>().unwrap();
        assert_kind!(cause, NotDistributed);
        says(cause, "ranks.runs.ordinary [");
        says(cause, "declare ranks.runs.ordinary `distributed`");
        let error = asks.call(sde).unwrap_err();
        let cause = error.app_error::<sde::Error>().unwrap();
        says(cause, "declare ranks.runs.asks `distributed`");
    };
    ranks.run(|sde| check(&sde));
    check(&sde::Sde::new());
}

pub(super) fn a_collective_run_off_the_main_order_is_an_error_at_once(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let results = sde.par_each(&[1_u64, 2], |sde, x| count.call(sde, *x).map(|sum| *sum));
        let (a, b) = sde.join(|sde| sde.rank().map(drop), |sde| sde.rank().map(drop));
        let errors = results
            .into_iter()
            .map(|result| result.map(drop))
            .chain([a, b]);
        for error in errors {
            let error = error.unwrap_err();
            assert_kind!(error, NotCollective);
        }
        let elsewhere = std::thread::scope(|scope| {
            let call = scope.spawn(|| count.call(&sde, 3).map(|sum| *sum));
            call.join().unwrap()
        });
        assert!(elsewhere.is_err());
        assert_eq!(*count.call(&sde, 3).unwrap(), 6);
    });
}

/// Ordinary runs never wait for other ranks.
pub(super) fn ranks_that_miss_different_keys_never_hang(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap() as u64;
        for x in 0..50 {
            let x = (x * 7 + rank * 13) % 50;
            assert_eq!(*halved.call(&sde, x).unwrap(), x / 2);
        }
        sde.finish().unwrap();
    });
}

#[sde::app(name = "ranks.runs.fails", distributed)]
fn fails(sde: &Handle, on: u64) -> Result<u64, AppError> {
    let rank = sde.rank()? as u64;
    let before = sde.gather("before", rank)?;
    if rank == on {
        return Err(AppError::message("the disk is on fire"));
    }
    // The others are in the middle of the body when that happens.
    let after = sde.gather("after", rank)?;
    Ok((before.len() + after.len()) as u64)
}

pub(super) fn what_fails_on_one_rank_fails_on_all(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let error = fails.call(&sde, 1).unwrap_err();
        assert_eq!(*count.call(&sde, 1).unwrap(), 3);
        assert_eq!(*fails.call(&sde, 17).unwrap(), 6);
        format!("{error:#}")
    });
    one_says(&texts, "the disk is on fire");
    assert!(
        texts.iter().all(|text| text.contains("rank 1")),
        "{texts:?}"
    );
}

#[sde::app(name = "ranks.runs.wrong", distributed)]
fn wrong(sde: &Handle, of_all: bool) -> Result<u64, AppError> {
    let error = AppError::message("there is no such basis");
    match of_all || sde.rank()? == 0 {
        true => Err(error.permanent()),
        false => Err(error),
    }
}

/// If one rank alone remembers it, the others do not know whether it would come again.
pub(super) fn what_would_fail_again_on_all_ranks_is_not_run_again(ranks: Ranks<'_>) {
    let size = ranks.size();
    ranks.run_with_log(|sde, log| {
        let started = |of_all| {
            let _ = log.take();
            let texts = [1, 2].map(|_| format!("{:#}", wrong.call(&sde, of_all).unwrap_err()));
            assert_eq!(texts[0], texts[1]);
            says(&texts[0], "no such basis");
            log.started("ranks.runs.wrong")
        };
        assert_eq!(started(true), 1);
        assert_eq!(started(false), if size == 1 { 1 } else { 2 });
        if sde.rank().unwrap() == 0 {
            sde.clear_app("ranks.runs.wrong").unwrap();
        }
        assert_eq!(started(true), 1);
    });
}

/// A rank that goes on although a call failed gets the same error until its body ends.
#[sde::app(name = "ranks.runs.stubborn", distributed)]
fn stubborn(sde: &Handle) -> Result<u64, AppError> {
    if sde.rank()? == 0 {
        return Err(AppError::message("it gives up"));
    }
    let first = format!("{:#}", sde.gather("a", 1_u64).unwrap_err());
    let second = format!("{:#}", count.call(sde, 9).unwrap_err());
    assert_eq!(first, second);
    Ok(0)
}

pub(super) fn a_rank_that_goes_on_after_a_failure_holds_up_nobody(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        assert!(stubborn.call(&sde).is_err());
        assert_eq!(*count.call(&sde, 1).unwrap(), 3);
    });
}

#[sde::app(name = "ranks.runs.panics", distributed)]
fn panics(sde: &Handle) -> Result<u64, AppError> {
    assert_ne!(sde.rank()?, 1, "a rank panics");
    Ok(*count.call(sde, 1)?)
}

pub(super) fn a_panic_on_one_rank_is_an_error_on_the_others(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let sde = &sde;
        let called = std::panic::AssertUnwindSafe(|| panics.call(sde).map(|x| *x));
        let caught = std::panic::catch_unwind(called);
        match sde.rank().unwrap() {
            1 => assert!(caught.is_err()),
            _ => assert!(caught.unwrap().is_err()),
        }
        assert_ne!(sde.stats().total.failures, 0);
        assert_eq!(*count.call(sde, 1).unwrap(), 3);
    });
}

#[sde::app(name = "ranks.runs.own", distributed)]
fn own(sde: &Handle) -> Result<u64, sde::Error> {
    Ok(sde.rank()? as u64 / 2)
}

/// One of them would be saved as the result for all.
pub(super) fn results_that_differ_between_ranks_are_an_error_and_not_remembered(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        for _ in 0..2 {
            let error = own.call(&sde).unwrap_err();
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorKind::Replicas { rank: 2, .. }),
                "{error}"
            );
        }
        assert_eq!(*count.call(&sde, 1).unwrap(), 3);
        let records = crate::records(&sde);
        assert!(
            records
                .iter()
                .all(|record| &*record.app != "ranks.runs.own")
        );
    });
}

/// A disk that fails is one rank's, and the error all ranks': whichever rank it is.
pub(super) fn a_save_that_fails_on_one_rank_is_the_same_error_on_all(ranks: Ranks<'_>) {
    for broken in 0..ranks.size() {
        let texts = ranks.run_ranks(|rank| fail_to_save(rank, broken));
        let on = format!("on rank {broken}: ");
        assert!(texts[0][0].contains(&on), "{texts:?}");
        all_are(&texts, &texts[0]);
    }
}

fn fail_to_save(rank: Rank, broken: usize) -> [String; 2] {
    let store = sde::archiver::MemoryArchiver::new();
    let is_broken = rank.number() == broken;
    let builder = sde::Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = rank.join(builder).build().unwrap();
    halved.call(&sde, 8).unwrap();
    if is_broken {
        store.fail_next_save();
    }
    let first = format!("{:#}", sde.checkpoint_all().unwrap_err());
    sde.checkpoint_all().unwrap();
    if is_broken {
        store.fail_next_save();
    }
    let last = format!("{:#}", sde.finish().unwrap_err());
    sde.finish().unwrap();
    [first, last]
}

/// Runs it, says that it was wrong, and tells what came of that and how often it was computed.
fn invalidate(sde: &Sde) -> (Result<Vec<String>, String>, u64) {
    let inputs = inputs! { x: 1_u64 };
    outer.call(sde, 1).unwrap();
    let key = sde.request(&count, &inputs).run().unwrap().key;
    let said = sde.invalidate(&key, "it was wrong");
    sde.gather("all have said so", 0_u8).unwrap();
    sde.run(&count, &inputs).unwrap();
    let names = |said: sde::record::Invalidated| {
        let dependents = said.dependents.into_iter();
        dependents.map(|(app, _)| app.to_string()).collect()
    };
    let computed = sde.stats().apps["ranks.runs.count"].computed;
    (
        said.map(names).map_err(|error| format!("{error:#}")),
        computed,
    )
}

/// Found by a program whose result of all ranks was wrong: there was said to be none, and it stayed in use.
pub(super) fn what_ranks_made_together_can_be_said_to_be_wrong(ranks: Ranks<'_>) {
    for (said, computed) in ranks.run(|sde| invalidate(&sde)) {
        assert_eq!(said, Ok(vec!["ranks.runs.outer".to_owned()]));
        assert_eq!(computed, 2);
    }
}

/// The same with a store: it went well on rank 0 and failed on rank 1, so that `?` parted them.
pub(super) fn what_ranks_made_together_is_said_to_be_wrong_by_all_or_none(ranks: Ranks<'_>) {
    let said = ranks.run_ranks(|rank| {
        let builder = Sde::builder()
            .store(MemoryArchiver::new())
            .save(SavePolicy::OnRequest);
        let builder = builder.save(SavePolicy::EveryResult);
        invalidate(&rank.join(builder).build().unwrap()).0.is_ok()
    });
    assert!(said.iter().all(|is_said| *is_said), "{said:?}");
}
