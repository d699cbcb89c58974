//! Ranks that do not do what the others do.

use std::path::Path;
use std::time::Duration;

use super::{Rank, Ranks, all_are};
use crate::{assert_kind, says, until};
use sde::ranks::GroupError;
use sde::{AppError, Error, ErrorKind, Event, Handle, InputFile, Sde, inputs};

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
        assert_kind!(error, Disagree);
        assert_eq!(*sum.call(&sde, 1).unwrap(), size);
        format!("{error:#}")
    });
    all_are(&texts, &texts[0]);
    for part in [
        "rank 0 runs ranks.errors.sum [",
        "rank 2 runs ranks.errors.other [",
    ] {
        says(&texts[0], part);
    }
}

/// Values of two names are no answer to one another, nor are two types of one name.
pub(super) fn ranks_that_gather_different_things_get_the_same_error(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let is_first = sde.rank().unwrap() == 0;
        let what = if is_first { "energies" } else { "forces" };
        let error = sde.gather(what, 1.0_f64).map(drop).unwrap_err();
        assert_kind!(error, Disagree);
        let error = match is_first {
            true => sde.gather("numbers", 1_u64).map(drop),
            false => sde.gather("numbers", 1_u32).map(drop),
        };
        let error = error.unwrap_err();
        assert_kind!(error, Disagree);
        assert!(sde.gather("numbers", 1_u64).is_ok());
    });
}

#[sde::app(name = "ranks.errors.weighted", distributed)]
fn weighted(points: &[f64], weight: f64, step: u64) -> f64 {
    points[0] * weight + step as f64
}

#[sde::app(name = "ranks.errors.difference", distributed)]
fn difference(sde: &Handle, a: u64, b: u64) -> Result<u64, sde::Error> {
    let terms = sde.gather("terms", a - b)?;
    Ok(terms.iter().map(|term| **term).sum())
}

/// The order of the inputs may differ from rank to rank, since they are keyed in that of the app.
pub(super) fn inputs_are_held_against_the_app_before_ranks_meet(ranks: Ranks<'_>) {
    let size = ranks.size() as u64;
    ranks.run(|sde| {
        let wrong = inputs! { a: 3_u64, c: 1_u64 };
        assert_kind!(sde.run(&difference, &wrong).unwrap_err(), UnknownName);
        let inputs = match sde.rank().unwrap() % 2 {
            0 => inputs! { a: 3_u64, b: 1_u64 },
            _ => inputs! { b: 1_u64, a: 3_u64 },
        };
        for _ in 0..2 {
            let results = sde.run(&difference, &inputs).unwrap();
            assert_eq!(*results.get::<u64>("result").unwrap(), 2 * size);
        }
        let list = [inputs.clone(), wrong, inputs.with("a", 4_u64)];
        let results = sde.par_map_on_sets(&difference, &list, 1);
        let are_well: Vec<_> = results.iter().map(Result::is_ok).collect();
        assert_eq!(are_well, [true, false, true]);
    });
}

/// Found by a user who was shown two digests, and had to find out himself in which of many inputs his ranks differed.
pub(super) fn ranks_that_give_different_inputs_get_the_same_error(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let mut points = vec![0.5; 100];
        let one = weighted.call(&sde, &points, 2.5, rank as u64).map(drop);
        points[99] = rank as f64;
        let long = weighted.call(&sde, &points, 2.5, 7).map(drop);
        let texts = [one, long].map(|failed| {
            let error = failed.unwrap_err();
            assert_kind!(error, Disagree);
            format!("{error:#}")
        });
        // Nothing is broken by that.
        assert_eq!(*sum.call(&sde, 2).unwrap(), 4);
        texts
    });
    assert_eq!(texts[0], texts[1]);
    let [one, long] = &texts[0];
    says(&one, "] with step = 0, rank 1 runs ranks.errors.weighted [");
    assert!(one.ends_with("] with step = 1"), "{one}");
    // It shows no difference in the first eighty characters.
    says(&long, "] with points = [f64; 100] 0.5, ");
    says(&long, "(digest ");
    let digests = long.split("(digest ").skip(1).map(|text| &text[..12]);
    let digests: Vec<_> = digests.collect();
    assert!(digests.len() == 2 && digests[0] != digests[1], "{long}");
}

/// It has no key for its inputs, which is not to be told as another key than that of the others.
pub(super) fn an_input_that_one_rank_can_not_read_is_that_error_on_all(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let path = folder.path().join("a file");
    ranks.once(|| std::fs::write(&path, "here").unwrap());
    let texts = ranks.run(|sde| {
        let missing = sde.rank().unwrap() == 1;
        let path = if missing {
            path.with_extension("other")
        } else {
            path.clone()
        };
        let inputs = inputs! { file: InputFile::new(path) };
        format!("{:#}", sde.run(&read, &inputs).unwrap_err())
    });
    for text in &texts {
        says(&text, "on rank 1: ");
        says(&text, "a file.other");
    }
}

#[sde::app(name = "ranks.errors.read", distributed)]
fn read(file: InputFile) -> String {
    file.path().display().to_string()
}

/// Found by a program of three ranks, in a part of which rank 1 was the first: its end was told as that of rank 0.
pub(super) fn a_rank_of_a_part_is_named_as_in_the_whole_program(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        let part = sde.split((rank != 0).into(), 0).unwrap();
        let said = |error: Error| format!("{error:#}");
        if rank > 0 {
            let text = match rank {
                1 => part.gather("a", 1_u64).map(drop),
                _ => part.gather("b", 1_u64).map(drop),
            };
            let text = text.map_err(said).unwrap_err();
            says(&text, "rank 1 gathers a, rank 2 gathers b");
            let text = fails.call(&part, 0).map(drop).map_err(said).unwrap_err();
            assert!(text.contains("on rank 1: ") || rank == 1, "{text}");
            let text = own.call(&part).map(drop).map_err(said).unwrap_err();
            says(&text, "on rank 2");
        }
        if rank == 1 {
            // As `?` would.
            drop(part);
        } else {
            if rank == 2 {
                let text = sum.call(&part, 1).map(drop).map_err(said).unwrap_err();
                says(&text, "rank 1 has left");
            }
            // The one that has dropped it does something else by now.
            drop(part);
        }
        assert_eq!(*sum.call(&sde, 1).unwrap(), 3);
    });
}

#[sde::app(name = "ranks.errors.own", distributed)]
fn own(sde: &Handle) -> Result<u64, Error> {
    Ok(sde.rank()? as u64)
}

#[sde::app(name = "ranks.errors.fails", distributed)]
fn fails(sde: &Handle, on: u64) -> Result<u64, AppError> {
    match sde.rank()? as u64 == on {
        true => Err(AppError::message("the disk is on fire")),
        false => Ok(*sde.gather("numbers", on)?[0]),
    }
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
        assert_eq!(*source, GroupError::left(2));
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
        if let Event::Warning { message, .. } = event {
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
        says(&message, "runs ranks.errors.sum [");
        says(&message, "waits for rank 1");
    }
    assert_eq!(*sum.call(&sde, 2).unwrap(), 4);
}
