//! Ranks that do not do what the others do.

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use super::on_ranks;
use sde::{ErrorKind, Event, GroupError, Handle, Sde, ThreadGroup};
use sde_archives::Cbor;

#[sde::app(name = "ranks.errors.sum", distributed)]
fn sum(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(sde.gather("terms", x)?.iter().map(|term| **term).sum())
}

#[sde::app(name = "ranks.errors.other", distributed)]
fn other(x: u64) -> u64 {
    x
}

/// The same error on all, at once, and the program can go on.
#[test]
fn ranks_that_call_different_things_get_the_same_error() {
    let texts = on_ranks(3, |sde| {
        let rank = sde.rank().unwrap();
        let error = match rank {
            0 | 1 => sum.call(&sde, 1).map(drop).unwrap_err(),
            _ => other.call(&sde, 1).map(drop).unwrap_err(),
        };
        assert!(matches!(error.kind(), ErrorKind::Disagree { .. }));
        assert_eq!(*sum.call(&sde, 1).unwrap(), 3);
        error.to_string()
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
    for part in [
        "rank 0 runs ranks.errors.sum [",
        "rank 2 runs ranks.errors.other [",
    ] {
        assert!(texts[0].contains(part), "{}", texts[0]);
    }
}

#[test]
fn ranks_that_give_different_inputs_get_the_same_error() {
    let texts = on_ranks(2, |sde| {
        let x = sde.rank().unwrap() as u64;
        sum.call(&sde, x).unwrap_err().to_string()
    });
    assert_eq!(texts[0], texts[1]);
}

/// One that returns early is missed by name.
#[test]
fn a_rank_that_leaves_is_named_and_waited_for_by_nobody() {
    let errors = on_ranks(3, |sde| {
        if sde.rank().unwrap() == 2 {
            return None;
        }
        let first = sum.call(&sde, 1).unwrap_err();
        let second = sde.finish().unwrap_err();
        assert_eq!(first.to_string(), second.to_string());
        Some(first)
    });
    for error in errors.into_iter().flatten() {
        let ErrorKind::Ranks { source, .. } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!(*source, GroupError::Left { rank: 2 });
    }
}

#[test]
fn a_rank_that_is_late_is_named_by_those_who_wait() {
    let (say, heard) = mpsc::channel();
    let heard = Mutex::new(heard);
    ThreadGroup::run(2, |group| {
        let is_late = sde::ProcessGroup::rank(&group) == 1;
        let say = say.clone();
        let observer = move |event: &Event| {
            if let Event::Warning { message } = event {
                let _ = say.send(message.clone());
            }
        };
        let builder = Sde::builder().observer(observer).process_group(group, Cbor);
        let sde = builder
            .rank_patience(Duration::from_millis(1))
            .build()
            .unwrap();
        if is_late {
            let message = heard.lock().unwrap().recv().unwrap();
            assert!(message.contains("runs ranks.errors.sum ["), "{message}");
            assert!(message.contains("waits for rank 1"), "{message}");
        }
        assert_eq!(*sum.call(&sde, 2).unwrap(), 4);
    });
}
