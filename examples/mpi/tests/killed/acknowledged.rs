//! What the ranks of a job told before it was killed, and that no later job computes it again.

use std::collections::HashSet;

/// Saved by the first rank for all, so its end on another rank says nothing; and one whose result is
/// kept only in the state of its caller.
const NOT_ACKNOWLEDGED: [&str; 2] = ["Scan", "Diis"];

/// The runs that the jobs on one store have told of as computed, which they do when they are saved.
#[derive(Default)]
pub struct Acknowledged {
    runs: HashSet<String>,
    count: usize,
}

impl Acknowledged {
    /// From here on jobs have another store.
    pub fn begins_anew(&mut self) {
        self.runs.clear();
    }

    /// How many there were, in all stores.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes note of what one job said. Its ranks may have computed the same at the same time, those of
    /// different jobs may not.
    pub fn job(&mut self, said: &str) {
        let mut new = HashSet::new();
        for (what, run) in said.lines().filter_map(run) {
            match what {
                "computing" => assert!(
                    !self.runs.contains(run),
                    "{run} was acknowledged, and is computed again\n{said}"
                ),
                _ => drop(new.insert(run.to_owned())),
            }
        }
        self.count += new.len();
        self.runs.extend(new);
    }
}

/// What a line says and of which run, if it is one of these and no other rank has written into it.
fn run(line: &str) -> Option<(&str, &str)> {
    let (thread, said) = line.strip_prefix("thread ")?.split_once(": ")?;
    let (what, run) = said.split_once(' ')?;
    let (app, key) = run.split_once(' ')?;
    let is_whole = thread.parse::<u64>().is_ok()
        && key.len() == 12
        && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    let counts = matches!(what, "computing" | "computed") && !NOT_ACKNOWLEDGED.contains(&app);
    (is_whole && counts).then_some((what, run))
}
