//! The trait of `#[sde::app]` functions: the verbs of code that is given any of them.

use std::ops::ControlFlow;

use sde::{CallApp, Error, Handle, Peek, Policy, Sde, Source, Value};

#[sde::app(name = "call_app.shifted")]
fn shifted(xs: &[f64], by: f64) -> Vec<f64> {
    xs.iter().map(|x| x + by).collect()
}

#[sde::app(name = "call_app.parabola")]
fn parabola(x: f64) -> f64 {
    (x - 2.0) * (x - 2.0)
}

#[sde::app(name = "call_app.line")]
fn line(x: f64) -> Result<f64, String> {
    match x < 3.0 {
        true => Ok(-x),
        false => Err(format!("{x} is too far")),
    }
}

#[sde::app(name = "call_app.constant")]
fn constant() -> u32 {
    7
}

#[derive(sde::Results)]
struct Halves {
    whole: u64,
    rest: u64,
}

#[sde::app(name = "call_app.halved", results)]
fn halved(number: u64) -> Halves {
    Halves {
        whole: number / 2,
        rest: number % 2,
    }
}

/// The argument for which a function is least; points that fail are left out.
fn least<A>(sde: &Handle, app: &A, grid: &[f64]) -> Option<f64>
where
    A: CallApp<Args = f64, Given = Value<f64>>,
{
    let values = app.try_par_call(sde, grid.iter().copied());
    let all = grid.iter().zip(&values);
    let all = all.filter_map(|(x, value)| Some((*x, **value.as_ref().ok()?)));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(x, _)| x)
}

/// The values until one serves, each with its source.
fn until<A: CallApp>(
    sde: &Handle,
    app: &A,
    items: Vec<A::Args>,
    serves: impl Fn(&A::Given) -> bool + Sync + Send,
) -> Result<usize, Error>
where
    A::Args: Send,
{
    let mut seen = 0;
    app.par_call_each(sde, items, |_, value| {
        seen += 1;
        match serves(&value) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(seen)
}

#[test]
fn a_sweep_takes_any_function_of_its_type() {
    let sde = Sde::new();
    let grid = [0.0, 1.0, 2.0, 3.0];
    assert_eq!(least(&sde, &parabola, &grid), Some(2.0));
    assert_eq!(least(&sde, &line, &grid), Some(2.0));
    let seen = until(&sde, &halved, vec![3, 5, 7], |h| *h.rest == 1);
    assert_eq!(seen.unwrap(), 1);
    let all = CallApp::par_call(&halved, &sde, [5, 5]).unwrap();
    assert_eq!((*all[0].whole, *all[1].rest), (2, 1));
    assert_eq!(*constant.call_with(&sde, ()).unwrap(), 7);
    let error = CallApp::par_call(&line, &sde, [1.0, 4.0]).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("4 is too far"), "{text}");
}

#[test]
fn a_typed_request_is_the_typed_call() {
    let sde = Sde::new();
    let request = || shifted.request(&sde, ([1.0, 2.0], 0.5));
    let only = request().policy(Policy::OnlyIfRemembered).run();
    assert!(only.is_err());
    let key = request().peek().unwrap().key();
    let value = shifted.call(&sde, &[1.0, 2.0], 0.5).unwrap();
    let called = request().run().unwrap();
    assert!(Value::ptr_eq(&called.value, &value));
    assert_eq!((called.key, called.source), (key, Source::Memory));
    assert!(
        matches!(request().peek().unwrap(), Peek::Hit { made_by, .. } if made_by == called.made_by)
    );
    let again = request().policy(Policy::Refresh).run().unwrap();
    assert_eq!(again.source, Source::Computed);
    assert_eq!(sde.stats().apps["call_app.shifted"].computed, 2);
    let by_trait = shifted.call_with(&sde, (vec![1.0, 2.0], 0.5)).unwrap();
    assert!(Value::ptr_eq(&by_trait, &again.value));
    assert_eq!(*constant.request(&sde, ()).run().unwrap().value, 7);
    let halves = halved.request(&sde, 9).run().unwrap().value;
    assert_eq!((*halves.whole, *halves.rest), (4, 1));
}
