//! SDE runs scientific workflow code and never computes the same thing twice: within a run, after a crash, or in
//! the next batch job.
//!
//! # A sweep
//!
//! A function with [`#[sde::app]`](macro@app) is an app. A call hashes app and inputs (BLAKE3), and gives the remembered
//! result if there is one. Otherwise it runs the app, with no lock held, and remembers what that returns.
//!
#![cfg_attr(feature = "store", doc = "```")]
#![cfg_attr(not(feature = "store"), doc = "```ignore")]
//! /// The Lyapunov exponent of x -> r x (1 - x).
//! #[sde::app]
//! fn lyapunov(r: f64) -> f64 {
//!     let (mut x, mut sum) = (0.4, 0.0);
//!     for _ in 0..1_000 {
//!         x = r * x * (1.0 - x);
//!         sum += (r - 2.0 * r * x).abs().ln();
//!     }
//!     sum / 1e3
//! }
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sweep.sde");
//! # let run = |_: u32| -> Result<sde::Stats, sde::Error> {
//! let sde = sde::open(&path)?;
//! let grid = (0..100).map(|i| 3.4 + 0.006 * f64::from(i));
//! for (r, exponent) in grid.clone().zip(lyapunov.par_call(&sde, grid)?) {
//!     println!("{r:.3} {exponent:8.5}");
//! }
//! # let stats = sde.stats();
//! sde.finish()?;
//! # Ok(stats)
//! # };
//! # assert_eq!(run(1)?.total.computed, 100);
//! # assert_eq!(run(2)?.total.computed, 0);
//! # Ok::<(), sde::Error>(())
//! ```
//!
//! # A restart
//!
//! An engine of `sde::open` saves in the background every few seconds, on Ctrl-C and at the end. Killed at any
//! moment, the program goes on from there when it is run again, and run once more it computes nothing. Where saving
//! fails, [`finish`](Sde::finish) returns the error; dropping the `Sde` can only warn. A run that takes days keeps
//! its state with [`Handle::scratch`]. On a terminal, long work shows its progress; each warning is given once, on
//! standard error.
//!
//! # The traps
//!
//! These compile, and do something else than was meant:
//!
//! - A key holds the arguments, the function's own text, and the text of each [`#[sde::helper]`](macro@helper) that the
//!   function names. With `#[sde::app(code = file)]` it holds the whole file. A plain function that the app calls, a
//!   clock, an environment variable or a global is in no key: an app that reads one gives old results.
//! - A path is a text. The content of a file is in the key if the argument is an [`InputFile`].
//! - A hit writes no file, unless the app returns it as an [`OutputFile`].
//! - An app that draws a random number is to be marked `nondeterministic`, or takes the seed as an argument.
//! - Floats count by their bits: 0.0 and -0.0 are different arguments, and so are 0.1 + 0.2 and 0.3. Under
//!   [`Rounded`](key::Rounded) only a few digits count.
//! - Without a store memory grows with each result, unless there is a [`MemoryBudget`]. With one, saved results leave
//!   at half of the machine's memory, but a program holds what `par_call` gives it; `par_call_each` holds nothing.
//!
//! The compiler refuses these, in words that don't name the cause:
//!
//! - A variable with the name of an app: the function has become a value of that name, so `let mean = mean.call(..)`
//!   does not compile.
//! - A program that gives this crate another name: the macros write `::sde`, so its root says
//!   `extern crate memo as sde;`.
//! - A change of a [`Value`]: it is shared and read-only. Clone what is in it.
//!
//! # Where to go on
//!
//! | for | look at |
//! |---|---|
//! | several results with names and [tags](Tag) | [`Results`](trait@Results) |
//! | parameters, apps in slots | [`Settings`](trait@Settings), [`ConfiguredApp`], [`Instance`] |
//! | apps whose inputs or results are known by name only | [`App`], [`AppInfo`], [`Inputs`], [`ResultMap`] |
//! | many arguments at once; a policy for a call; asking first | [`CallApp`], [`Policy`], [`Peek`], [`Plan`] |
//! | threads; one computation for all who ask; giving up | [`Handle::par_map`], [`Handle::with_cancel`], [`CancelToken`] |
//! | the state of a run that takes days | [`Scratch`] |
//! | what failed, and what failed first | [`Error`], [`ErrorKind`], [`AppError`] |
//! | why something was computed again | [`Handle::peek`], [`record`], the program `sde explain` |
//! | what happens while it runs, and how often | [`Stats`], [`Observer`] |
//! | what is kept, where and for how long | [`Builder`], [`SavePolicy`] and, with the feature `store` (on by default), `store` |
//! | the ranks of an MPI job | [`ranks`] and, with the feature `mpi`, `mpi` |
//! | apps and values without a Rust type | [`DynApp`], [`Data`] |
//! | a store or a transport of your own | [`archiver`], [`ranks`] |
//! | keys of your own types | [`Fingerprint`](trait@Fingerprint), [`key`] |
//! | programs that others wrote | with the feature `command` (on by default), `Command` |
//! | GPU programs, built once for all processes | with the feature `opencl`, `opencl` |
//!
//! The guide in `docs/guide` of the repository has a page on each; read that on keys before you trust a result.

#![forbid(unsafe_code)]

