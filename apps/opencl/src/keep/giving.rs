//! When binaries are kept, and when not.
//!
//! A program that was built goes to those who wait for it first, and to the store after that. Both are done by
//! the thread that built it, so it is noted for that thread. So it is that what is let go where resources are
//! lacking is not captured.

use std::cell::{Cell, RefCell};

use super::code::Kept;
use crate::live::Program;
use crate::persistent::Turn;

thread_local! {
    static LETTING_GO: Cell<bool> = const { Cell::new(false) };
    /// How many calls there are that keep at their end what was built in them.
    static GIVING: Cell<usize> = const { Cell::new(0) };
    static BUILT: RefCell<Vec<Built>> = const { RefCell::new(Vec::new()) };
}

/// A program that was built, and is kept once those have it who wait for it.
struct Built {
    program: Program,
    replaced: bool,
    /// Others are kept from building it until it is kept.
    _turn: Turn,
}

/// Has something, and keeps what was built for that when it has been given to all who wait: only the builder
/// waits for the disk.
pub(crate) fn giving<T>(have: impl FnOnce() -> T) -> T {
    struct Given;
    impl Drop for Given {
        fn drop(&mut self) {
            GIVING.set(GIVING.get() - 1);
            keep_what_was_built();
        }
    }
    GIVING.set(GIVING.get() + 1);
    let _given = Given;
    have()
}

/// Keeps what this thread built and did not keep yet.
pub(crate) fn keep_what_was_built() {
    for built in BUILT.take() {
        built.program.0.keep_built(built.replaced);
    }
}

/// Keeps the binary of a program that this thread built, when it has given it to those who wait.
pub(crate) fn keep_built(program: &Program, turn: Turn, replaced: bool) {
    program.0.code.set_kept(Kept::NotYet);
    match GIVING.get() {
        // An app of this crate was called, and nobody knows when it has ended.
        0 => program.0.keep_built(replaced),
        _ => BUILT.with_borrow_mut(|built| {
            built.push(Built {
                program: program.clone(),
                replaced,
                _turn: turn,
            });
        }),
    }
}

/// Whether programs are let go because resources are lacking.
pub(super) fn is_letting_go() -> bool {
    LETTING_GO.get()
}

/// Lets go of programs without capturing them: where resources are lacking is no place to build.
pub(crate) fn let_go(what: impl FnOnce()) {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            LETTING_GO.set(self.0);
        }
    }
    let _before = Before(LETTING_GO.replace(true));
    what();
}
