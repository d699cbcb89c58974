//! What happened, as counts and as told to whoever wants to know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::identity::ProgramKey;

/// One thing that happened to a program. Lookups that found it live in memory are the engine's to
/// tell ([`sde::Event`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A compiler ran, from source or intermediate language.
    Built {
        /// The program.
        key: ProgramKey,
        /// How long it took.
        took: Duration,
    },
    /// A compiler, or a driver that has it in a cache of its own, made it once more for its binary, with
    /// what was finished at launches.
    Recompiled {
        /// The program.
        key: ProgramKey,
        /// How long it took.
        took: Duration,
    },
    /// It was made from a kept binary.
    Loaded {
        /// The program.
        key: ProgramKey,
    },
    /// It was made from the binary of another device of equal identity.
    Shared {
        /// The program.
        key: ProgramKey,
    },
    /// The driver refused a kept binary that was whole. It is built anew, and replaced.
    Refused {
        /// The program.
        key: ProgramKey,
        /// What the driver said.
        why: String,
    },
    /// What a store gave was damaged or of another program, and no driver saw it.
    Unfit {
        /// The program asked for.
        key: ProgramKey,
        /// What was wrong.
        why: &'static str,
    },
    /// A binary was kept.
    Kept {
        /// The program.
        key: ProgramKey,
        /// How long it is, in bytes.
        bytes: usize,
        /// Whether there was one before.
        replaced: bool,
    },
    /// Another process or thread was building it.
    Waited {
        /// The program.
        key: ProgramKey,
        /// How long this one waited.
        took: Duration,
    },
    /// A resource was lacking, and what is not in use is let go.
    OutOfResources {
        /// What the driver said.
        why: String,
    },
    /// The store could not be used.
    StoreFailed {
        /// What was being done, and why it failed.
        why: String,
    },
}

/// How often each thing happened in one context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Compilers that ran.
    pub builds: u64,
    /// Programs that were made once more for their binaries, after launches. Some drivers have them in a
    /// cache of their own; then it is no build.
    pub recompiled: u64,
    /// Programs from kept binaries.
    pub loads: u64,
    /// Programs from the binary of another device of equal identity.
    pub shared: u64,
    /// Kept binaries that the driver refused.
    pub refused: u64,
    /// Kept binaries that were damaged or of another program.
    pub unfit: u64,
    /// Binaries that were kept.
    pub kept: u64,
    /// Of these, those that took the place of another.
    pub replaced: u64,
    /// Waits for another builder.
    pub waits: u64,
    /// How often what is not in use was let go for lack of a resource.
    pub evictions: u64,
    /// Failures of the store.
    pub store_failures: u64,
}

type Observer = dyn Fn(&Event) + Send + Sync;

/// The counts of a context, and who is told.
#[derive(Default)]
pub(crate) struct Notes {
    counts: [AtomicU64; 11],
    pub(crate) observer: Option<Box<Observer>>,
}

impl Notes {
    pub(crate) fn note(&self, event: &Event) {
        let add = |at: usize| self.counts[at].fetch_add(1, Ordering::Relaxed);
        match event {
            Event::Built { key, took } => {
                add(0);
                tracing::debug!("built {key:?} in {took:?}");
            }
            Event::Recompiled { key, took } => {
                add(10);
                tracing::debug!("{key:?} was made once more for its binary in {took:?}");
            }
            Event::Loaded { .. } => {
                add(1);
            }
            Event::Shared { .. } => {
                add(2);
            }
            Event::Refused { key, why } => {
                add(3);
                tracing::warn!(
                    "the driver refuses the kept binary of {key:?} ({why}); it is built anew"
                );
            }
            Event::Unfit { key, why } => {
                add(4);
                tracing::warn!("what is kept for {key:?} is not used: {why}; it is built anew");
            }
            Event::Kept { replaced, .. } => {
                add(5);
                if *replaced {
                    add(6);
                }
            }
            Event::Waited { .. } => {
                add(7);
            }
            Event::OutOfResources { why } => {
                add(8);
                tracing::info!("letting go what is not in use: {why}");
            }
            Event::StoreFailed { why } => {
                add(9);
                tracing::warn!("{why}");
            }
        }
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let of = |at: usize| self.counts[at].load(Ordering::Relaxed);
        Stats {
            builds: of(0),
            recompiled: of(10),
            loads: of(1),
            shared: of(2),
            refused: of(3),
            unfit: of(4),
            kept: of(5),
            replaced: of(6),
            waits: of(7),
            evictions: of(8),
            store_failures: of(9),
        }
    }
}