#[doc(inline)]
pub use sde_arrays::DistArray;
// One by one: under a glob rustdoc leaves out what is said of `app` and `helper` below.
#[doc(inline)]
pub use sde_engine::{
    AnyArray, App, AppError, AppInfo, AppSource, AppStats, Apps, Builder, CallApp, CallRequest,
    Called, CancelToken, ConfiguredApp, Cost, Data, Distributed, DynApp, ErasedValue, Error,
    ErrorKind, Event, EventLog, EvictionOrder, Failure, Fingerprint, Handle, InputFile, InputSpec,
    Inputs, Instance, Key, MemoryBudget, MemorySize, Observer, Outcome, OutputFile, Parameter,
    ParameterValues, Peek, Plan, PlannedRun, Policy, Prepared, Request, Result, ResultMap,
    ResultSpec, Results, SavePolicy, Scratch, Sde, Settings, SharedWork, Slot, Source, Stats,
    Storable, SubApp, Tag, Tags, Value, archiver, bulk, inputs, key, last_value, link_app, record,
};

#[doc(hidden)]
pub use sde_engine::{__private, KeyedArray, debug_as_said, stretch, warning};

/// Makes a function an app.
///
/// `#[sde::app] fn f(..)` becomes a value `f` of a type `f` that implements [`App`].
/// `f.call(&sde, ..)` takes the function's arguments and gives its result as
/// a [`Value`], remembered or computed; a hit allocates nothing. By `sde.run(&f, &inputs)`
/// it is run with [`Inputs`] named as the parameters, in any order ([`AppInfo::input`]), and its only result is named
/// `result`, unless [each field](trait@Results) is one. Its other verbs, with many arguments or a policy, are those of
/// [`CallApp`].
///
/// - A first parameter of type `&Handle` is the handle, and no input.
/// - Parameters can be owned or shared references, `&Path` and slices among them; a lifetime
///   is not named. Their names, types and values are
///   in the key; all need [`Fingerprint`](trait@Fingerprint). `sde.run` clones those that the function takes by value.
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
/// | `results` | each field of the returned struct is a result ([`Results`](trait@Results)) |
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
#[doc(inline)]
pub use sde_engine::app;

/// Counts a function, a constant or a type as code of the apps that name it.
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
#[doc(inline)]
pub use sde_engine::helper;

/// Makes the `main` function of a program end with a status that batch scripts understand.
///
/// It stands on `fn main() -> Result<(), E>`. When that fails, all that it made is dropped, as an MPI session is ended. Then
/// `error: ` and the error with its causes are written to standard error. The status is 75 if the [job's time](Handle::time_left) was too
/// short, which is [`ErrorKind::OutOfTime`] or [`ErrorKind::NotStarted`] among the causes, and else 1. `E` is any error, a
/// `Box<dyn Error>`, an `anyhow::Error`, or something that can be shown.
///
/// ```
/// #[sde::app]
/// fn square(x: f64) -> f64 {
///     x * x
/// }
///
/// #[sde::main]
/// fn main() -> Result<(), sde::Error> {
///     let sde = sde::Sde::new();
///     let squares = square.par_call(&sde, [1.0, 2.0, 3.0])?;
///     assert_eq!(*squares[2], 9.0);
///     Ok(())
/// }
/// ```
///
/// A function with arguments, or without a `Result`, does not compile.
#[doc(inline)]
pub use sde_engine::main;

#[cfg(feature = "store")]
#[doc(inline)]
pub use sde_archives::{builder, open};

#[cfg(all(feature = "command", unix))]
#[doc(inline)]
pub use sde_command::Command;

/// Runs of other programs: what comes of a [`Command`].
#[cfg(all(feature = "command", unix))]
pub mod command {
    pub use sde_command::{
        CommandError, Ended, Failed, Ran, RuleError, Rules, Stop, Swept, Trace, Traced, Undeclared,
        Untraced, Use, sweep,
    };
}

/// Process sets, for programs on many ranks and for transports of your own.
///
/// A program splits its ranks ([`Subset`](ranks::Subset), [`Transfer`](ranks::Transfer)) and lays out its
/// [arrays](DistArray) ([`Layout`](ranks::Layout)). A transport is a [`ProcessGroup`](ranks::ProcessGroup): MPI's is
/// `sde::mpi`, and [`ThreadGroup`](ranks::ThreadGroup) makes ranks of threads, for tests.
///
#[cfg_attr(feature = "store", doc = "```")]
#[cfg_attr(not(feature = "store"), doc = "```ignore")]
/// use sde::Sde;
/// use sde::ranks::ThreadGroup;
/// use sde::store::Cbor;
///
/// let sums = ThreadGroup::run(3, |group| {
///     let sde = Sde::builder().process_group(group, Cbor).build()?;
///     let all = sde.gather("ranks", sde.rank()?)?;
///     Ok::<usize, sde::Error>(all.iter().map(|rank| **rank).sum())
/// });
/// assert!(sums.iter().all(|sum| *sum.as_ref().unwrap() == 3));
/// ```
pub mod ranks {
    pub use sde_arrays::{Block, Edge, Layout, Near, Padded};
    pub use sde_engine::ranks::*;
}

/// Stores in a directory, in a documented format.
#[cfg(feature = "store")]
pub use sde_archives as store;

#[cfg(feature = "mpi")]
pub mod mpi;

/// Programs and kernels of OpenCL, built once and remembered.
#[cfg(feature = "opencl")]
pub use sde_opencl as opencl;
