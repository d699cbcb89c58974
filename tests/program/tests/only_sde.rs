//! What a crate that names only `sde` can do.

#![forbid(unsafe_code)]

use sde::{Sde, inputs};
use sde_tests_program::{Answer, Scaled, Start, mean_of_means, squares};

fn start() -> Start {
    Start {
        x: 0.4,
        label: "a".to_owned(),
    }
}

fn all(sde: &Sde) -> Result<f64, sde::Error> {
    let mean = *mean_of_means.call(sde, &start(), &[3.5, 3.6, 3.7])?;
    let field = squares.call(sde, 4)?;
    let answer = sde.run(&Answer, &inputs! { asked: 41 })?;
    assert_eq!(*answer.get::<i32>("answer")?, 42);
    let inputs = inputs! { start: start(), r: 3.5 };
    let scaled = sde.run(&Scaled::app().by(0.0), &inputs)?;
    assert_eq!(*scaled.get::<f64>("result")?, 0.0);
    assert_eq!(field.values.local(), [0.0, 1.0, 4.0, 9.0]);
    Ok(mean)
}

/// Computed, and loaded by the next process, whatever the macros expand to.
#[test]
fn what_each_macro_makes_is_remembered_and_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.sde");
    let run = || -> Result<_, sde::Error> {
        let sde = sde::builder(&path)?.without_signals().build()?;
        let mean = all(&sde)?;
        let computed = sde.stats().total.computed;
        let mut helpers = 0;
        sde.records(|record| helpers += record.setup.helpers.len());
        sde.finish()?;
        Ok((mean, computed, helpers))
    };
    let (mean, computed, helpers) = run().expect("a run");
    assert_eq!((computed, helpers), (7, 4));
    assert_eq!(run().expect("another"), (mean, 0, 1));
}

/// There is one registry of linked apps, whichever crate they are in.
#[test]
fn linked_apps_are_known_by_name() {
    let sde = Sde::new();
    sde.clear_app("program.Answer").expect("it is linked");
    sde.clear_app("orbit_mean").expect("it is linked");
    sde.clear_app("program.Scaled").expect("it is linked");
}
