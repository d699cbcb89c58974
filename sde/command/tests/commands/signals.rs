//! Signals that come before a program starts.

use std::fs;

use sde_command::{Command, CommandError, Stop};
use sde_engine::{Event, Sde};

use crate::kit::{Lab, run};

const TERM: i32 = 15;

/// An engine that does something when a run has begun: nothing is copied yet, and the program has not started.
fn when_begun(act: impl Fn() + Send + Sync + 'static) -> Sde {
    let observer = move |event: &Event| {
        if matches!(event, Event::Started { .. }) {
            act();
        }
    };
    let builder = Sde::builder().without_signals();
    builder.observer(observer).build().unwrap()
}

fn is_told_to_end(command: &Command, sde: &Sde) {
    let error = command.run(sde).unwrap_err();
    assert!(matches!(error, CommandError::Ended { .. }), "{error}");
    assert_eq!(error.exit_status(), 128 + TERM);
}

#[test]
fn a_signal_before_the_start_keeps_the_program_from_it() {
    let (lab, stop) = (Lab::new(), Stop::new());
    let sde = when_begun({
        let stop = stop.clone();
        move || stop.send(TERM)
    });
    let command = lab.command(&lab.script("job", "")).stop(&stop);
    is_told_to_end(&command, &sde);
    // The signal of the call before is none, and that of this one is.
    is_told_to_end(&command, &sde);
    assert_eq!(lab.runs(), 0);
}

#[test]
fn a_signal_ends_the_copying_of_inputs() {
    let (lab, stop) = (Lab::new(), Stop::new());
    let input = lab.write("input", "1");
    let tree = lab.write("tree/input", "1");
    let sde = when_begun({
        let stop = stop.clone();
        move || {
            stop.send(TERM);
            // To copy it would be an error.
            fs::write(&input, "2").unwrap();
            fs::write(&tree, "2").unwrap();
        }
    });
    let job = || lab.command(&lab.script("job", "")).stop(&stop);
    is_told_to_end(&job().input("input", lab.path("input")), &sde);
    lab.write("input", "1");
    lab.write("tree/input", "1");
    is_told_to_end(&job().tree(lab.path("tree")), &sde);
    assert_eq!(lab.runs(), 0);
}

#[test]
fn a_signal_of_before_the_call_is_for_others() {
    let (lab, stop) = (Lab::new(), Stop::new());
    stop.send(TERM);
    let command = lab.command(&lab.script("job", "")).stop(&stop);
    run(&command, &lab.sde);
    assert_eq!(lab.runs(), 1);
}
