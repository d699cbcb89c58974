//! A model of who waits for whom when the engine's helpers, rayon's workers and plain threads are nested,
//! searched through to the end: by the rule of `docs/decisions/0015-no-hang-under-rayon.md` no state is
//! reached from which nobody can go on; without either half of it some is.
//!
//! The model knows what the engine can't see: a worker that waits for its job takes up others on its stack, and a thread that
//! is none waits for rayon until a worker has come. What the code does is tried in `tests/tests/engine/nesting.rs`.

use std::collections::HashSet;

/// How a body asks for what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Rayon,
    Own,
    Thread,
    /// Not at all; a worker may take up another job meanwhile.
    Yield,
}

/// What a run does: it needs two keys at most.
type Body = (Way, &'static [usize]);

/// Which halves of the rule are in force.
#[derive(Clone, Copy)]
struct Rule {
    /// On a rayon worker, and in runs nested there, nobody takes helpers.
    no_helpers: bool,
    /// What is nested in a run on a worker counts as on a worker, on whatever thread.
    inherited: bool,
}

/// What a thread has on its stack. Each knows whether it is nested in a run on a worker, if that matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Act {
    Ask(usize, bool),
    Wait(usize, bool),
    /// A body is above it, and has ended when this is on top again.
    Run(usize),
    /// The first half of a join is above it; the other is a job.
    Join(usize),
    /// A worker may take up a job here.
    Yield,
    /// Some worker is to do the job.
    Injected(usize),
    /// Ends a job.
    EndOf(usize),
    /// Takes items of a shared work.
    Share(usize),
    /// The same as a helper, which is counted.
    Help(usize),
    JoinThread(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Job {
    Waiting(&'static [usize], bool),
    Taken,
    Done,
}

/// Work that helpers may take part in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shared {
    keys: Vec<usize>,
    on_rayon: bool,
    open: bool,
    active: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Plain,
    Worker,
    Helper,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<(Kind, Vec<Act>)>,
    jobs: Vec<Job>,
    shared: Vec<Shared>,
    flying: Vec<bool>,
    done: Vec<bool>,
}

struct Program<'a> {
    bodies: &'a [Body],
    rule: Rule,
}

impl Program<'_> {
    /// All states that one step of one thread leads to.
    fn steps(&self, state: &State) -> Vec<State> {
        (0..state.threads.len())
            .flat_map(|thread| self.steps_of(state, thread))
            .collect()
    }

    fn steps_of(&self, state: &State, thread: usize) -> Vec<State> {
        let (kind, stack) = &state.threads[thread];
        let worker = *kind == Kind::Worker;
        let Some(top) = stack.last().cloned() else {
            return match kind {
                Kind::Plain => Vec::new(),
                Kind::Worker => state.steal(thread),
                Kind::Helper => state.help(thread),
            };
        };
        let mut next = state.clone();
        next.threads[thread].1.pop();
        match top {
            Act::Ask(key, _) if state.done[key] => {}
            Act::Ask(key, beneath) if !state.flying[key] || stack.contains(&Act::Run(key)) => {
                next.flying[key] = true;
                self.begin(&mut next, thread, key, beneath || worker);
            }
            Act::Ask(key, beneath) => next.push(thread, [Act::Wait(key, beneath)]),
            Act::Wait(key, _) if state.done[key] => {}
            // Patience ends: it computes too.
            Act::Wait(key, beneath) if self.counts(*kind, beneath) => {
                self.begin(&mut next, thread, key, beneath || worker);
            }
            Act::Run(key) => next.done[key] = true,
            Act::Join(job) => match &state.jobs[job] {
                Job::Waiting(keys, beneath) => {
                    next.jobs[job] = Job::Done;
                    next.push(thread, asks(keys, *beneath));
                }
                Job::Taken => return state.steal(thread),
                Job::Done => {}
            },
            Act::Injected(job) if state.jobs[job] == Job::Done => {}
            Act::Yield => return [vec![next.clone()], next.steal(thread)].concat(),
            Act::EndOf(job) => next.jobs[job] = Job::Done,
            Act::Share(at) | Act::Help(at) => {
                let work = &mut next.shared[at];
                if let Some(key) = work.keys.pop() {
                    let beneath = work.on_rayon;
                    next.push(thread, [top, Act::Ask(key, beneath)]);
                } else if matches!(top, Act::Help(_)) {
                    work.active -= 1;
                } else if work.open {
                    work.open = false;
                    next.push(thread, [top]);
                } else if work.active > 0 {
                    return Vec::new();
                }
            }
            Act::JoinThread(other) if state.threads[other].1.is_empty() => {}
            Act::Wait(..) | Act::Injected(_) | Act::JoinThread(_) => return Vec::new(),
        }
        vec![next]
    }

    /// Begins the body of a run.
    fn begin(&self, state: &mut State, thread: usize, key: usize, on_rayon: bool) {
        state.push(thread, [Act::Run(key)]);
        self.do_in(state, thread, self.bodies[key], on_rayon);
    }

    /// Whether a call counts as one on a worker.
    fn counts(&self, kind: Kind, beneath: bool) -> bool {
        kind == Kind::Worker || beneath && self.rule.inherited
    }

    fn do_in(&self, state: &mut State, thread: usize, (way, keys): Body, on_rayon: bool) {
        let kind = state.threads[thread].0;
        match way {
            Way::Rayon if kind == Kind::Worker => {
                let (first, second) = keys.split_at(keys.len().min(1));
                state.jobs.push(Job::Waiting(second, on_rayon));
                state.push(thread, [Act::Join(state.jobs.len() - 1)]);
                state.push(thread, asks(first, on_rayon));
            }
            Way::Rayon => {
                state.jobs.push(Job::Waiting(keys, on_rayon));
                state.push(thread, [Act::Injected(state.jobs.len() - 1)]);
            }
            Way::Own => {
                state.shared.push(Shared {
                    keys: keys.to_vec(),
                    on_rayon,
                    open: !(self.rule.no_helpers && self.counts(kind, on_rayon)),
                    active: 0,
                });
                state.push(thread, [Act::Share(state.shared.len() - 1)]);
            }
            Way::Thread => {
                let stack = asks(keys, on_rayon).collect();
                state.threads.push((Kind::Plain, stack));
                state.push(thread, [Act::JoinThread(state.threads.len() - 1)]);
            }
            Way::Yield if kind == Kind::Worker => state.push(thread, [Act::Yield]),
            Way::Yield => {}
        }
    }

    /// A state from which nobody can go on although there is something left to do.
    fn stuck(&self, first: State) -> Option<State> {
        let mut seen = HashSet::from([first.clone()]);
        let mut next = vec![first];
        while let Some(state) = next.pop() {
            let steps = self.steps(&state);
            if steps.is_empty() && state.threads.iter().any(|(_, stack)| !stack.is_empty()) {
                return Some(state);
            }
            next.extend(steps.into_iter().filter(|step| seen.insert(step.clone())));
        }
        None
    }
}

