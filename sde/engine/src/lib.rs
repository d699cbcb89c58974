//! The engine of SDE: keys, the cache, runs, checkpoints, process sets. It knows nothing of files, MPI or OpenCL.
//!
//! Programs add the crate `sde`, which has all of this under its own name, a store in a directory, and the page to
//! begin with. An engine alone remembers in memory, or in a store that implements
//! [`Archiver`](archiver::Archiver).
//!
//! ```
//! /// The primes below a number.
//! #[sde::app]
//! fn primes(below: u32) -> Vec<u32> {
//!     (2..below).filter(|n| (2..*n).all(|d| n % d != 0)).collect()
//! }
//!
//! let sde = sde::Sde::new();
//! let computed = primes.call(&sde, 20)?;
//! let remembered = primes.call(&sde, 20)?;
//! assert!(sde::Value::ptr_eq(&computed, &remembered));
//! # Ok::<(), sde::Error>(())
//! ```

mod app;
pub mod bulk;
mod cache;
mod checkpoint;
mod console;
mod engine;
mod entry;
mod error;
mod event;
mod inputs;
mod job;
pub mod key;
mod machine;
mod output_file;
mod parallel;
pub mod ranks;
mod result_map;
mod stretch;
mod sync;

pub use app::{
    App, AppInfo, CancelToken, ConfiguredApp, Cost, DynApp, Handle, Instance, Parameter,
    ParameterValues, Prepared, Settings, Slot, SubApp,
};
pub use cache::{AppStats, EvictionOrder, MemoryBudget};
pub use checkpoint::{SavePolicy, SharedWork};
pub use engine::{
    AppSource, Apps, Builder, CallApp, CallRequest, Called, Outcome, Peek, Plan, PlannedRun,
    Policy, Request, Scratch, Sde, Stats, Sweep,
};
pub use error::{AppError, Error, ErrorKind, Failure, Result};
pub use event::{Event, EventLog, Observer, Source};
pub use inputs::{InputSpec, Inputs};
pub use key::{Fingerprint, InputFile, Key};
pub use output_file::OutputFile;
pub use ranks::Distributed;
pub use result_map::typed::Results;
pub use result_map::{
    AnyArray, Data, ErasedValue, KeyedArray, MemorySize, ResultMap, ResultSpec, Storable, Tag,
    Tags, Value,
};

/// Traits and types for writing a store of your own.
///
/// An [`Archiver`](archiver::Archiver) gets what is to be saved as a [`Batch`](archiver::Batch), finds a
/// [`StoredEntry`](archiver::StoredEntry) by its key, and writes values by their [`Codec`](archiver::Codec).
/// [`MemoryArchiver`](archiver::MemoryArchiver) is the smallest; that in a directory is `sde::store`.
///
/// ```
/// use sde::archiver::MemoryArchiver;
/// use sde::{SavePolicy, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let store = MemoryArchiver::new();
/// let engine = || Sde::builder().store(store.clone()).save(SavePolicy::OnRequest).build();
/// let first = engine()?;
/// cube.call(&first, 2.0)?;
/// first.checkpoint()?;
/// let second = engine()?;
/// assert_eq!(*cube.call(&second, 2.0)?, 8.0);
/// assert_eq!(second.stats().total.computed, 0);
/// # Ok::<(), sde::Error>(())
/// ```
pub mod archiver {
    pub use crate::checkpoint::{
        Announced, Archiver, Batch, EncodedSave, Holder, Journal, Mark, MemoryArchiver, Saved,
        SavedEntry, SavedResult, SavedScratch, Selection, StopListener, StopRequest, StoredEntry,
        StoredResult,
    };
    pub use crate::error::ArchiveError;
    pub use crate::result_map::{Codec, Payload, Stored, Wire, WireBuffer};
}

/// Records of how results were made, for programs that show or compare them.
///
/// [`Sde::records`](crate::Sde::records) gives a [`Record`](record::Record) of each entry: the app and its
/// [setup](record::AppSetup), the inputs as [summaries](record::ValueSummary), the runs that it called, when and where.
/// [`Handle::peek`](crate::Handle::peek) tells by [`Difference`](record::Difference) why something would be computed.
pub mod record {
    pub use crate::app::{
        AppId, AppSetup, Callee, Changed, CodeId, Difference, Nearest, SlotSummary,
    };
    pub use crate::cache::MemoryUse;
    pub use crate::engine::Invalidated;
    pub use crate::entry::{FailureRecord, Provenance, Record, RecordHead, failure_key};
    pub use crate::event::RunId;
    pub use crate::inputs::ValueSummary;
    pub use crate::result_map::Origin;
}
#[doc(inline)]
pub use sde_last_value as last_value;

pub use sde_macros::{Distributed, Fingerprint, MemorySize, Results, Settings, app, helper, main};

/// For the macros, the store, and the simulator of evictions; not for direct use. The macros name nothing at the root,
/// so that an item can move without breaking the programs that use them.
#[doc(hidden)]
pub mod __private {
    pub use crate::app::{
        App, AppInfo, FunctionCode, Helper, Instance, LinkedApp, LinkedHelper, Name, NoHelper,
        Parameter, Resolved, ResolvedOnce, Settings, Slot, Source, SubApp, app_of,
    };
    pub use crate::cache::eviction::{Candidate, Eviction, Uses};
    pub use crate::console::{is_held_back, show_warning, warnings_after};
    pub use crate::engine::GoesOn;
    pub use crate::engine::{AppSource, CallApp, CallRequest, CalledApp, Handle};
    pub use crate::error::ended::{Ended, OfDisplay, OfError, OfPointer};
    pub use crate::error::returned::{ByFrom, ByItself, ErrorOfApp, ErrorType};
    pub use crate::error::said;
    pub use crate::error::{AppError, Failure, Result};
    pub use crate::inputs::{
        Call, DeclaredInputs, FunctionInputs, Inputs, ValueSummary, plain, summary,
    };
    pub use crate::key::{
        Digest, EncodedCursor, Encoder, Fingerprint, FingerprintError, name_frame,
    };
    pub use crate::machine::array_of_jobs;
    pub use crate::ranks::collective::MEETING_BYTES;
    pub use crate::ranks::distributed::{
        check_same, descriptor_of_same, descriptors_of, join_descriptors, part_for,
    };
    pub use crate::ranks::group::renumbered;
    pub use crate::ranks::{Distributed, Placement, Redistribution, SavedParts};
    pub use crate::result_map::allowed::{
        Fields, OfAlias, OfFields, OfParts, OfValue, OfWhole, ValueType, refuse_alias,
        refuse_fields, require_argument,
    };
    pub use crate::result_map::typed::{FromResults, Results};
    pub use crate::result_map::{
        ErasedValue, MemorySize, ResultMap, ResultSpec, Storable, Tag, Value,
    };
    pub use crate::stretch::Stretch;
    pub use crate::sync::locks;
    pub use inventory;
    pub use tracing;
}

// The derive macro writes `::sde`, also in this crate's own tests.
extern crate self as sde;
