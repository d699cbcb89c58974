//! Plans: what a program would do, without computing.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sde::archiver::MemoryArchiver;
use sde::ranks::ThreadGroup;
use sde::store::Cbor;
use sde::{AppError, Error, ErrorKind, Handle, Peek, Plan, Policy, SavePolicy, Sde};
use sde_tests::{Gate, LIMIT, Made, Watch, Watchdog, number, number_info, says, x, y};

use super::{Captured, watched};

#[sde::app]
fn half(n: u64) -> Result<u64, AppError> {
    match n % 2 {
        0 => Ok(n / 2),
        _ => Err(AppError::message("odd")),
    }
}

fn counted(plan: &Plan) -> [usize; 4] {
    let count = |is: fn(&Peek) -> bool| plan.runs().iter().filter(|run| is(&run.what)).count();
    [
        count(|what| matches!(what, Peek::Miss { .. })),
        count(|what| matches!(what, Peek::Load { .. })),
        count(|what| matches!(what, Peek::Hit { .. })),
        count(|what| matches!(what, Peek::Failed { .. })),
    ]
}

fn on(store: &MemoryArchiver, watch: &Watch) -> Sde {
    let builder = Sde::builder().store(store.clone()).observer(watch.clone());
    builder.save(SavePolicy::OnRequest).build().unwrap()
}

#[test]
fn a_sweep_is_planned_to_its_end_and_changes_nothing() {
    let store = MemoryArchiver::new();
    let first = on(&store, &Watch::new());
    half.par_call(&first, [2, 4, 6]).unwrap();
    // What is not archived yet is archived by who uses it.
    first.checkpoint().unwrap();
    let watch = Watch::new();
    let sde = on(&store, &watch);
    half.call(&sde, 2).unwrap();
    sde.finish().unwrap();
    watch.clear();
    let before = sde.stats();
    let plan = sde.plan(|sde| half.par_call(sde, [2, 4, 6, 8, 10, 8, 4]));
    let plan = plan.unwrap();
    assert_eq!(counted(&plan), [2, 2, 1, 0]);
    let calls: Vec<_> = plan.runs().iter().map(|run| run.calls).collect();
    assert_eq!(calls, [1; 5], "equal items are one call");
    assert!(!plan.is_complete() && plan.error().is_none());
    let after = sde.stats();
    assert_eq!(after.total, before.total);
    sde.archive().unwrap();
    assert_eq!((watch.saved(), watch.events().len()), (0, 0));
    assert!(sde.try_get(&half, &sde::inputs! { n: 4_u64 }).is_none());
}

