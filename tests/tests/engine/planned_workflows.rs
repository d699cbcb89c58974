//! What a plan calls certain happens when the program is then run, over random workflows.
//!
//! The apps call each other, some runs fail, some apps are edited between programs, and entries are invalidated. The plan
//! is of a list of calls and sweeps, some of which go on after an error.

use std::collections::HashMap;

use sde::archiver::MemoryArchiver;
use sde::{
    AppError, Error, ErrorKind, Event, Handle, Key, Peek, Plan, Policy, SavePolicy, Sde, Source,
};
use sde_tests::{Made, Watch, made, number_info, x, y};

const WORKFLOWS: u64 = 1000;
const APPS: u64 = 5;
const POINTS: u64 = 4;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn some<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = 1 + self.below(most);
        (0..count).map(|_| make(self)).collect()
    }
}

/// Apps of which each may call earlier ones, once or for a sweep; edited ones have another version. The one before the last is
/// non-deterministic.
fn apps(seed: u64, edited: u64) -> Vec<Made> {
    const NAMES: [&str; APPS as usize] = ["a", "b", "c", "d", "e"];
    let mut apps: Vec<Made> = Vec::new();
    for (at, name) in NAMES.into_iter().enumerate() {
        let version = if edited == at as u64 { "2" } else { "1" };
        let mut info = number_info(name, version);
        if at == 3 {
            info = info.nondeterministic();
        }
        let earlier = apps.clone();
        apps.push(made(info, move |sde, inputs| {
            let n = *inputs.get::<u64>("x")?;
            let mut random = Random(seed ^ (97 * at as u64 + n));
            if random.one_in(8) {
                let error = AppError::message("no convergence");
                return Err(if random.one_in(2) {
                    error.permanent()
                } else {
                    error
                });
            }
            let mut sum = n;
            if !earlier.is_empty() && random.one_in(2) {
                let callee = &earlier[random.below(earlier.len() as u64) as usize];
                let points = random.some(3, |random| x(random.below(POINTS)));
                for result in sde.par_map(callee, &points) {
                    sum += y(&result?)?;
                }
            }
            Ok(sde::ResultMap::new().with("y", sum))
        }));
    }
    apps
}

#[derive(Clone, Copy)]
struct Call {
    app: usize,
    point: u64,
    policy: Policy,
}

impl Call {
    /// One that may refresh, if it is made beside no other.
    fn any(random: &mut Random, alone: bool) -> Self {
        let policy = match random.below(12) {
            0 if alone => Policy::Refresh,
            1 => Policy::Bypass,
            2 => Policy::OnlyIfRemembered,
            _ => Policy::Use,
        };
        Self {
            app: random.below(APPS) as usize,
            point: random.below(POINTS),
            policy,
        }
    }

    fn make(self, sde: &Handle, apps: &[Made]) -> Result<u64, Error> {
        let inputs = x(self.point);
        let request = sde.request(&apps[self.app], &inputs);
        y(&request.policy(self.policy).run()?.results)
    }
}

enum Step {
    Call(Call),
    Sweep(usize, Vec<u64>),
    Each(Vec<(Call, Call)>),
    Join(Call, Call),
}

impl Step {
    fn any(random: &mut Random) -> Self {
        let call = |random: &mut Random| Call::any(random, false);
        match random.below(6) {
            0 => Self::Sweep(
                random.below(APPS) as usize,
                random.some(5, |random| random.below(POINTS)),
            ),
            1 => Self::Each(random.some(4, |random| (call(random), call(random)))),
            2 => Self::Join(call(random), call(random)),
            _ => Self::Call(Call::any(random, true)),
        }
    }

    fn make(&self, sde: &Handle, apps: &[Made]) -> Result<u64, Error> {
        match self {
            Self::Call(call) => call.make(sde, apps),
            Self::Sweep(app, points) => {
                let points: Vec<_> = points.iter().map(|point| x(*point)).collect();
                let all = sde.par_map(&apps[*app], &points).into_iter();
                all.map(|results| y(&results?)).sum()
            }
            Self::Each(pairs) => {
                let all = sde.par_each(pairs, |sde, (first, second)| {
                    let point = first.make(sde, apps)? % POINTS;
                    // What others ask for beside it is not bypassed.
                    let policy = Policy::Use;
                    let app = second.app;
                    Call { app, point, policy }.make(sde, apps)
                });
                all.into_iter().sum()
            }
            Self::Join(a, b) => {
                let (a, b) = sde.join(|sde| a.make(sde, apps), |sde| b.make(sde, apps));
                Ok(a? + b?)
            }
        }
    }
}

