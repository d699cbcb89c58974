//! Row 23: `sde exec`, as whole processes.
//!
//! `./bench commands` builds the program `sde` and runs this, which takes it from beside its own folder.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sde_benches::table::{Aim, Row, print_head};
use sde_benches::{Measured, Tries};

const TRUE: &str = "`/bin/true`";
const ALONE: &str = "the program alone";
const HIT: &str = "a hit";
const COLD: &str = "a hit with no digests of programs kept";
const MISS: &str = "a miss";
const MOST: f64 = 10e6;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let sde = program();
    // Digests of what was just made are not kept.
    let data = folder.path().join("data");
    std::fs::write(&data, vec![b'x'; 1 << 20]).unwrap();
    let (number, cold) = (Cell::new(0), Cell::new(0));
    let exec = |options: &[&str], cache: &Path| {
        let mut command = Command::new(&sde);
        command
            .args(["exec", "--store"])
            .arg(folder.path().join("store.sde"))
            .args(options);
        command
            .args(["--", "wc", "-c", "data"])
            .current_dir(folder.path());
        command.env("XDG_CACHE_HOME", cache);
        took(&mut command)
    };
    let kept = folder.path().join("kept");
    exec(&[], &kept);
    let mut tries = Tries::new(40, Duration::from_secs(60));
    tries.case(TRUE, || took(&mut Command::new("/bin/true")));
    tries.case(ALONE, || {
        took(
            Command::new("wc")
                .args(["-c", "data"])
                .current_dir(folder.path()),
        )
    });
    tries.case(HIT, || exec(&[], &kept));
    tries.case(COLD, || {
        cold.set(cold.get() + 1);
        exec(&[], &folder.path().join(format!("cold-{}", cold.get())))
    });
    tries.case(MISS, || {
        number.set(number.get() + 1);
        exec(&["--env", &format!("N={}", number.get())], &kept)
    });
    let measured = tries.run();
    print_head();
    row(&measured, HIT, TRUE, Aim::Nanoseconds(MOST)).print();
    row(&measured, COLD, TRUE, Aim::Shown).print();
    row(&measured, MISS, ALONE, Aim::Nanoseconds(MOST)).print();
}

fn row(measured: &Measured, work: &str, reference: &str, aim: Aim) -> Row {
    Row {
        number: 23,
        work: format!("`sde exec -- wc -c data`, 1 MiB: {work}, more than the reference"),
        reference: reference.to_owned(),
        ratio: None,
        aim,
        time: measured.of_each_round([work, reference], |[work, reference]| work - reference),
        reference_time: measured.nanoseconds(reference),
    }
}

fn took(command: &mut Command) -> Duration {
    let begin = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .status();
    assert!(status.unwrap().success(), "{command:?}");
    begin.elapsed()
}

fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("sde");
    assert!(
        program.exists(),
        "{} is built by `./bench commands`",
        program.display()
    );
    program
}
