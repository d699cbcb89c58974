//! Runs of other programs, remembered by SDE.
//!
//! A [`Command`] runs a program in a folder of its own, and is an app like any other: the key has all that the program
//! was given, the result all that came of it. The guide's page is `docs/guide/10-commands.md`.

#![cfg(unix)]
#![deny(unsafe_code)]

mod arguments;
mod attempts;
mod builder;
mod call;
mod carry;
mod code;
mod declared;
mod error;
mod folder;
mod given;
mod image;
mod judge;
mod launched;
mod outputs;
mod paths;
mod plan;
mod process;
mod program;
mod ran;
pub mod results;
mod rules;
mod run;
mod stop;
mod sync;
mod trace;
mod tree;
mod uses;

pub use builder::Command;
pub use call::{DISABLE, is_disabled, rules_key};
pub use error::{CommandError, Ended, Failed, Untraced};
pub use folder::{Swept, sweep};
pub use judge::{Failure, Judged, Judgement, Stream, Verdict};
pub use outputs::is_output;
pub use ran::Ran;
pub use rules::{RuleError, Rules};
pub use stop::Stop;
pub use trace::{Trace, Traced, Undeclared, Use};
