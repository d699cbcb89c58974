//! Success is judged at each call.

use sde_command::CommandError;

use crate::kit::{Lab, text};

#[test]
fn values_are_numbers_where_they_read_as_such() {
    let lab = Lab::new();
    let script = lab.script(
        "job",
        "echo 'E = 1'; echo 'E = -0.5D+01 eV'; echo 'state: S1' >&2; echo 'n=7' > log",
    );
    let command = lab.command(&script).output("log");
    let command = command
        .get("energy", r"E = (\S+)")
        .get("state", r"state: (\w+)");
    let command = command.get("n", r"log:n=(\d+)").get("?none", "nothing");
    let ran = lab.run(&command);
    assert_eq!(ran.number("energy"), Some(-5.0));
    assert_eq!(ran.number("n"), Some(7.0));
    assert_eq!(format!("{:?}", ran.value("state").unwrap()), "Text(\"S1\")");
    assert!(ran.value("none").is_none());
    let names: Vec<&str> = ran.values().map(|(name, _)| name).collect();
    assert_eq!(names, ["energy", "n", "state"]);
}

#[test]
fn what_failed_runs_again_and_what_passes_now_is_a_hit() {
    let lab = Lab::new();
    let script = lab.script("job", "echo done; exit 3");
    let job = || lab.command(&script);
    assert!(lab.error(&job()).contains("its exit status is 3"));
    assert!(lab.error(&job()).contains("its exit status is 3"));
    assert_eq!(lab.runs(), 2);
    assert!(
        lab.error(&job().keep_failures())
            .contains("was not run again")
    );
    assert_eq!(lab.runs(), 2);
    assert_eq!(lab.run(&job().ok_status(3)).status(), 3);
    assert_eq!(lab.runs(), 2);
}

/// A mistyped expression must not cost a day.
#[test]
fn what_fails_by_a_new_rule_is_not_run_but_by_again() {
    let lab = Lab::new();
    let script = lab.script("job", "echo done");
    let job = || lab.command(&script);
    lab.run(&job());
    let mistyped = job().require("doen");
    let error = lab.error(&mistyped);
    assert!(
        error.contains("require doen") && error.contains("--again"),
        "{error}"
    );
    assert_eq!(lab.runs(), 1);
    // It fails once more, and now by a rule that it had.
    assert!(
        lab.error(&mistyped.clone().again())
            .contains("require doen")
    );
    assert_eq!(lab.runs(), 2);
    lab.error(&mistyped);
    assert_eq!(lab.runs(), 3);
    assert!(lab.run(&job().require("done")).is_remembered());
}

#[test]
fn each_rule_fails_with_its_words_and_the_end_of_the_output() {
    let lab = Lab::new();
    let script = lab.script("job", "echo not converged");
    let job = || lab.command(&script);
    let cases = [
        (job().reject("not converged"), "reject not converged"),
        (job().require("^converged"), "require ^converged"),
        (job().get("e", "E=(.*)"), "get e=E=(.*)"),
        (job().output("log"), "it wrote no output \"log\""),
        (job().output("*.log"), "it wrote no output \"*.log\""),
        (job().ok_status(1), "its exit status is 0"),
    ];
    for (command, words) in cases {
        let error = lab.error(&command);
        assert!(
            error.contains(words) && error.contains("not converged"),
            "{error}"
        );
    }
    lab.run(&job().output("?log").output("?*.log"));
}

#[test]
fn a_failed_run_tells_what_it_gave_and_what_it_was_not_given() {
    let lab = Lab::new();
    let script = lab.script("job", "echo partial; exit 1");
    let error = lab.command(&script).run(&lab.sde).unwrap_err();
    // Each test process has such variables.
    assert!(error.to_string().contains("--env NAME"), "{error}");
    let CommandError::Failed(failed) = error else {
        panic!("{error}")
    };
    assert_eq!(failed.ran.status(), 1);
    assert_eq!(text(failed.ran.stdout()), "partial\n");
}

#[test]
fn what_did_not_end_by_itself_is_never_given() {
    let lab = Lab::new();
    let script = lab.script("job", "echo begun; kill -9 $$");
    let command = lab
        .command(&script)
        .ok_status(0)
        .ok_status(137)
        .ok_status(9);
    for runs in 1..=2 {
        let error = lab.error(&command.clone().keep_failures());
        assert!(
            error.contains("ended by signal 9") && error.contains("begun"),
            "{error}"
        );
        assert_eq!(lab.runs(), runs);
    }
    let mut records = Vec::new();
    lab.sde
        .records(|record| records.push(record.app.to_string()));
    assert!(!records.contains(&"job".to_owned()), "{records:?}");
}

#[test]
fn a_time_limit_ends_it() {
    let lab = Lab::new();
    let script = lab.script("job", "sleep 1000");
    let command = lab
        .command(&script)
        .timeout(std::time::Duration::from_millis(100));
    assert!(lab.error(&command).contains("its time limit"));
}

#[test]
fn lines_end_at_carriage_returns_and_long_ones_are_seen_whole() {
    let lab = Lab::new();
    let script = lab.script(
        "job",
        r"printf '10%%\rdone 1\r\n'; head -c 1048574 /dev/zero | tr '\0' x; echo ERROR",
    );
    let job = || lab.command(&script);
    assert_eq!(
        lab.run(&job().get("n", r"^done (\d)$")).number("n"),
        Some(1.0)
    );
    assert!(lab.error(&job().reject("ERROR")).contains("reject ERROR"));
}

#[test]
fn a_number_that_would_lose_digits_is_a_text() {
    let lab = Lab::new();
    let script = lab.script(
        "job",
        "echo a=0012345678901234567890 b=007 c=+7 d=-9223372036854775808",
    );
    let job = ["a", "b", "c", "d"]
        .iter()
        .fold(lab.command(&script), |job, name| {
            job.get(name, &format!(r"{name}=(\S+)"))
        });
    let values: Vec<String> = lab
        .run(&job)
        .values()
        .map(|(_, value)| format!("{value:?}"))
        .collect();
    let wanted = [
        "Text(\"0012345678901234567890\")",
        "Text(\"007\")",
        "Int(7)",
        "Int(-9223372036854775808)",
    ];
    assert_eq!(values, wanted);
}

#[test]
fn a_rule_may_look_into_a_file_of_a_declared_folder() {
    let lab = Lab::new();
    let script = lab.script("job", "mkdir logs; echo ERROR > logs/a");
    let job = || lab.command(&script).output("logs");
    assert!(
        lab.error(&job().reject("logs/a:ERROR"))
            .contains("logs/a:ERROR")
    );
    assert!(
        lab.error(&job().again().reject("logs:ERROR"))
            .contains("logs:ERROR")
    );
    lab.run(&job().require("logs/a:ERROR"));
}
