//! Ranks that do not do what the others do.

use std::path::Path;
use std::time::Duration;

use super::{Rank, Ranks};
use crate::until;
use sde::{ErrorKind, Event, GroupError, Handle, Sde};

#[sde::app(name = "ranks.errors.sum", distributed)]
fn sum(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(sde.gather("terms", x)?.iter().map(|term| **term).sum())
}

#[sde::app(name = "ranks.errors.other", distributed)]
fn other(x: u64) -> u64 {
    x
}

/// The same error on all, at once, and the program can go on.
pub(super) fn ranks_that_call_different_things_get_the_same_error(ranks: Ranks<'_>) {
    let size = ranks.size() as u64;
    let texts = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let error = match rank {
            0 | 1 => sum.call(&sde, 1).map(drop).unwrap_err(),
            _ => other.call(&sde, 1).map(drop).unwrap_err(),
        };
        assert!(matches!(error.kind(), ErrorKind::Disagree { .. }));
        assert_eq!(*sum.call(&sde, 1).unwrap(), size);
        error.to_string()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    for part in [
        "rank 0 runs ranks.errors.sum [",
        "rank 2 runs ranks.errors.other [",
    ] {
        assert!(texts[0].contains(part), "{}", texts[0]);
    }
}

/// Values of two names are no answer to one another, nor are two types of one name.
pub(super) fn ranks_that_gather_different_things_get_the_same_error(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let is_first = sde.rank().unwrap() == 0;
        let what = if is_first { "energies" } else { "forces" };
        let error = sde.gather(what, 1.0_f64).map(drop).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Disagree { .. }),
            "{error}"
        );
        let error = match is_first {
            true => sde.gather("numbers", 1_u64).map(drop),
            false => sde.gather("numbers", 1_u32).map(drop),
        };
        let error = error.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Disagree { .. }),
            "{error}"
        );
        assert!(sde.gather("numbers", 1_u64).is_ok());
    });
}

pub(super) fn ranks_that_give_different_inputs_get_the_same_error(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let x = sde.rank().unwrap() as u64;
        sum.call(&sde, x).unwrap_err().to_string()
    });
    assert_eq!(texts[0], texts[1]);
}

/// One that returns early is missed by name.
pub(super) fn a_rank_that_leaves_is_named_and_waited_for_by_nobody(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        if sde.rank().unwrap() == 2 {
            return;
        }
        let first = sum.call(&sde, 1).unwrap_err();
        let second = sde.finish().unwrap_err();
        assert_eq!(first.to_string(), second.to_string());
        let ErrorKind::Ranks { source, .. } = first.kind() else {
            panic!("{first}");
        };
        assert_eq!(*source, GroupError::Left { rank: 2 });
    });
}

/// What the one who waits says is a file, that the late one waits for: they may be two processes.
pub(super) fn a_rank_that_is_late_is_named_by_those_who_wait(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let said = folder.path().join("said");
    ranks.run_ranks(|rank| be_late(rank, &said));
}

fn be_late(rank: Rank, said: &Path) {
    let is_late = rank.number() == 1;
    let file = said.to_owned();
    let observer = move |event: &Event| {
        if let Event::Warning { message } = event {
            let part = file.with_extension("part");
            std::fs::write(&part, message).unwrap();
            std::fs::rename(part, &file).unwrap();
        }
    };
    let builder = rank.join(Sde::builder().observer(observer));
    let patience = Duration::from_millis(1);
    let sde = builder.rank_patience(patience).build().unwrap();
    if is_late {
        until("the other rank names this one", || said.exists());
        let message = std::fs::read_to_string(said).unwrap();
        assert!(message.contains("runs ranks.errors.sum ["), "{message}");
        assert!(message.contains("waits for rank 1"), "{message}");
    }
    assert_eq!(*sum.call(&sde, 2).unwrap(), 4);
}
