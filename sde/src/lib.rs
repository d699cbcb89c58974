//! SDE: a memoizing computation framework with checkpointing

mod app;
mod cache;
mod checkpoint;
mod engine;
mod error;
mod event;
mod inputs;
pub mod key;
pub mod last_value;
mod parallel;
#[cfg(feature = "progress")]
mod progress;
mod result_map;
mod sync;

pub use app::{
    App, AppId, AppInfo, AppSource, Callee, CancelToken, CodeId, Cost, Handle, Instance, LinkedApp,
    Outcome, Parameter, Peek, Policy, Prepared, Request, ResultSpec, Scratch, Settings, Slot,
    SubApp,
};
pub use cache::{AppStats, Record};
pub use checkpoint::{
    Archiver, Batch, Mark, MemoryArchiver, SavePolicy, Saved, SavedEntry, SavedResult,
    SavedScratch, Selection, StoredEntry, StoredResult,
};
pub use engine::{Apps, Builder, Invalidated, Sde, Stats};
pub use error::{AppError, ArchiveError, Error, ErrorKind, Failure, Result};
pub use event::{Event, EventLog, Observer, RunId, Source};
pub use inputs::{InputSummary, Inputs};
pub use key::{Encoder, Fingerprint, FingerprintError, InputFile, Key};
#[cfg(feature = "progress")]
pub use progress::ProgressBar;
pub use result_map::{
    Codec, ErasedValue, Origin, Payload, ResultMap, Storable, Stored, Tag, Tags, Value,
};

pub use sde_macros::{Fingerprint, app};

/// What the macros need; not for direct use.
#[doc(hidden)]
pub mod __private {
    pub use crate::app::LinkedFacts;
    pub use crate::inputs::{Call, summary};
    pub use inventory;
}

// The derive macro writes `::sde`, also in this crate's own tests.
extern crate self as sde;
