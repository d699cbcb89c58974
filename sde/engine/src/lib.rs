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
    AppSource, Apps, Builder, CallApp, CallRequest, Called, Outcome, Peek, Policy, Request,
    Scratch, Sde, Stats,
};
pub use error::{AppError, Error, ErrorKind, Failure, Result};
pub use event::{Event, EventLog, Observer, Source};
pub use inputs::{InputSpec, Inputs};
pub use key::{Fingerprint, InputFile, Key};
pub use output_file::OutputFile;
pub use ranks::Distributed;
pub use result_map::typed::Results;
pub use result_map::{
    AnyArray, Data, ErasedValue, MemorySize, ResultMap, ResultSpec, Storable, Tag, Tags, Value,
};

/// Stores: for who writes an archiver of their own.
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
        SavedEntry, SavedResult, SavedScratch, Selection, StoredEntry, StoredResult,
    };
    pub use crate::error::ArchiveError;
    pub use crate::result_map::{Codec, Payload, Stored, Wire, WireBuffer};
}

/// How a result was made: for who shows or compares records.
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
    pub use crate::entry::{Provenance, Record, RecordHead};
    pub use crate::event::RunId;
    pub use crate::inputs::ValueSummary;
    pub use crate::result_map::Origin;
}
#[doc(inline)]
pub use sde_last_value as last_value;

/// Makes a function an app.
///
/// `#[sde::app] fn f(..)` becomes a value `f` of a type `f` that implements [`App`].
/// `f.call(&sde, ..)` takes the function's arguments and gives its result as
/// a [`Value`], remembered or computed; a hit allocates nothing. By `sde.run(&f, &inputs)`
/// it is run with [`Inputs`] named as the parameters, in any order ([`AppInfo::input`]), and its only result is named
/// `result`, unless [each field](derive@Results) is one. Its other verbs, with many arguments or a policy, are those of
/// [`CallApp`].
///
/// - A first parameter of type `&Handle` is the handle, and no input.
/// - Parameters can be owned or shared references, `&Path` and slices among them; a lifetime
///   is not named. Their names, types and values are
///   in the key; all need [`Fingerprint`](trait@Fingerprint). The erased form clones those that are owned.
/// - `Result<T, E>` is taken apart: `E` can be an [`AppError`], any error, a box of one, a text or an
///   `anyhow::Error`.
/// - `Value<T>` as parameter or result is shared, not copied.
/// - `T` must be [`Storable`], unless it is tagged `expendable` or `no_cache`.
/// - The digest of the function's tokens is in the key, without documentation and
///   format, and with it those of the [helpers](macro@helper) that it names; a `version` takes their place.
///
/// | in the brackets | meaning |
/// |---|---|
/// | `name = ".."` | the stable name; by default the function's, which counts with its module |
/// | `version = ".."` | takes the place of the source's digest; raise it by hand |
/// | `code = file` | the whole source file is the code, without documentation and format; for a function that calls much that is not marked |
/// | `tags(intermediate)`, `expendable`, `no_cache` | the tags of the result |
/// | `about = ".."`, `author = ".."`, `citation = ".."` | metadata; `about` is by default the first paragraph of the documentation |
/// | `failures = "permanent"` or `"transient"` | how [long](Failure) errors last, where they don't say; not `permanent` for a child process, which Ctrl-C kills too |
/// | `distributed` | all ranks of the process set run it together; a result whose type is [`Distributed`](trait@Distributed) lies on them in parts |
/// | `nondeterministic`, `not_thread_safe` | the traits of [`AppInfo`] |
/// | `sized` | the result tells how much memory it takes ([`MemorySize`]) |
/// | `not_compared` | as [`ResultSpec::not_compared`] |
/// | `results` | each field of the returned struct is a result ([`Results`](derive@Results)) |
///
/// ```
/// use sde::{Handle, Sde};
///
/// #[sde::app(name = "doc.simpson", tags(intermediate), citation = "T. Simpson (1743)")]
/// fn simpson(values: &[f64], step: f64) -> f64 {
///     let inner: f64 = values.windows(3).step_by(2).map(|v| v[0] + 4.0 * v[1] + v[2]).sum();
///     inner * step / 3.0
/// }
///
/// #[sde::app]
/// fn average(sde: &Handle, values: &[f64], step: f64) -> Result<f64, sde::Error> {
///     Ok(*simpson.call(sde, values, step)? / (step * (values.len() - 1) as f64))
/// }
///
/// assert_eq!(*average.call(&Sde::new(), &[0.0, 1.0, 4.0], 1.0)?, 4.0 / 3.0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// On an `impl App for T` it adds the digest of the block's source, with those of its helpers, to the
/// [`AppInfo::named`] that `info` gives. Only `code = file` can stand in the brackets there; `info` says the rest.
///
/// A type that can't be in the key does not compile:
///
/// ```compile_fail
/// #[sde::app]
/// fn apply(f: std::cell::Cell<f64>) -> f64 { f.get() }
/// ```
///
/// Nor does a result that can't be saved and is not tagged so:
///
/// ```compile_fail
/// struct Window(*const u8);
/// #[sde::app]
/// fn open(width: u32) -> Window { Window(std::ptr::null()) }
/// ```
pub use sde_macros::app;

