//! What has left memory and the program holds all the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use sde::archiver::MemoryArchiver;
use sde::{MemoryBudget, Sde, inputs};

use super::budget::{KIB, field};

static ENCODED: AtomicUsize = AtomicUsize::new(0);

struct Counts(Box<u64>);

impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        ENCODED.fetch_add(1, Ordering::Relaxed);
        self.0.serialize(to)
    }
}

impl<'de> serde::Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(|n| Self(Box::new(n)))
    }
}

/// A map that the program holds of an entry that has left is looked at, and measured, without end.
#[test]
fn what_has_left_is_measured_no_more() {
    #[sde::app(name = "held.counts")]
    fn counts(number: u64) -> Counts {
        Counts(Box::new(number))
    }
    let store = MemoryArchiver::new();
    let inputs = inputs! { number: 1_u64 };
    {
        let sde = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap();
        sde.run(&counts, &inputs).unwrap();
        sde.checkpoint().unwrap();
    }
    let budget = MemoryBudget::bytes(1000 * KIB);
    let sde = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .memory_budget(budget)
        .build()
        .unwrap();
    let held = sde.run(&counts, &inputs).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
    sde.clear_app("held.counts").unwrap();
    assert_eq!(held.get::<Counts>("result").unwrap().0.as_ref(), &1);
    let before = ENCODED.load(Ordering::Relaxed);
    for n in 0..100 {
        field.call(&sde, n, 1).unwrap();
    }
    let encoded = ENCODED.load(Ordering::Relaxed) - before;
    assert!(encoded < 3, "encoded {encoded} times");
}

/// What the program holds is not let go.
#[test]
fn what_is_held_is_not_told_as_let_go() {
    let sde = Sde::new();
    let held = field.call(&sde, 1, 100).unwrap();
    field.call(&sde, 2, 100).unwrap();
    let let_go = sde.evict("budget.field", 100 * KIB + 100);
    let there = [1, 2].map(|n| super::budget::is_there(&sde, n, 100));
    assert_eq!((let_go, there), (100 * KIB + 24, [true, false]));
    drop(held);
}
