//! What `sde exec` prints: what the program printed before, and little of its own.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};

use sde_command::Ran;

use super::signals::{Phase, Signals};
use crate::failure::Failure;
use crate::output::warn;

/// The most names that are told.
const TOLD: usize = 8;

/// Prints what a remembered run printed. That of another was passed on while it ran, as far as that could be.
pub fn print(ran: &Ran, signals: &Signals) -> Result<(), Failure> {
    let failed = |why: &dyn Display| {
        Failure::told(format!(
            "what the program printed is kept, and can't be printed: {why}"
        ))
    };
    if !ran.is_remembered() {
        return ran.unshown().map_or(Ok(()), |why| Err(failed(&why)));
    }
    signals.enter(Phase::Idle);
    // One that came while outputs were put.
    signals.end();
    let printed = ran.print(
        &mut Open(Some(io::stdout().lock())),
        &mut Open(Some(io::stderr().lock())),
    );
    printed.map_err(|error| failed(&error))
}

/// A stream of this process, until its reader has closed it: as for the program itself, that is no error.
struct Open<W>(Option<W>);

impl<W: Write> Write for Open<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), W::flush)
    }
}

impl<W: Write> Open<W> {
    fn unless_closed<T>(
        &mut self,
        otherwise: T,
        act: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.0.as_mut().map(act) {
            None => Ok(otherwise),
            Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(otherwise)
            }
            Some(done) => done,
        }
    }
}

/// Tells what the run did besides, if this call ran it.
pub fn notes(ran: &Ran) {
    let (app, undeclared, left) = (ran.app(), ran.undeclared(), ran.left_behind());
    if let Some(first) = undeclared.first() {
        let names = some(undeclared);
        warn(format!(
            "{app} wrote {names}, which nobody declared: -o {first} keeps it"
        ));
    }
    if !ran.unkept().is_empty() {
        warn(format!(
            "{app}: outputs are not kept: {}",
            some(ran.unkept())
        ));
    }
    if !left.is_empty() {
        warn(format!(
            "{app} left processes behind, which were ended: {}",
            some(left)
        ));
    }
}

/// Tells what the trace of a run found.
pub fn traced(ran: &Ran) {
    let traced = ran.traced().map(ToString::to_string).unwrap_or_default();
    for line in traced.lines() {
        warn(format!("{}: {line}", ran.app()));
    }
}

pub fn some(names: &[String]) -> String {
    let mut some: Vec<String> = names.iter().take(TOLD).cloned().collect();
    let more = names.len() - some.len();
    some.extend((more > 0).then(|| format!("{more} more")));
    some.join(", ")
}

/// An error with its causes. What a program printed was passed on, and is not told again.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut all, mut next) = (String::new(), Some(error));
    while let Some(cause) = next {
        next = cause.source();
        let text = cause.to_string();
        // Some texts have that of their cause in them.
        if !all.contains(&text) {
            all.push_str(if all.is_empty() { "" } else { ": " });
            all.push_str(&text);
        }
    }
    all
}
