//! A body may see things that are not in its key: that another run failed, that a name led nowhere,
//! that something is remembered. What it returns then must not outlive what it saw.

use std::sync::Arc;

use sde::{AppError, InputFile, Sde, Source, inputs};
use sde_tests::{Counter, Made, number, x, y};

fn result(sde: &Sde, app: &Made) -> u64 {
    y(&sde.run(app, &x(1)).expect("no error")).expect("a result")
}

/// Falls back on a number if the inner run fails.
fn falls_back(
    inner: impl Fn(&sde::Handle) -> Result<u64, sde::Error> + Send + Sync + 'static,
) -> Made {
    number("falls_back", move |sde, _| Ok(inner(sde).unwrap_or(404)))
}

/// The name was registered later, and the fallback stood.
#[test]
fn a_name_that_leads_nowhere_yet() {
    let sde = Sde::new();
    let app = falls_back(|sde| y(&sde.run("method", &x(1))?));
    assert_eq!(result(&sde, &app), 404);
    // As long as that is so, the fallback is what the app gives.
    assert!(sde.request(&app, &x(1)).run().unwrap().source.is_hit());
    let method = number("double", |_, n| Ok(2 * n));
    sde.apps().register("method", method).unwrap();
    assert_eq!(result(&sde, &app), 2);
    assert!(sde.request(&app, &x(1)).run().unwrap().source.is_hit());
}

#[test]
fn a_registered_app_with_a_slot_that_leads_nowhere_yet() {
    let sde = Sde::new();
    let method = number("holder", |sde, n| {
        Ok(y(&sde.run(&sde.sub_app("term")?, &x(n))?)?)
    })
    .described(|info| info.slot(sde::Slot::new("term", "missing")));
    sde.apps().register("method", method).unwrap();
    let app = falls_back(|sde| y(&sde.run("method", &x(1))?));
    assert_eq!(result(&sde, &app), 404);
    let double = number("double", |_, n| Ok(2 * n));
    sde.apps().fill("method", "term", double).unwrap();
    assert_eq!(result(&sde, &app), 2);
}

/// An app that fails as long as `mended` is zero.
fn flaky(mended: Counter, fails: fn() -> AppError) -> Made {
    number("flaky", move |_, n| match mended.get() {
        0 => Err(fails()),
        _ => Ok(2 * n),
    })
}

/// The failure was not remembered, so the callee gave a result later, and its caller did not.
#[test]
fn a_failure_that_is_not_remembered() {
    let (sde, mended) = (Sde::new(), Counter::new());
    let inner = flaky(mended, || AppError::message("the disk is full"));
    let app = falls_back(move |sde| y(&sde.run(&inner, &x(1))?));
    assert_eq!(result(&sde, &app), 404);
    mended.add();
    assert_eq!(result(&sde, &app), 2);
}

#[test]
fn a_failure_that_is_remembered_can_be_relied_on() {
    let (sde, mended) = (Sde::new(), Counter::new());
    let inner = flaky(mended, || AppError::message("does not compile").permanent());
    let app = falls_back(move |sde| y(&sde.run(&inner, &x(1))?));
    assert_eq!(result(&sde, &app), 404);
    mended.add();
    assert!(sde.request(&app, &x(1)).run().unwrap().source.is_hit());
}

/// Inputs that have no key, since a file is missing.
#[test]
fn inputs_that_can_not_be_keyed() {
    let directory = std::env::temp_dir().join(format!("sde-leaning-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = Arc::new(directory.join("geometry.xyz"));
    let reads = sde_tests::made(sde_tests::number_info("reads", "1"), |_, inputs| {
        let file = inputs.get::<InputFile>("file")?;
        let lines = std::fs::read_to_string(file.path())?.lines().count();
        Ok(sde::ResultMap::new().with("y", lines as u64))
    });
    let app = {
        let path = Arc::clone(&path);
        falls_back(move |sde| y(&sde.run(&reads, &inputs! { file: InputFile::new(&*path) })?))
    };
    let sde = Sde::new();
    assert_eq!(result(&sde, &app), 404);
    std::fs::write(&*path, "one\ntwo\n").unwrap();
    assert_eq!(result(&sde, &app), 2);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What is remembered is the state of the cache, which is in no key.
#[test]
fn peeks_and_estimates() {
    let double = number("double", |_, n| Ok(2 * n));
    let peeks: [fn(&sde::Handle, &Made) -> bool; 2] = [
        |sde, app| matches!(sde.peek(app, &x(8)), Ok(sde::Peek::Hit { .. })),
        |sde, app| sde.cost(app, &x(8)).unwrap().is_some(),
    ];
    for peek in peeks {
        let (sde, seen) = (Sde::new(), double.clone());
        let app = number("peeks", move |sde, _| Ok(u64::from(peek(sde, &seen))));
        assert_eq!(result(&sde, &app), 0);
        sde.run(&double, &x(8)).unwrap();
        assert_eq!(result(&sde, &app), 1);
        assert!(
            sde_tests::records(&sde)
                .iter()
                .any(|record| record.nondeterministic)
        );
    }
    // The user's own looks are nobody's dependence.
    let sde = Sde::new();
    sde.peek(&double, &x(8)).unwrap();
    sde.run(&double, &x(8)).unwrap();
    let again = sde.request(&double, &x(8)).run().unwrap();
    assert_eq!(again.source, Source::Memory);
}

/// A failure that was declared permanent outlived its cause.
#[test]
fn a_permanent_failure_of_a_name_that_leads_nowhere_yet() {
    let app = number("permanent", |sde, n| {
        let later = sde.run("later", &x(n));
        let later = later.map_err(|error| AppError::message(format!("{error:#}")).permanent())?;
        Ok(y(&later)?)
    });
    for is_copied in [false, true] {
        let sde = Sde::new();
        let double = number("double", |_, n| Ok(2 * n));
        sde.apps().register("other", double.clone()).unwrap();
        assert!(sde.run(&app, &x(1)).is_err());
        match is_copied {
            true => sde.apps().copy("other", "later").unwrap(),
            false => sde.apps().register("later", double).unwrap(),
        }
        assert_eq!(result(&sde, &app), 2);
    }
}
