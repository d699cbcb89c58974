//! Lists that processes go through together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use sde::Sde;
use sde_tests::{LIMIT, Watch, Watchdog, number, until, x, y};
use tempfile::tempdir;

use super::shared_work::{is_for_a_process, process};

/// What one of two processes is at.
#[derive(Default)]
struct At {
    watch: Watch,
    in_body: AtomicBool,
    /// How often it has waited for the other, and does no more.
    has_waited: AtomicUsize,
    is_through: AtomicBool,
}

impl At {
    fn waits(&self) -> usize {
        self.watch.count(is_for_a_process)
    }

    /// Whether it has something in hand, or will never have.
    fn is_at_it(&self) -> bool {
        let is_waiting = || self.waits() > self.has_waited.load(Ordering::SeqCst);
        let flags = [&self.in_body, &self.is_through];
        flags.iter().any(|flag| flag.load(Ordering::SeqCst)) || is_waiting()
    }

    /// Goes through the list. Each body waits until the other process is at one too, or waits for this one.
    fn go_through(self: &Arc<Self>, sde: &Sde, list: &[u64], other: &Arc<Self>) {
        let (own, other) = (Arc::clone(self), Arc::clone(other));
        // They are apps of one name and version: one for both processes.
        let app = number("abreast", move |_, n| {
            own.in_body.store(true, Ordering::SeqCst);
            until("the other is at an item", || other.is_at_it());
            own.in_body.store(false, Ordering::SeqCst);
            Ok(n * n)
        });
        let app = app.taking(Duration::from_secs(60));
        let squares = sde.par_each(list, |sde, n| {
            let square = y(&sde.run(&app, &x(*n)).unwrap()).unwrap();
            self.has_waited.store(self.waits(), Ordering::SeqCst);
            square
        });
        self.is_through.store(true, Ordering::SeqCst);
        assert!(squares.iter().zip(list).all(|(square, n)| *square == n * n));
    }
}

/// A closure goes through a list, and its keys are not known. Both went through it in its order: one waited for each
/// item of the other, and four processes took as long as one.
#[test]
fn a_closure_over_a_list_is_shared() {
    let _dog = Watchdog::new("a closure over a list, shared", LIMIT);
    let folder = tempdir().unwrap();
    let both = [(); 2].map(|()| Arc::new(At::default()));
    let sdes = both
        .each_ref()
        .map(|one| process(folder.path(), &one.watch).build().unwrap());
    let list: Vec<u64> = (0..40).collect();
    thread::scope(|scope| {
        for at in [0, 1] {
            let (sde, one, other, list) = (&sdes[at], &both[at], &both[1 - at], &list);
            scope.spawn(move || one.go_through(sde, list, other));
        }
    });
    let computed = sdes.each_ref().map(|sde| sde.stats().total.computed);
    assert_eq!(computed.iter().sum::<u64>(), 40, "{computed:?}");
    assert!(
        computed.iter().all(|computed| *computed > 0),
        "{computed:?}"
    );
    let waits: usize = both.iter().map(|one| one.waits()).sum();
    // Each item of one was waited for by the other. Of two random orders few meet.
    assert!(waits < 20, "{waits}");
}
