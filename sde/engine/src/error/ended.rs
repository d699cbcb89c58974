//! The end of a program by an error: its text on standard error, and its status. For [`#[sde::main]`](macro@crate::main).
//!
//! The method `tell` of `&&&Ended(&error)` is that of the first trait below which the error's type allows: the compiler takes fewer
//! references last.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io::Write;
use std::ops::Deref;
use std::process::ExitCode;

use super::{exit_code, said};

/// An error by which a program ends.
#[derive(Debug)]
pub struct Ended<'a, E>(pub &'a E);

/// An error, such as `sde::Error`.
pub trait OfError {
    /// Tells of the error, and gives the program's status.
    fn tell(&self) -> ExitCode;
}

/// A pointer to an error, such as `Box<dyn Error>` or `anyhow::Error`.
pub trait OfPointer {
    /// Tells of the error, and gives the program's status.
    fn tell(&self) -> ExitCode;
}

/// Anything that can be shown, such as a text.
pub trait OfDisplay {
    /// Tells of the error, and gives the program's status.
    fn tell(&self) -> ExitCode;
}

impl<E: StdError + 'static> OfError for &&Ended<'_, E> {
    fn tell(&self) -> ExitCode {
        tell(self.0)
    }
}

impl<E: Deref<Target: AnyError>> OfPointer for &Ended<'_, E> {
    fn tell(&self) -> ExitCode {
        tell(self.0.any())
    }
}

impl<E: Display> OfDisplay for Ended<'_, E> {
    fn tell(&self) -> ExitCode {
        show(&format!("{:#}", self.0));
        ExitCode::FAILURE
    }
}

/// The error that a pointer points to.
pub trait AnyError {
    /// The error itself.
    fn any(&self) -> &(dyn StdError + 'static);
}

impl AnyError for dyn StdError + 'static {
    fn any(&self) -> &(dyn StdError + 'static) {
        self
    }
}

impl AnyError for dyn StdError + Send + 'static {
    fn any(&self) -> &(dyn StdError + 'static) {
        self
    }
}

impl AnyError for dyn StdError + Send + Sync + 'static {
    fn any(&self) -> &(dyn StdError + 'static) {
        self
    }
}

fn tell(error: &(dyn StdError + 'static)) -> ExitCode {
    show(&said(error));
    exit_code(error).into()
}

/// A program whose standard error is closed has its status all the same.
fn show(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {text}");
}