/// Has a function or a constant count as code of the apps that name it.
///
/// The digest of an [`#[sde::app]`](macro@app) function covers the function's own tokens. A plain function that it calls
/// is not among them: edit that one, and results made with the old one go on being used, unless it is marked as
/// a helper. A helper stays what it is; there is no cost for a call.
///
/// ```
/// use sde::Sde;
///
/// /// Of light, in m/s.
/// #[sde::helper]
/// const SPEED: f64 = 299_792_458.0;
///
/// struct Particle { mass: f64 }
///
/// impl Particle {
///     #[sde::helper]
///     fn energy_at_rest(&self) -> f64 {
///         self.mass * SPEED.powi(2)
///     }
/// }
///
/// #[sde::app]
/// fn released(mass: f64, share: f64) -> f64 {
///     share * Particle { mass }.energy_at_rest()
/// }
///
/// let sde = Sde::new();
/// released.call(&sde, 1e-3, 0.01)?;
/// sde.records(|record| {
///     let helpers = &record.setup.helpers;
///     assert_eq!(helpers.len(), 2);
///     assert!(helpers[1].name.ends_with("energy_at_rest"));
/// });
/// # Ok::<(), sde::Error>(())
/// ```
///
/// It stands on functions, methods and constants, generic or not, in a module, an `impl`, a trait or a function; and on type aliases,
/// enums and structs.
///
/// An app's helpers are those whose names stand in its function, those whose names stand in these, and so on, also in other
/// crates of the program. All of one name count, wherever they are; too many cost a computation once one
/// of them is edited. Another helper, another text of it or another module in its crate is other code, and the
/// app's results are computed again; [`Changed::Helper`](record::Changed::Helper) names what changed. An app that names none has
/// the key that it had. One with a version says itself when its code is another: there helpers do not count.
///
/// Where several helpers have one name, which one a bare name means counts too, as the compiler resolves it: `use v1::step` changed to
/// `use v2::step` is other code. For that a function or a constant has a hidden trait of its name beside it. If there is a module or
/// a type of that name, say `#[sde::helper(by_name)]`: then there is no trait, and all of the name count, whichever is meant.
///
/// `cfg!` and `#[cfg]` in an app or a helper count with their values.
///
/// A helper has to be named: an app that calls it through a function or a macro that is not marked, or by an operator,
/// does not see it. The guide's page on keys has the list.
///
/// An item that has no body and is no type can't be marked:
///
/// ```compile_fail
/// #[sde::helper]
/// mod particles {}
/// ```
pub use sde_macros::helper;

pub use sde_macros::{Distributed, Fingerprint, MemorySize};

