//! The attempts of one run: again while it fails, and on from what an attempt has left.

use std::fs::File;
use std::io::{self, Read};

use sde_engine::{AppError, Handle};

use crate::carry::Carry;
use crate::error::EndedBy;
use crate::judge::{Judged, Stream};
use crate::plan::Plan;
use crate::run::{Attempt, Whole};

impl Plan {
    /// Runs the program until it passes, or may not be run again. An error says that the last attempt did not end by itself,
    /// or could not be made.
    ///
    /// All attempts are one run: nobody is given one that is followed by another.
    pub(crate) fn execute(&self, sde: Option<&Handle>) -> Result<Whole, AppError> {
        let carry = Carry::new(sde, &self.carried);
        let (mut before, mut retries) = (Vec::new(), 0..self.retries);
        loop {
            let from = carry.latest();
            let attempt = self.attempt(sde, &carry, from.as_deref());
            let attempt = attempt.map_err(AppError::transient)?;
            let why = match &attempt {
                Attempt::Whole(whole) => self.fails(whole),
                Attempt::Ended(ended) => Some(ended.how.clone()),
            };
            // What it went on from may be torn: that is no failure of the run yet.
            let is_torn = match (&attempt, &from) {
                (Attempt::Whole(_), Some(_)) => why.is_some(),
                (Attempt::Ended(ended), Some(from)) => {
                    matches!(ended.by, EndedBy::Crash | EndedBy::Outside)
                        && !from.is_before(carry.latest().as_deref())
                }
                (_, None) => false,
            };
            let goes_on = match (&attempt, &from) {
                (_, Some(from)) if is_torn => {
                    carry.forget(from);
                    true
                }
                (Attempt::Whole(_), _) => {
                    carry.clear();
                    why.is_some() && retries.next().is_some()
                }
                (Attempt::Ended(ended), _) => {
                    ended.by != EndedBy::Caller && retries.next().is_some()
                }
            };
            match (attempt, why) {
                (_, Some(why)) if goes_on => before.push(match from {
                    Some(_) => format!("resumed: {why}"),
                    None => why,
                }),
                (Attempt::Whole(mut whole), _) => {
                    whole.attempts = before;
                    return Ok(whole);
                }
                (Attempt::Ended(mut ended), _) => {
                    ended.attempts = before;
                    let (by, tail) = (ended.by, ended.tail.clone());
                    let error = AppError::from(ended).with_output(tail);
                    // What others ended may go well the next time.
                    return Err(match by {
                        EndedBy::Crash => error,
                        EndedBy::Caller | EndedBy::Outside | EndedBy::Limit => error.transient(),
                    });
                }
            }
        }
    }

    /// Why a run does not pass. What can't be judged is judged, and told, by the call.
    fn fails(&self, whole: &Whole) -> Option<String> {
        let is_of_use = self.retries > 0 || whole.is_resumed;
        let written = Written { whole, plan: self };
        let judged = is_of_use.then(|| self.rules.judge(&written))?.ok()?;
        let whys: Vec<String> = judged.failures.iter().map(ToString::to_string).collect();
        (!whys.is_empty()).then(|| whys.join("; "))
    }
}

/// What a run wrote, still in its folder.
struct Written<'a> {
    whole: &'a Whole,
    plan: &'a Plan,
}

impl Judged for Written<'_> {
    fn status(&self) -> i32 {
        self.whole.status
    }

    fn declared(&self) -> Vec<String> {
        self.plan.outputs.names()
    }

    fn files(&self) -> Vec<String> {
        self.whole.files.keys().cloned().collect()
    }

    fn open(&self, stream: Stream<'_>) -> io::Result<Box<dyn Read + '_>> {
        let file = match stream {
            Stream::Output => &self.whole.stdout,
            Stream::Error => &self.whole.stderr,
            Stream::File(name) => self.whole.files.get(name).ok_or(io::ErrorKind::NotFound)?,
        };
        Ok(Box::new(File::open(file.path())?))
    }
}
