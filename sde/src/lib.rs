//! SDE runs scientific workflow code and never computes the same thing twice: within a run, after a crash, or in
//! the next batch job.
//!
//! # A sweep
//!
//! A function with [`#[sde::app]`](macro@app) is an app. A call hashes app and inputs (BLAKE3), gives the
//! remembered result if there is one, and otherwise runs the app with no lock held and remembers what it returns.
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
//! - A result is right only if all that it depends on is in its key: the arguments, the function's own text, and the text
//!   of what it names that is marked [`#[sde::helper]`](macro@helper) (or its whole file: `#[sde::app(code = file)]`). A plain function that it calls is not, nor is a clock, an environment
//!   variable or a global.
//! - An input file is given as [`InputFile`], whose content is hashed; a path alone is a text.
//! - An app that writes a file returns an [`OutputFile`]; with a path alone a hit has no file, once that is deleted.
//! - A random number makes an app `nondeterministic`, unless its seed is an argument.
//! - Floats count by their bits: 0.0 and -0.0 are different arguments, as are 0.1 + 0.2 and 0.3; a NaN equals itself. Under
//!   [`Rounded`](key::Rounded) only a few digits count.
//! - Memory grows with each result up to half of what there is, then what is saved leaves; without a store it grows unless there is a
//!   [`MemoryBudget`]. What `par_call` returns is held by the program (`par_call_each` holds nothing).
//! - The function becomes a value of its name: `let mean = mean.call(..)` does not compile.
//! - The macros write `::sde`: a program that names the crate otherwise says `extern crate memo as sde;` at its root.
//! - A [`Value`] is shared and read-only; clone what is in it to change it.
//!
//! # Where to go on
//!
//! | for | look at |
//! |---|---|
//! | several results with names and [tags](Tag) | [`Results`](derive@Results) |
//! | parameters, apps in slots | [`ConfiguredApp`], [`AppInfo`], [`ResultMap`], [`Inputs`] |
//! | many arguments at once; a policy for a call | [`CallApp`] |
//! | threads; one computation for all who ask; giving up | [`Handle::par_map`], [`Request`], [`Handle::with_cancel`] |
//! | why something was computed again | [`Handle::peek`], [`record`], the program `sde explain` |
//! | what is kept, where and for how long | [`Builder`], [`SavePolicy`] and, with the feature `store` (on by default), `store` |
//! | the ranks of an MPI job | [`ranks`] and, with the feature `mpi`, `mpi` |
//! | apps and values without a Rust type | [`DynApp`], [`Data`] |
//! | a store or a transport of your own | [`archiver`], [`ranks`] |
//! | keys of your own types | [`Fingerprint`](derive@Fingerprint), [`key`] |
//! | GPU programs, built once for all processes | with the feature `opencl`, `opencl` |
//!
//! The guide in `docs/guide` of the repository has a page on each; read that on keys before you trust a result.

#![forbid(unsafe_code)]

#[doc(inline)]
pub use sde_arrays::DistArray;
#[doc(inline)]
pub use sde_engine::*;

#[cfg(feature = "store")]
#[doc(inline)]
pub use sde_archives::{builder, open};

/// Process sets: for programs on many ranks, and for who writes a transport of their own.
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
