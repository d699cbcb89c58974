//! What a scan told in its sessions, of which all but the last were killed, and that it does nothing
//! twice that it has told of.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// The app that keeps its state, and the one that it runs once in each iteration.
const ITERATES: &str = "Rhf";
const ITERATION: &str = "Diis";

/// What all sessions told so far.
#[derive(Default)]
pub struct Told {
    /// The runs that were computed and saved.
    computed: HashSet<String>,
    /// The iterations whose states were saved.
    iterations: HashSet<String>,
    /// The runs of which a state was saved, and that have not come to their end.
    unfinished: HashSet<String>,
    /// The iterations that had come to their end and whose states were not acknowledged, by run.
    left: HashMap<String, String>,
    counts: Counts,
}

/// What came of the kills.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// How often a run went on from a state.
    pub resumed: u64,
    /// How often a state was not acknowledged: the kill came while it was saved, or just before.
    pub unacknowledged: u64,
    /// How often such a state had been saved all the same.
    pub saved_unacknowledged: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} points gone on with from an iteration; {} iterations whose state was not acknowledged, of which {} had been saved",
            self.resumed, self.unacknowledged, self.saved_unacknowledged
        )
    }
}

/// What one thread does: a run of [`ITERATES`] that it has begun, in another that it has begun where it
/// takes over work while it waits.
#[derive(Default)]
struct Thread {
    within: Vec<Iterating>,
}

#[derive(Default)]
struct Iterating {
    run: String,
    /// It has gone on from a state, or saved one.
    has_state: bool,
    /// An iteration that has come to its end and is not saved yet.
    unsaved: Option<String>,
}

impl Told {
    /// From here on it is of another store. What was counted stays.
    pub fn begins_anew(&mut self) {
        *self = Self {
            counts: self.counts,
            ..Self::default()
        };
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes note of what one session said, to its end or until it was killed.
    pub fn session(&mut self, said: &str) {
        let mut threads: HashMap<&str, Thread> = HashMap::new();
        let lines = said.split_inclusive('\n');
        let lines = lines.filter_map(|line| line.strip_suffix('\n'));
        // A kill may cut a save short, and the next session tells of that.
        for line in lines.filter(|line| !line.contains("a save was cut short")) {
            let rest = line.strip_prefix("thread ");
            let (thread, what) = rest
                .and_then(|rest| rest.split_once(": "))
                .unwrap_or_else(|| panic!("{line:?} in\n{said}"));
            let thread = threads.entry(thread).or_default();
            self.line(thread, what)
                .unwrap_or_else(|why| panic!("{line}: {why}, in a session that said\n{said}"));
        }
        for own in threads.into_values().flat_map(|thread| thread.within) {
            if let Some(iteration) = own.unsaved {
                self.counts.unacknowledged += 1;
                self.left.insert(own.run, iteration);
            }
        }
    }

    fn line(&mut self, thread: &mut Thread, what: &str) -> Result<(), String> {
        let words: Vec<&str> = what.split(' ').collect();
        match words[..] {
            ["computing", app, key] => self.begins(thread, app, format!("{app} {key}")),
            ["computed", app, key] => self.ends(thread, app, format!("{app} {key}")),
            ["going", "on", "with", app, key, ..] => {
                let run = format!("{app} {key}");
                let own = thread.within.last_mut().filter(|own| own.run == run);
                own.ok_or("it had not begun")?.has_state = true;
                self.counts.resumed += 1;
                Ok(())
            }
            ["saved,", "entries:", _, "states:", "1,", ..] => {
                let own = thread.within.last_mut().ok_or("nothing iterates")?;
                own.has_state = true;
                self.unfinished.insert(own.run.clone());
                // The last iteration finds that all is converged, and needs no next matrix.
                let last = || format!("the last of {}", own.run);
                let iteration = own.unsaved.take().unwrap_or_else(last);
                match self.iterations.insert(iteration) {
                    true => Ok(()),
                    false => Err("this iteration was made and saved before".to_owned()),
                }
            }
            ["loaded", ..] | ["saved,", ..] => Ok(()),
            _ => Err("it can't be understood".to_owned()),
        }
    }

    fn begins(&mut self, thread: &mut Thread, app: &str, run: String) -> Result<(), String> {
        if self.computed.contains(&run) {
            return Err("it was computed and saved before".to_owned());
        }
        if app == ITERATES {
            thread.within.push(Iterating {
                run,
                ..Iterating::default()
            });
        } else if app == ITERATION {
            let own = thread.within.last().ok_or("nothing iterates")?;
            if !own.has_state && self.unfinished.contains(&own.run) {
                return Err(format!("{} begins anew, and had saved a state", own.run));
            }
            let left = self.left.remove(&own.run);
            self.counts.saved_unacknowledged += u64::from(left.is_some_and(|left| left != run));
            if self.iterations.contains(&run) {
                return Err("the iteration was made and saved before".to_owned());
            }
        }
        Ok(())
    }

    fn ends(&mut self, thread: &mut Thread, app: &str, run: String) -> Result<(), String> {
        if app == ITERATION {
            // Its own result is kept by nobody: it is in the state.
            let own = thread.within.last_mut().ok_or("nothing iterates")?;
            own.unsaved = Some(run);
            return Ok(());
        }
        if app == ITERATES {
            let own = thread.within.pop().filter(|own| own.run == run);
            own.ok_or("it had not begun")?;
            self.unfinished.remove(&run);
            // Nothing was left to do but to save the results.
            self.counts.saved_unacknowledged += u64::from(self.left.remove(&run).is_some());
        }
        self.computed.insert(run);
        Ok(())
    }
}