#[test]
fn each_kind_of_sweep_goes_on_after_a_value_that_is_missing() {
    let (sde, watch) = watched();
    half.par_call(&sde, [2, 4]).unwrap();
    watch.clear();
    let error = |result: Result<(), Error>| assert!(result.unwrap_err().is_planned());
    let mut given = Vec::new();
    let plan = sde.plan(|sde| {
        let each = |at, value: sde::Value<u64>| given.push((at, *value));
        error(half.par_call_each(sde, [6, 2, 8, 4], each));
        Ok::<(), Error>(())
    });
    assert_eq!(counted(&plan.unwrap()), [2, 0, 2, 0]);
    assert_eq!(given, [(1, 1), (3, 2)]);
    let plan = sde.plan(|sde| {
        let all = half.try_par_call(sde, [6, 2, 8]);
        assert_eq!(all.iter().filter(|one| one.is_err()).count(), 2);
        all.into_iter().collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(counted(&plan.unwrap()), [2, 0, 1, 0]);
    let plan = sde.plan(|sde| {
        let call = |sde: &Handle, n: &u64| half.call(sde, *n);
        let (a, b) = sde.join(|sde| call(sde, &6), |sde| call(sde, &8));
        let all = sde.par_each(&[2, 6, 8, 10], call);
        a?;
        b?;
        all.into_iter().collect::<Result<Vec<_>, _>>()
    });
    let plan = plan.unwrap();
    assert_eq!(
        counted(&plan),
        [2, 0, 0, 0],
        "what comes after is not certain"
    );
    let plan = sde.plan(|sde| {
        let all = sde.par_each(&[2, 6, 8, 10], |sde, n| half.call(sde, *n));
        all.into_iter().collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(counted(&plan.unwrap()), [3, 0, 1, 0]);
    let sets = |sde: &Handle| {
        let list = [6_u64, 8].map(|n| sde::inputs! { n: n });
        let all = sde.par_map_on_sets(&half, &list, 1);
        all.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let refused = sde.plan(sets).unwrap();
    says(refused.error().unwrap(), "not distributed");
    assert!(watch.events().is_empty());
}

#[test]
fn what_may_rest_on_a_missing_value_is_not_listed() {
    let sde = Sde::new();
    half.call(&sde, 20).unwrap();
    let plan = sde.plan(|sde| {
        // The value stands in for another.
        let n = half.call(sde, 8).map_or(20, |value| *value);
        half.call(sde, n)
    });
    let plan = plan.unwrap();
    assert_eq!((counted(&plan), plan.is_complete()), ([1, 0, 0, 0], false));
    let pairs = |sde: &Handle| {
        let each = |sde: &Handle, n: &u64| half.call(sde, *half.call(sde, *n)?);
        let all = sde.par_each(&[20, 40, 80, 40], each);
        all.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let plan = sde.plan(pairs).unwrap();
    assert_eq!(counted(&plan), [3, 0, 1, 0], "10, 40 and 80");
    assert_eq!(plan.runs()[2].calls, 2);
}

#[test]
fn failures_are_given_or_repeated_and_other_errors_are_those_of_the_program() {
    let store = MemoryArchiver::new();
    let first = on(&store, &Watch::new());
    first.plan(|sde| half.call(sde, 3)).unwrap();
    assert!(half.call(&first, 3).is_err());
    let plan = first.plan(|sde| half.par_call(sde, [1, 3, 5])).unwrap();
    assert_eq!(counted(&plan), [1, 0, 0, 1], "nothing begins after it");
    first.finish().unwrap();
    let sde = on(&store, &Watch::new());
    let plan = sde.plan(|sde| half.call(sde, 3)).unwrap();
    let Peek::Miss { why, .. } = &plan.runs()[0].what else {
        panic!("{plan}")
    };
    assert_eq!(why, "it failed before: odd");
    let only = |sde: &Handle| {
        let request = half.request(sde, 7).policy(Policy::OnlyIfRemembered);
        Ok::<_, Error>(*request.run()?.value)
    };
    let plan = sde.plan(only).unwrap();
    says(plan.error().unwrap(), "it was never computed");
    assert!(plan.is_complete() && plan.runs().is_empty());
    let plan = sde.plan(|sde| {
        half.call(sde, 7).map_err(|error| error.to_string())?;
        Err::<(), _>("a file is missing".to_owned())
    });
    assert!(plan.unwrap().error().is_none(), "it may not come to that");
    let plan = sde.plan(|_| Err::<(), _>("a file is missing"));
    assert_eq!(plan.unwrap().error(), Some("a file is missing"));
}

#[test]
fn runs_made_anew_count_each_time_and_are_taken_by_later_calls() {
    let sde = Sde::new();
    half.call(&sde, 8).unwrap();
    let with = |sde: &Handle, policy| half.request(sde, 8).policy(policy).run().map(drop);
    for (policies, expected) in [
        ([Policy::Bypass, Policy::Use, Policy::Bypass], [2, 0, 1, 0]),
        ([Policy::Use, Policy::Refresh, Policy::Use], [1, 0, 1, 0]),
        (
            [Policy::Refresh, Policy::Use, Policy::Refresh],
            [2, 0, 0, 0],
        ),
    ] {
        let plan = sde.plan(|sde| {
            let all = sde.par_each(&policies, |sde, policy| with(sde, *policy));
            all.into_iter().collect::<Result<(), _>>()
        });
        assert_eq!(counted(&plan.unwrap()), expected, "{policies:?}");
    }
}

#[test]
fn a_value_that_will_be_another_is_not_given() {
    let sde = Sde::new();
    half.call(&sde, 8).unwrap();
    let policies = [Policy::Refresh, Policy::Use];
    let plan = sde.plan(|sde| {
        let each = |sde: &Handle, policy: &Policy| half.request(sde, 8).policy(*policy).run();
        let all = sde.par_each(&policies, each);
        let after = all[1].as_ref().map(|called| called.source);
        assert!(after.unwrap_err().is_planned());
        Ok::<(), Error>(())
    });
    assert_eq!(plan.unwrap().runs()[0].calls, 2);
}

#[test]
fn a_failure_in_memory_is_given() {
    let sde = Sde::new();
    let app = number("never", |_, _| Err(AppError::message("no").permanent()));
    let text = |error: Error| format!("{error:#}");
    let error = text(sde.run(&app, &x(1)).unwrap_err());
    let plan = sde.plan(|sde| sde.run(&app, &x(1))).unwrap();
    assert_eq!(
        (counted(&plan), plan.error()),
        ([0, 0, 0, 1], Some(&*error))
    );
}

#[test]
fn a_run_that_goes_on_is_not_waited_for() {
    let _dog = Watchdog::new("a plan beside a run", LIMIT);
    let (sde, gate) = (Sde::new(), Gate::new());
    let app = number("held", move |_, n| {
        gate.pass();
        Ok(n)
    });
    thread::scope(|scope| {
        let running = scope.spawn(|| y(&sde.run(&app, &x(0)).unwrap()).unwrap());
        gate.arrived(1);
        let plan = sde.plan(|sde| sde.run(&app, &x(0))).unwrap();
        assert!(matches!(plan.runs()[0].what, Peek::Wait { .. }), "{plan}");
        assert_eq!((plan.missing().count(), plan.is_complete()), (1, false));
        gate.open();
        assert_eq!(running.join().unwrap(), 0);
    });
}

#[test]
fn a_plan_is_made_where_it_can_be_kept() {
    // Another handle would compute, also on helpers.
    let (sde, watch) = watched();
    let plan = sde.plan(|_| half.call(&sde, 8)).unwrap();
    says(
        plan.error().unwrap(),
        "the handle that the closure of `plan` is given",
    );
    let plan = sde.plan(|_| half.par_call(&sde, 0..20).map(drop)).unwrap();
    says(plan.error().unwrap(), "through another handle");
    assert_eq!(watch.started("half"), 0);
    half.call(&sde, 8).unwrap();
    assert_eq!(
        watch.events().len(),
        2 + watch.count(|event| matches!(
            event,
            sde::Event::Failed { .. } | sde::Event::Progress { .. }
        ))
    );

    let captured = Captured::default();
    let plans = number("plans", move |_, n| {
        let sde = captured.get().expect("set below");
        let plan = sde.plan(|sde| sde.run("plans", &x(n + 1)));
        Err(AppError::from(plan.unwrap_err()))
    });
    let sde = Sde::new();
    captured.set(sde.clone()).unwrap();
    let error = format!("{:#}", sde.run(&plans, &x(1)).unwrap_err());
    says(&error, "plan outside of apps");

    let errors = ThreadGroup::run(2, |group| {
        let sde = Sde::builder().process_group(group, Cbor).build().unwrap();
        let error = sde.plan(|sde| half.call(sde, 8)).unwrap_err();
        sde.finish().unwrap();
        error.to_string()
    });
    errors
        .iter()
        .for_each(|error| says(error, "start it on one rank to plan it"));
}

/// A number of two inputs.
fn pair(version: &'static str, takes: Option<Duration>) -> Made {
    let app = sde_tests::made(number_info("pair", version), |_, inputs| {
        let n: u64 = *inputs.get::<u64>("n")? + *inputs.get::<u64>("grid")?;
        Ok(sde::ResultMap::new().with("y", n))
    });
    match takes {
        Some(time) => app.taking(time),
        None => app,
    }
}

fn points(grid: u64, to: u64) -> Vec<sde::Inputs> {
    (0..to).map(|n| sde::inputs! { n: n, grid: grid }).collect()
}

#[test]
fn a_plan_tells_reasons_and_times_in_80_columns() {
    let hour = Duration::from_secs(3600);
    let store = MemoryArchiver::new();
    let builder = || {
        let builder = Sde::builder().store(store.clone()).threads(2);
        builder.save(SavePolicy::OnRequest).time_limit(2 * hour)
    };
    let first = builder().build().unwrap();
    first.par_map(&pair("1", None), &points(100, 12));
    first.finish().unwrap();
    let sde = builder().build().unwrap();
    let app = pair("1", Some(hour));
    let mut list = points(100, 15);
    list.extend(points(200, 12));
    let sweep = |sde: &Handle| {
        sde.par_map(&app, &list)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    };
    let plan = sde.plan(sweep).unwrap();
    assert_eq!(counted(&plan), [15, 12, 0, 0]);
    assert_eq!((plan.time(), plan.fits(2 * hour)), (Some(8 * hour), 4));
    assert!(plan.missing().all(|run| run.cost == Some(hour)));
    let text = plan.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "app   to compute  in store         time",
            "pair          15        12  15 h 00 min",
            "pair: 12 for input \"grid\": 100 -> 200",
            "pair: 3 new points",
        ]
    );
    assert_eq!(lines[4], "Computing takes about 8 h 00 min on 2 threads.");
    says(lines[5], "of the 15 to compute fit.");
    assert_eq!(
        lines[6],
        "What the program does with the missing values is not known."
    );

    // Recorded times are those of runs that were made.
    let sde = builder().build().unwrap();
    let plan = sde.plan(|sde| sde.run(&pair("2", None), &points(100, 1)[0]));
    let plan = plan.unwrap();
    assert!(plan.runs()[0].cost.is_some());
    says(&plan.to_string(), "version");
    let long = number(
        "a_name::of_modules_that_are::nested_very_deeply::until_it_is::long",
        |_, n| Ok(n),
    );
    let plan = sde.plan(|sde| sde.run(&long, &x(1))).unwrap();
    assert!(plan.runs()[0].cost.is_none() && plan.time().is_none());
    assert!(
        plan.to_string()
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{plan}"
    );
    let empty = sde.plan(|_| Ok::<(), Error>(())).unwrap();
    assert_eq!(
        empty.to_string().trim(),
        "All is remembered: nothing is computed."
    );
    let error = sde.plan(|sde| sde.run("nobody", &x(1))).unwrap();
    says(&error.to_string(), "The program ends with an error: ");
}

#[test]
fn the_error_of_a_planned_call_names_the_run() {
    let sde = Sde::new();
    let mut seen = None;
    let plan = sde.plan(|sde| {
        half.call(sde, 8)
            .inspect_err(|error| seen = Some(error.clone()))
    });
    let error = seen.unwrap();
    let key = plan.unwrap().runs()[0].what.key();
    assert_eq!(error.key(), Some(&key));
    let ErrorKind::Planned { app, .. } = error.kind() else {
        panic!("{error}")
    };
    assert_eq!(
        *app,
        Arc::from(half.request(&sde, 8).peek().map(|_| &**app).unwrap())
    );
    says(&error, "is not computed: this is a plan");
}
