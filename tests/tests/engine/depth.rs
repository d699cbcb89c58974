//! Apps that call themselves, deeper than a stack is.
//!
//! The stack overflowed, which ends a program without an error that anyone could see.

use sde::{Error, ErrorKind, Handle, Sde, Value};

/// Counts the levels nested in it.
#[sde::app(name = "depth.down")]
fn down(sde: &Handle, levels: u64) -> Result<u64, Error> {
    match levels {
        0 => Ok(0),
        _ => Ok(1 + *down.call(sde, levels - 1)?),
    }
}

/// Makes do with what it gets.
#[sde::app(name = "depth.forgiving")]
fn forgiving(sde: &Handle, levels: u64) -> u64 {
    down.call(sde, levels).map_or(0, |levels| *levels)
}

/// How deep it would have been, if that is why it failed.
fn too_deep(result: Result<Value<u64>, Error>) -> Option<usize> {
    let error = result.unwrap_err();
    match error.kind() {
        ErrorKind::TooDeep { app, depth, .. } => {
            assert_eq!(&**app, "depth.down");
            assert!(format!("{error:#}").contains("`max_depth`"), "{error}");
            Some(*depth)
        }
        _ => None,
    }
}

/// On a thread with the stack that Rust gives one.
#[test]
fn a_hundred_thousand_levels_are_an_error() {
    let sde = Sde::new();
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let running = thread
        .spawn(move || {
            assert_eq!(too_deep(down.call(&sde, 100_000)), Some(128));
            // Runs on several threads are nested in one another as well.
            let results = sde.par_each(&[200_000, 300_000], |sde, n| down.call(sde, *n));
            results
                .into_iter()
                .for_each(|result| assert_eq!(too_deep(result), Some(128)));
        })
        .unwrap();
    running.join().unwrap();
}

#[test]
fn the_limit_can_be_set_and_is_kept_to() {
    let sde = Sde::builder().max_depth(5).build().unwrap();
    assert_eq!(too_deep(down.call(&sde, 5)), Some(5));
    assert_eq!(*down.call(&sde, 4).unwrap(), 4);
    // What is remembered needs no stack.
    assert_eq!(*down.call(&sde, 9 - 4).unwrap(), 5);
}

/// How deep it was called is not in the key of a run that goes on without the levels
/// it did not get: its result is not to be remembered.
#[test]
fn what_was_made_without_the_rest_is_made_again() {
    let sde = Sde::builder().max_depth(3).build().unwrap();
    assert_eq!(*forgiving.call(&sde, 3).unwrap(), 0);
    down.call(&sde, 2).unwrap();
    assert_eq!(*forgiving.call(&sde, 3).unwrap(), 3);
}

/// Found by a hostile program: each run looked at all above it, several times over, so that 20,000 levels took two minutes.
#[test]
fn twenty_thousand_levels() {
    let sde = Sde::builder().max_depth(30_000).build().unwrap();
    let thread = std::thread::Builder::new().stack_size(1 << 30);
    let running = thread.spawn(move || *down.call(&sde, 20_000).unwrap());
    assert_eq!(running.unwrap().join().unwrap(), 20_000);
}