/// Makes the steps. The point of a call is moved by the values before it; an error ends the list, or counts as a number.
fn program(sde: &Handle, apps: &[Made], steps: &[(Step, bool)]) -> Result<u64, Error> {
    let mut sum = 0;
    for (step, goes_on) in steps {
        let made = match step {
            Step::Call(call) => Call {
                point: (call.point + sum) % POINTS,
                ..*call
            }
            .make(sde, apps),
            other => other.make(sde, apps),
        };
        sum += match made {
            Err(_) if *goes_on => 5,
            made => made?,
        };
    }
    Ok(sum)
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Became {
    Started,
    Loaded,
    Hit,
    Failed,
}

/// How often each happened to each key, and what came first.
#[derive(Default)]
struct Happened {
    times: HashMap<(Key, Became), usize>,
    first: HashMap<Key, Became>,
}

impl Happened {
    fn note(&mut self, key: Key, became: Became) {
        *self.times.entry((key, became)).or_default() += 1;
        self.first.entry(key).or_insert(became);
    }

    fn of(events: &[Event]) -> Self {
        let mut all = Self::default();
        for event in events {
            match event {
                Event::Started { key, .. } => all.note(*key, Became::Started),
                // A call that only looks fails where nothing is.
                Event::Failed { error, .. }
                    if matches!(error.kind(), ErrorKind::NotRemembered { .. }) => {}
                Event::Failed { key, .. } => all.note(*key, Became::Failed),
                Event::Finished { key, source, .. } => match source {
                    Source::Loaded => all.note(*key, Became::Loaded),
                    Source::Memory => all.note(*key, Became::Hit),
                    _ => {}
                },
                _ => {}
            }
        }
        all
    }

    fn planned(plan: &Plan) -> Self {
        let mut all = Self::default();
        for run in plan.runs() {
            let became = match run.what {
                Peek::Miss { .. } => Became::Started,
                Peek::Load { .. } => Became::Loaded,
                Peek::Hit { .. } => Became::Hit,
                Peek::Failed { .. } => Became::Failed,
                _ => panic!("nobody else is at it: {run:?}"),
            };
            let key = run.what.key();
            all.note(key, became);
            // Unknown calls may find beside it what it does not look for.
            if run.what.to_string().contains("anew") {
                all.first.remove(&key);
            }
        }
        all
    }

    /// Checks that what the plan calls certain is among it; that nothing else is, if the plan is complete.
    fn check(&self, plan: &Plan, what: &str) {
        let planned = Self::planned(plan);
        for (one, times) in &planned.times {
            let happened = self.times.get(one).copied().unwrap_or_default();
            assert!(
                happened >= *times,
                "{what}: {one:?}: {happened} of {times} times"
            );
            let is_one = |became| became == Became::Hit || became == Became::Failed;
            if plan.is_complete() && !is_one(one.1) {
                assert_eq!(happened, *times, "{what}: {one:?}");
            }
        }
        for (key, became) in &planned.first {
            let is_sole = planned
                .times
                .keys()
                .filter(|(other, _)| other == key)
                .count()
                == 1;
            let first = self.first[key];
            // Another thread may have told of its hit before the one that loaded it had told of that.
            let is_it = first == *became || (first, *became) == (Became::Hit, Became::Loaded);
            // Later, and unknown, it may be run again.
            assert!(!is_sole || is_it, "{what}: {key:?}: {became:?}, {first:?}");
        }
        if plan.is_complete() {
            let mut happened = self.first.keys();
            let other = happened.find(|key| !planned.first.contains_key(key));
            assert_eq!(other, None, "{what}");
        }
    }
}

/// Makes the apps known, as those are that are linked.
fn show(sde: &Sde, apps: &[Made]) {
    for app in apps {
        sde.apps().declare(sde::App::info(app)).unwrap();
    }
}

/// Runs steps, and marks some of the entries as invalid.
fn lives(sde: &Sde, apps: &[Made], random: &mut Random) {
    show(sde, apps);
    for (step, _) in random.some(6, |random| (Step::any(random), true)) {
        // It may fail: then there is a failure.
        let _ = step.make(sde, apps);
    }
    for call in random.some(2, |random| Call::any(random, false)) {
        let key = sde.peek(&apps[call.app], &x(call.point)).unwrap().key();
        // It may not be there.
        let _ = sde.invalidate(&key, "a doubt");
    }
}

#[test]
fn what_a_plan_calls_certain_happens() {
    let (mut complete, mut computed, mut loaded, mut hit, mut failed) = (0, 0, 0, 0, 0);
    for seed in 0..WORKFLOWS {
        let mut random = Random(seed);
        let store = MemoryArchiver::new();
        let builder = || {
            let builder = Sde::builder().store(store.clone()).threads(2);
            builder.save(SavePolicy::OnRequest)
        };
        let first = builder().build().unwrap();
        let edited = random.below(2 * APPS);
        lives(&first, &apps(seed, APPS), &mut random);
        first.finish().unwrap();

        let watch = Watch::new();
        let sde = builder().observer(watch.clone()).build().unwrap();
        let apps = apps(seed, edited);
        if random.one_in(2) {
            lives(&sde, &apps, &mut random);
        }
        show(&sde, &apps);
        let steps = random.some(5, |random| (Step::any(random), random.one_in(3)));
        watch.clear();
        let before = known(&sde);
        let plan = sde.plan(|sde| program(sde, &apps, &steps)).unwrap();
        let what = format!("workflow {seed}");
        assert!(watch.events().is_empty(), "{what}: {:?}", watch.events());
        assert_eq!(known(&sde), before, "{what}");

        let ended = program(&sde, &apps, &steps);
        Happened::of(&watch.events()).check(&plan, &what);
        if plan.is_complete() {
            let ended = ended.err().map(|error| format!("{error:#}"));
            assert_eq!(plan.error(), ended.as_deref(), "{what}");
        }
        complete += usize::from(plan.is_complete());
        for run in plan.runs() {
            *match run.what {
                Peek::Miss { .. } => &mut computed,
                Peek::Load { .. } => &mut loaded,
                Peek::Hit { .. } => &mut hit,
                _ => &mut failed,
            } += 1;
        }
    }
    // All of it is tried often.
    let tried = [complete, computed, loaded, hit, failed];
    assert!(tried.iter().all(|count| *count > 70), "{tried:?}");
}

/// What an engine counts and has: its numbers, and the keys and computations in memory.
fn known(sde: &Sde) -> (String, Vec<(Key, sde::record::RunId)>) {
    let mut all = Vec::new();
    sde.records(|record| all.push((record.key, record.run)));
    let stats = sde.stats();
    (format!("{:?} {:?}", stats.total, stats.memory), all)
}