/// Makes each field of the struct that an app's function returns a result of its own.
///
/// The function says so: `#[sde::app(results)]`. A field is a result of its name, with its documentation as the description. A call gives a struct of the same fields,
/// named as this one and `Values`, each a [`Value`]: `scf.call(..)?.energy`. An `expendable` or `no_cache` field is an
/// `Option` there, since a hit may lack it.
///
/// | in `#[result(..)]` | meaning |
/// |---|---|
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
/// | `intermediate`, `expendable`, `no_cache` | the [tags](Tag) |
/// | `sized`, `not_compared` | as [`ResultSpec::sized`] and [`ResultSpec::not_compared`] |
///
/// ```
/// #[derive(sde::Results)]
/// struct Fit {
///     /// Of the line.
///     slope: f64,
///     offset: f64,
///     /// What is left of each value.
///     #[result(expendable)]
///     rest: Vec<f64>,
/// }
///
/// #[sde::app(results)]
/// fn fit(ys: &[f64]) -> Fit {
///     let n = ys.len() as f64;
///     let (x_mean, y_mean) = ((n - 1.0) / 2.0, ys.iter().sum::<f64>() / n);
///     let from_mean = |i: usize| i as f64 - x_mean;
///     let over: f64 = ys.iter().enumerate().map(|(i, y)| from_mean(i) * (y - y_mean)).sum();
///     let slope = over / (0..ys.len()).map(|i| from_mean(i).powi(2)).sum::<f64>();
///     let offset = y_mean - slope * x_mean;
///     let rest = ys.iter().enumerate().map(|(i, y)| y - offset - slope * i as f64).collect();
///     Fit { slope, offset, rest }
/// }
///
/// let sde = sde::Sde::new();
/// let line = fit.call(&sde, &[1.0, 3.0, 5.0])?;
/// assert_eq!((*line.slope, *line.offset), (2.0, 1.0));
/// assert_eq!(line.rest.map(|rest| rest.len()), Some(3));
/// assert_eq!(*sde.run(&fit, &sde::inputs! { ys: vec![1.0, 3.0, 5.0] })?.get::<f64>("slope")?, 2.0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// A field whose type is [`Distributed`](trait@Distributed) lies in parts on all ranks, and the app is `distributed`.
///
/// In an `impl App` the struct is declared by [`AppInfo::results_of`], and `into` makes it a [`ResultMap`].
pub use sde_macros::Results;

/// Makes each field of a struct a parameter or a slot of an app, which is a [`ConfiguredApp`].
///
/// It gives the struct `T` a function `T::app()`: the app with its defaults, of a type named as the struct and `App`. That has a method for
/// each field, and goes wherever an app goes: `sde.run(&T::app().scale(2.0).term(cube), &inputs)`.
/// Values are checked when the app is run, prepared or called.
///
/// A field is a setting of its name, with its documentation as the description. One without a default has to be set. A
/// slot's field has the type [`Prepared`].
///
/// | in `#[setting(..)]` | meaning |
/// |---|---|
/// | `default = value` | the value if none is set |
/// | `check = function`, `check_with = function` | as [`Parameter::check`] and [`Parameter::check_with`] |
/// | `transparent` | as [`Parameter::transparent`] |
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
///
/// | in `#[slot(..)]` | meaning |
/// |---|---|
/// | `default = app` | the app if none is put there |
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
///
/// There is an example at [`ConfiguredApp`].
pub use sde_macros::Settings;

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
    pub use crate::error::returned::{ByFrom, ByItself, ErrorOfApp, ErrorType};
    pub use crate::error::said;
    pub use crate::error::{AppError, Failure, Result};
    pub use crate::inputs::{
        Call, DeclaredInputs, FunctionInputs, Inputs, ValueSummary, plain, summary,
    };
    pub use crate::key::{EncodedCursor, Encoder, Fingerprint, FingerprintError, name_frame};
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
