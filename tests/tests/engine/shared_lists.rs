//! Lists that processes go through together.

use std::thread;
use std::time::Duration;

use sde::Event;
use sde_tests::{Counter, LIMIT, Watch, Watchdog, number, until, x, y};
use tempfile::tempdir;

use super::shared_work::{is_for_a_process, process};

/// An engine that waits for others in the body of each of its items, until they are at one of theirs.
struct Abreast {
    watch: Watch,
    begun: Counter,
}

impl Abreast {
    fn has_moved_on(&self, of_others: usize) -> bool {
        let begun = |event: &Event| matches!(event, Event::Started { .. });
        self.watch.count(begun) > 0 || self.watch.count(is_for_a_process) >= of_others
    }
}

/// A closure goes through a list, and its keys are not known. Both began at the first item: one waited for each item of the other,
/// and four processes took as long as one.
#[test]
fn a_closure_over_a_list_is_shared() {
    let _dog = Watchdog::new("a closure over a list, shared", LIMIT);
    let folder = tempdir().unwrap();
    let engines = [(); 2].map(|()| Abreast {
        watch: Watch::new(),
        begun: Counter::new(),
    });
    let sdes = engines
        .each_ref()
        .map(|one| process(folder.path(), &one.watch).build().unwrap());
    let [first, second] = &engines;
    let items: Vec<u64> = (0..40).collect();
    thread::scope(|scope| {
        for (sde, own, other) in [(&sdes[0], first, second), (&sdes[1], second, first)] {
            let (begun, watch) = (own.begun, other.watch.clone());
            let other = Abreast {
                watch,
                begun: other.begun,
            };
            // They are apps of one name and version: one for both processes.
            let app = number("abreast", move |_, n| {
                let number = begun.add() + 1;
                until("the other is at an item, or waits", || {
                    other.has_moved_on(number)
                });
                Ok(n * n)
            });
            let app = app.taking(Duration::from_secs(60));
            let items = &items;
            scope.spawn(move || {
                let all = sde.par_each(items, |sde, n| y(&sde.run(&app, &x(*n)).unwrap()).unwrap());
                assert!(all.iter().zip(items).all(|(square, n)| *square == n * n));
            });
        }
    });
    let computed = sdes.each_ref().map(|sde| sde.stats().total.computed);
    assert_eq!(computed.iter().sum::<u64>(), 40, "{computed:?}");
    assert!(
        computed.iter().all(|computed| *computed > 0),
        "{computed:?}"
    );
}
