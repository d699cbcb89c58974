//! Archives of their own: when one is acknowledged it is on the medium, with all results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::SavePolicy;
use sde_archives::{DirStore, StoreOptions};

use crate::engine::{all_load, engine, expected, open, page};
use crate::kit::{CHANGING, Call, Error, HOME, Order, Sim, Then};

const PAGES: u64 = 5;

/// A medium with a store on it, and the engine that made it.
fn saved() -> (Sim, sde::Sde) {
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::EveryResult);
    for number in 0..PAGES {
        page.call(&sde, number).unwrap();
    }
    sde.archive().unwrap();
    (sim, sde)
}

fn there() -> PathBuf {
    Path::new(HOME).join("published")
}

fn open_published(sim: &Sim, dir: &Path) -> Result<DirStore, sde::archiver::ArchiveError> {
    let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
    options.read_only().open(dir)
}

/// Without the last sync its FORMAT file is lost, and it is refused.
#[test]
fn an_archive_is_there_after_a_power_failure() {
    let (sim, sde) = saved();
    sde.archive_to(there()).unwrap();
    for seed in 0..50 {
        let left = sim.power_loss(seed);
        all_load(open_published(&left, &there()).unwrap(), 0..PAGES);
    }
    let sites = sim.sync_sites().into_keys();
    let last: Vec<_> = sites
        .filter(|site| site.0.ends_with("archive.rs"))
        .collect();
    assert_eq!(last.len(), 1);
    std::mem::forget(sde);

    let (sim, sde) = saved();
    sim.leave_out(last[0].clone());
    sde.archive_to(there()).unwrap();
    let is_lost = |seed| open_published(&sim.power_loss(seed), &there()).is_err();
    assert!((0..50).any(is_lost), "nobody misses it");
    std::mem::forget(sde);
}

/// A segment that is left after an error has no index, and what was acknowledged in it counts.
#[test]
fn what_was_saved_before_an_error_is_in_it() {
    let (sim, sde) = saved();
    sim.order(Order::of(&[Call::Write], 1, Then::Fail(Error::Io)));
    assert_eq!(*page.call(&sde, PAGES).unwrap(), expected(PAGES));
    sim.no_orders();
    sde.archive_to(there()).unwrap();
    all_load(open_published(&sim, &there()).unwrap(), 0..PAGES + 1);
    std::mem::forget(sde);
}

/// What an archive of its own has begun, and can't finish, is removed: there it is tried again.
#[test]
fn an_archive_that_failed_leaves_nothing_in_its_way() {
    let (sim, sde) = saved();
    let mut failures = 0;
    for at in 1.. {
        let there = Path::new(HOME).join(format!("published {at}"));
        let before = sim.count(CHANGING);
        sim.order(Order::of(CHANGING, at, Then::Fail(Error::Full)));
        let archived = sde.archive_to(&there);
        let came = sim.count(CHANGING) - before >= at;
        sim.no_orders();
        // An error that comes after all is written leaves a store, which is no harm.
        if archived.is_err() && open_published(&sim, &there).is_err() {
            failures += 1;
            sde.archive_to(&there).unwrap();
        }
        all_load(open_published(&sim, &there).unwrap(), 0..PAGES);
        if !came {
            break;
        }
    }
    assert!(failures > 10, "{failures}");
    assert_eq!(sim.misdeeds(), [""; 0]);
    std::mem::forget(sde);
}

/// It said that all was well, and lacked what was in the segment.
#[test]
fn an_archive_is_not_made_of_segments_that_cannot_be_read() {
    let (sim, sde) = saved();
    std::mem::forget(sde);
    let mut refused = 0;
    for at in 1.. {
        let there = Path::new(HOME).join(format!("published {at}"));
        let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
        let before = sim.count(&[Call::Open]);
        sim.order(Order::of(&[Call::Open], at, Then::Fail(Error::Io)));
        let archived = sde.archive_to(&there);
        let came = sim.count(&[Call::Open]) - before >= at;
        sim.no_orders();
        match archived {
            Ok(()) => all_load(open_published(&sim, &there).unwrap(), 0..PAGES),
            Err(_) => refused += 1,
        }
        std::mem::forget(sde);
        if !came {
            break;
        }
    }
    assert!(refused > 1, "{refused}");
}

/// It is stopped in each of its calls, and goes on when it is called again.
#[test]
fn a_copy_that_was_cut_short_goes_on() {
    let (sim, sde) = saved();
    let target = Path::new(HOME).join("target");
    let on = |sim: &Sim, dir: &Path| StoreOptions::new().vfs(Arc::new(sim.clone())).open(dir);
    let copy = |sim: &Sim| {
        let from = open_published(sim, Path::new(HOME).join("store").as_path())?;
        on(sim, &target)?.copy_from(&from, |_| true)
    };
    let mut cut = 0;
    for at in 1.. {
        let process = sim.power_loss(at);
        process.order(Order::of(CHANGING, at, Then::PowerOff));
        let came = copy(&process).is_err();
        let left = process.power_loss(at);
        cut += usize::from(came);
        copy(&left).unwrap();
        all_load(on(&left, &target).unwrap(), 0..PAGES);
        assert_eq!(copy(&left).unwrap().entries, 0);
        if !came {
            break;
        }
    }
    assert!(cut > 10, "{cut}");
    std::mem::forget(sde);
}
