//! The code in README.md and `docs/`, compiled and run as doctests.
//!
//! One item for each document that has Rust in it; a house test notices one that is missing.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../docs/guide/01-apps.md")]
mod apps {}

#[doc = include_str!("../../docs/guide/02-keys.md")]
mod keys {}

#[doc = include_str!("../../docs/guide/03-saving.md")]
mod saving {}

#[doc = include_str!("../../docs/guide/04-threads.md")]
mod threads {}

#[doc = include_str!("../../docs/guide/06-process-sets.md")]
mod process_sets {}

#[doc = include_str!("../../docs/guide/07-kernels.md")]
mod kernels {}

#[doc = include_str!("../../docs/guide/08-tracing.md")]
mod tracing {}

#[doc = include_str!("../../docs/guide/09-dynamic.md")]
mod dynamic {}

#[doc = include_str!("../../docs/guide/10-commands.md")]
mod commands {}

#[doc = include_str!("../../docs/guide/11-jobs.md")]
mod jobs {}

#[doc = include_str!("../../docs/guide/12-groups.md")]
mod groups {}
