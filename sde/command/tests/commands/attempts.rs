//! Runs that are made again, and that go on.

use sde_command::results::RULES_APP;

use crate::kit::{Lab, run};

#[test]
fn a_run_tells_why_attempts_before_it_failed() {
    let lab = Lab::new();
    let count = lab.path("count");
    let script = lab.script(
        "second",
        &format!("test $(wc -l < {}) -ge 2", count.display()),
    );
    let command = lab.command(&script).retry(3);
    let ran = lab.run(&command);
    assert_eq!(ran.attempts(), ["its exit status is 1 (status 1)"]);
    assert!(!ran.is_resumed());
    // It is remembered so.
    assert_eq!(lab.run(&command).attempts().len(), 1);
    assert_eq!(lab.runs(), 2);
}

/// Its result may be another than that of a run that goes on from nothing, so the two are not compared.
#[test]
fn a_run_that_goes_on_is_recorded_as_one_that_is_not_compared() {
    let lab = Lab::new();
    let go_on = "test -e dir/state || { mkdir -p dir; echo 1 > dir/state; kill -9 $$; }";
    let script = lab.script("goes-on", &format!("{go_on}\ncat dir/state"));
    let command = lab.command(&script).carry("dir/state").output("?dir");
    let error = lab.error(&command);
    assert!(error.contains("ended by signal 9"), "{error}");
    let ran = run(&command, &lab.sde);
    assert!(ran.is_resumed() && ran.attempts().is_empty());
    assert_eq!(ran.stdout().unwrap(), b"1\n");
    assert!(ran.undeclared().is_empty());
    let mut anew = Vec::new();
    lab.sde.records(|record| {
        if record.key == ran.key() && *record.app != *RULES_APP {
            anew.push(record.anew);
        }
    });
    assert_eq!(anew, [true]);
}
