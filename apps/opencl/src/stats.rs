//! Counts and events of a context.

use std::sync::Mutex;
use std::time::Duration;

use sde::key::Digest;

use crate::lock::lock;

/// An event of a program. Hits in memory are the engine's events ([`sde::Event`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A compiler ran, from source or intermediate language.
    #[non_exhaustive]
    Built {
        /// The program.
        key: Digest,
        /// The time that it took.
        took: Duration,
    },
    /// A driver made the program once more, to put the code that was finished at launches into its binary. It may have
    /// found that code in a cache of its own.
    #[non_exhaustive]
    Recompiled {
        /// The program.
        key: Digest,
        /// The time that it took.
        took: Duration,
    },
    /// It was made from a kept binary.
    #[non_exhaustive]
    Loaded {
        /// The program.
        key: Digest,
    },
    /// It was made from the binary of another device of equal identity.
    #[non_exhaustive]
    Shared {
        /// The program.
        key: Digest,
    },
    /// The driver refused a whole kept binary, or found other kernels in it. It is built anew, and replaced.
    #[non_exhaustive]
    Refused {
        /// The program.
        key: Digest,
        /// The driver's answer, or what is wrong with the kernels.
        why: String,
    },
    /// A store's answer was damaged or of another program, and no driver saw it.
    #[non_exhaustive]
    Unfit {
        /// The program asked for.
        key: Digest,
        /// The reason.
        why: &'static str,
    },
    /// A binary was put into a store of the user's.
    #[non_exhaustive]
    Kept {
        /// The program.
        key: Digest,
        /// The length in bytes.
        bytes: usize,
    },
    /// A program was built that is not kept, though the context was to keep binaries.
    #[non_exhaustive]
    NotKept {
        /// The program.
        key: Digest,
        /// The reason.
        why: String,
    },
    /// A resource was lacking, and unused programs and kernels are released.
    #[non_exhaustive]
    OutOfResources {
        /// The driver's answer.
        why: String,
    },
    /// A store of the user's could not be used.
    #[non_exhaustive]
    StoreFailed {
        /// The operation, and why it failed.
        why: String,
    },
}

/// The counts of the events of one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Compilers that ran.
    pub builds: u64,
    /// Programs that were made once more for their binaries, after launches. A driver that has them in a
    /// cache of its own does not build.
    pub recompiled: u64,
    /// Programs from kept binaries.
    pub loads: u64,
    /// Programs from the binary of another device of equal identity.
    pub shared: u64,
    /// Kept binaries that the driver refused.
    pub refused: u64,
    /// Kept binaries that were damaged or of another program.
    pub unfit: u64,
    /// Binaries that were kept; in a [`KernelDir`](crate::KernelDir) by all contexts that use it.
    pub kept: u64,
    /// Programs that were built and are not kept, though the context was to keep binaries. Failures of the store
    /// count as
    /// `store_failures`.
    pub not_kept: u64,
    /// Why the latest program of these is not kept, or why none can be.
    pub why_not_kept: Option<String>,
    /// The number of times that a resource was lacking and unused programs and kernels were released. Evictions by a
    /// limit are counted by the engine.
    pub out_of_resources: u64,
    /// Failures of the store, each with a warning; counted over contexts as `kept`.
    pub store_failures: u64,
}

type Observer = dyn Fn(&Event) + Send + Sync;

/// The counts of a context, and its observer.
#[derive(Default)]
pub(crate) struct Notes {
    /// One lock is enough, since these events are rare: hits are not among them.
    counts: Mutex<Stats>,
    pub(crate) observer: Option<Box<Observer>>,
}

impl Notes {
    pub(crate) fn note(&self, event: &Event) {
        event.count(&mut lock(&self.counts));
        event.log();
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        lock(&self.counts).clone()
    }
}

impl Event {
    fn count(&self, stats: &mut Stats) {
        if let Self::NotKept { why, .. } | Self::StoreFailed { why } = self {
            stats.why_not_kept = Some(why.clone());
        }
        let count = match self {
            Self::Built { .. } => &mut stats.builds,
            Self::Recompiled { .. } => &mut stats.recompiled,
            Self::Loaded { .. } => &mut stats.loads,
            Self::Shared { .. } => &mut stats.shared,
            Self::Refused { .. } => &mut stats.refused,
            Self::Unfit { .. } => &mut stats.unfit,
            Self::Kept { .. } => &mut stats.kept,
            Self::NotKept { .. } => &mut stats.not_kept,
            Self::OutOfResources { .. } => &mut stats.out_of_resources,
            Self::StoreFailed { .. } => &mut stats.store_failures,
        };
        *count += 1;
    }

    fn log(&self) {
        match self {
            Self::Built { key, took } => tracing::debug!("built {key:?} in {took:?}"),
            Self::Recompiled { key, took } => {
                tracing::debug!("{key:?} was made once more for its binary in {took:?}");
            }
            Self::Refused { key, why } => sde::warning!(
                "the driver refuses the kept binary of {key:?} ({why}); it is built anew"
            ),
            Self::Unfit { key, why } => {
                sde::warning!("what is kept for {key:?} is not used: {why}; it is built anew");
            }
            Self::NotKept { key, why } => tracing::debug!("{key:?} is not kept: {why}"),
            Self::OutOfResources { why } => {
                tracing::info!("letting go what is not in use: {why}");
            }
            Self::StoreFailed { why } => sde::warning!("{why}"),
            Self::Loaded { .. } | Self::Shared { .. } | Self::Kept { .. } => {}
        }
    }
}
