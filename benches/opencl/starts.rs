//! Row 17: from the beginning of a process until its kernels have run once.
//!
//! Cold: the driver builds from source, with an empty cache of its own. Driver-warm: the same, with all kernels in the
//! driver's cache. Ours: the driver's cache is empty, and the kernel cache has all kernels, captured
//! after a launch. Each time is of a process of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sde_benches::table::{Aim, Row};
use sde_benches::{Measured, Tries};
use tempfile::TempDir;

use crate::child::{CACHE, SOURCE, TOGETHER, start};

const COLD: &str = "from source, cold";
const WARM: &str = "from source, the driver's cache warm";
const OURS: &str = "kernel cache, new process";
const AT_ONCE: &str = "kernel cache, new process, all at once";
const EMPTY: &str = "kernel cache, empty";
const MEMORY: &str = "kernel cache, in memory";
const FIRST: &str = "the first launch";

/// The number of kernels, the rounds, and the time after which no new round begins.
const SIZES: [(usize, usize, Duration); 3] = [
    (1, 11, Duration::from_secs(60)),
    (8, 7, Duration::from_secs(90)),
    (64, 3, Duration::from_secs(240)),
];

/// The folders that an earlier start filled.
struct Left {
    _folder: TempDir,
    cache: PathBuf,
    drivers: PathBuf,
}

impl Left {
    fn new(count: usize) -> Self {
        let folder = folder();
        let [cache, drivers, own] =
            ["cache", "drivers", "own"].map(|name| folder.path().join(name));
        for dir in [&drivers, &own] {
            std::fs::create_dir(dir).expect("a folder");
        }
        start(SOURCE, count, folder.path(), &drivers);
        start(CACHE, count, &cache, &own);
        Self {
            _folder: folder,
            cache,
            drivers,
        }
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn measure(count: usize, rounds: usize, limit: Duration) -> Measured {
    let left = Left::new(count);
    let ours = |cache: &Path| start(CACHE, count, cache, folder().path());
    let mut tries = Tries::new(rounds, limit);
    tries.case(COLD, || {
        start(SOURCE, count, folder().path(), folder().path()).all
    });
    tries.case(WARM, || {
        start(SOURCE, count, &left.cache, &left.drivers).all
    });
    tries.case(OURS, || ours(&left.cache).all);
    tries.case(AT_ONCE, || {
        start(TOGETHER, count, &left.cache, folder().path()).all
    });
    tries.case(EMPTY, || ours(folder().path()).all);
    tries.case(MEMORY, || ours(&left.cache).again);
    tries.case(FIRST, || ours(&left.cache).first_launch);
    tries.run()
}

/// The rows of each number of kernels, each as soon as it is measured.
pub fn rows() -> impl Iterator<Item = Row> {
    SIZES
        .into_iter()
        .flat_map(|(count, rounds, limit)| rows_of(count, measure(count, rounds, limit)))
}

fn rows_of(count: usize, measured: Measured) -> Vec<Row> {
    let kernels = match count {
        1 => "1 kernel".to_owned(),
        more => format!("{more} kernels"),
    };
    let mut rows: Vec<Row> = [
        (OURS, COLD, Aim::Faster),
        (OURS, WARM, Aim::Faster),
        (AT_ONCE, OURS, Aim::Shown),
        (EMPTY, COLD, Aim::Shown),
        (MEMORY, WARM, Aim::Shown),
    ]
    .into_iter()
    .map(|(work, reference, aim)| Row {
        number: 17,
        work: format!("{kernels}: {work}"),
        reference: reference.to_owned(),
        ratio: measured.ratio(work, reference),
        aim,
        time: measured.nanoseconds(work),
        reference_time: measured.nanoseconds(reference),
    })
    .collect();
    if count == 1 {
        rows.push(Row {
            number: 17,
            work: format!("{FIRST} of these processes, until it is finished"),
            reference: "-".to_owned(),
            ratio: None,
            aim: Aim::Nanoseconds(1e7),
            time: measured.nanoseconds(FIRST),
            reference_time: None,
        });
    }
    rows
}
