//! What a simulated medium is told to do at which call.

use std::io;
use std::time::Duration;

use super::gate::Gate;

/// The calls that a store makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    Look,
    List,
    MakeDir,
    Create,
    Open,
    Write,
    Sync,
    SyncDir,
    /// The first half of `publish`.
    Link,
    /// The second half.
    Unlink,
    Remove,
    Read,
    Length,
    Lock,
    /// A file is dropped. Nobody learns of an error, but what was not synced may be lost.
    Close,
}

/// All calls after which something else is there.
pub const CHANGING: &[Call] = &[
    Call::MakeDir,
    Call::Create,
    Call::Write,
    Call::Sync,
    Call::SyncDir,
    Call::Link,
    Call::Unlink,
    Call::Remove,
    Call::Close,
];

/// All calls of the file system that only read.
pub const LOOKING: &[Call] = &[Call::Look, Call::List, Call::Open, Call::Read, Call::Length];

/// Do this at the `at`-th of these calls, counted from 1 and from now on.
#[derive(Clone, Debug)]
pub struct Order {
    pub calls: &'static [Call],
    pub at: u64,
    pub then: Then,
}

impl Order {
    pub fn of(calls: &'static [Call], at: u64, then: Then) -> Self {
        Self { calls, at, then }
    }
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Then {
    /// The call fails. Of a write a part may have been written; of a failed sync any part may have
    /// reached the medium, and the rest never will, whatever the next sync says.
    Fail(Error),
    /// This one fails and so do all later ones.
    FailOn(Error),
    /// It is done, and an error is given all the same, as on a network file system.
    FailDone(Error),
    /// The power fails: of a write a part may have been written, all later calls fail.
    PowerOff,
    /// Whoever makes the call waits there.
    Stop(Gate),
    /// The same in the middle of a write: half of it is written, the rest comes when the gate is opened.
    StopHalfway(Gate),
    /// This bit of what is written, counted round, is another, and nobody is told.
    Spoil(usize),
    /// This one takes so long, and so do all later ones.
    Take(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    Io,
    Full,
    ReadOnly,
    /// The power fails in this call.
    PowerOff,
    /// It has failed before.
    Off,
}

impl Error {
    pub(super) fn io(self) -> io::Error {
        match self {
            Self::Io => io::Error::from_raw_os_error(5),
            Self::Full => io::Error::from_raw_os_error(28),
            Self::ReadOnly => io::Error::from_raw_os_error(30),
            Self::PowerOff | Self::Off => io::Error::other("the power is off"),
        }
    }
}

/// What becomes of one call.
pub(super) enum Verdict {
    Do,
    Fail(Error),
    FailDone(Error),
    Stop(Gate),
    StopHalfway(Gate),
    Spoil(usize),
    Take(Duration),
}

/// Counts calls, and knows what was ordered.
#[derive(Debug, Default)]
pub(super) struct Orders {
    counts: std::collections::HashMap<Call, u64>,
    /// Each with how many of its calls have come since.
    waiting: Vec<(Order, u64)>,
    pub(super) off: bool,
}

impl Orders {
    pub(super) fn add(&mut self, order: Order) {
        self.waiting.push((order, 0));
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn count(&self, calls: &[Call]) -> u64 {
        let counts = calls.iter().filter_map(|call| self.counts.get(call));
        counts.sum()
    }

    pub(super) fn verdict(&mut self, call: Call) -> Verdict {
        *self.counts.entry(call).or_default() += 1;
        if self.off {
            return Verdict::Fail(Error::Off);
        }
        let mut verdict = Verdict::Do;
        for (order, came) in &mut self.waiting {
            if !order.calls.contains(&call) {
                continue;
            }
            *came += 1;
            match &order.then {
                Then::Fail(error) if *came == order.at => verdict = Verdict::Fail(*error),
                Then::FailOn(error) if *came >= order.at => verdict = Verdict::Fail(*error),
                Then::FailDone(error) if *came == order.at => verdict = Verdict::FailDone(*error),
                Then::Stop(gate) if *came == order.at => verdict = Verdict::Stop(gate.clone()),
                Then::StopHalfway(gate) if *came == order.at => {
                    verdict = Verdict::StopHalfway(gate.clone());
                }
                Then::Take(time) if *came >= order.at => verdict = Verdict::Take(*time),
                Then::Spoil(bit) if *came == order.at => verdict = Verdict::Spoil(*bit),
                Then::PowerOff if *came == order.at => {
                    self.off = true;
                    verdict = Verdict::Fail(Error::PowerOff);
                }
                _ => {}
            }
        }
        verdict
    }
}