impl State {
    fn push(&mut self, thread: usize, acts: impl IntoIterator<Item = Act>) {
        self.threads[thread].1.extend(acts);
    }

    /// A worker takes a job of any other.
    fn steal(&self, thread: usize) -> Vec<Self> {
        let take = |(at, job): (usize, &Job)| {
            let Job::Waiting(keys, beneath) = job else {
                return None;
            };
            let mut next = self.clone();
            next.jobs[at] = Job::Taken;
            next.push(thread, [Act::EndOf(at)]);
            next.push(thread, asks(keys, *beneath));
            Some(next)
        };
        self.jobs.iter().enumerate().filter_map(take).collect()
    }

    /// A helper takes part in any work that is open.
    fn help(&self, thread: usize) -> Vec<Self> {
        let open = self.shared.iter().enumerate().filter(|(_, work)| work.open);
        let take = |(at, _): (usize, &Shared)| {
            let mut next = self.clone();
            next.shared[at].active += 1;
            next.push(thread, [Act::Help(at)]);
            next
        };
        open.map(take).collect()
    }
}

fn asks(keys: &[usize], beneath: bool) -> impl Iterator<Item = Act> {
    keys.iter().map(move |key| Act::Ask(*key, beneath))
}

/// Whether rayon is used on a thread that holds up a worker: if there is no other, that waits for itself, with
/// or without an engine.
fn hangs_by_itself(bodies: &[Body], (way, keys): Body, on_rayon: bool, held_up: bool) -> bool {
    let on_rayon = on_rayon || way == Way::Rayon;
    let held_up_beneath = held_up || on_rayon && way == Way::Thread;
    let beneath = |key: &usize| hangs_by_itself(bodies, bodies[*key], on_rayon, held_up_beneath);
    held_up && way == Way::Rayon || keys.iter().any(beneath)
}

/// Searches all programs of three runs that need one another: two threads ask for the same, one of them in a
/// loop of rayon's. Gives how many were searched, and how many of those can get stuck.
fn search(rule: Rule, workers: usize, helpers: usize) -> (usize, usize) {
    const WAYS: [Way; 4] = [Way::Rayon, Way::Own, Way::Thread, Way::Yield];
    let (mut searched, mut stuck) = (0, 0);
    for at in 0..WAYS.len().pow(3) {
        let way = |place: usize| WAYS[at / WAYS.len().pow(place as u32) % WAYS.len()];
        let bodies: [Body; 3] = [(way(0), &[]), (way(1), &[0]), (way(2), &[1, 0])];
        let root: Body = (Way::Rayon, &[0, 2]);
        if hangs_by_itself(&bodies, root, false, false) {
            continue;
        }
        let program = Program {
            bodies: &bodies,
            rule,
        };
        let kinds = [
            (Kind::Plain, 2),
            (Kind::Worker, workers),
            (Kind::Helper, helpers),
        ];
        let threads = kinds
            .into_iter()
            .flat_map(|(kind, number)| std::iter::repeat_n((kind, Vec::new()), number));
        let mut first = State {
            threads: threads.collect(),
            jobs: Vec::new(),
            shared: Vec::new(),
            flying: vec![false; 3],
            done: vec![false; 3],
        };
        program.do_in(&mut first, 0, root, false);
        first.push(1, [Act::Ask(2, false)]);
        searched += 1;
        stuck += usize::from(program.stuck(first).is_some());
    }
    (searched, stuck)
}

#[test]
fn by_the_rule_nobody_gets_stuck() {
    let rule = Rule {
        no_helpers: true,
        inherited: true,
    };
    for (workers, helpers) in [(1, 1), (1, 2), (2, 1)] {
        let (searched, stuck) = search(rule, workers, helpers);
        println!("{workers} workers, {helpers} helpers: {searched} programs");
        assert_eq!(
            stuck, 0,
            "of {searched}; {workers} workers, {helpers} helpers"
        );
    }
}

#[test]
fn each_half_of_the_rule_is_needed() {
    for (no_helpers, inherited) in [(false, true), (true, false)] {
        let rule = Rule {
            no_helpers,
            inherited,
        };
        let (searched, stuck) = search(rule, 1, 1);
        assert!(
            stuck > 0,
            "of {searched}; no helpers: {no_helpers}, inherited: {inherited}"
        );
    }
}
