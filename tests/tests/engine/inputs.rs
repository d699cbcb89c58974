//! Inputs against what an app declares: names, types and order, before anything is keyed.

use sde::record::Nearest;
use sde::{
    AnyArray, App, AppError, AppInfo, Data, DynApp, Error, Fingerprint, Handle, Inputs, Instance,
    Peek, ResultMap, ResultSpec, Sde, Slot, Value, inputs,
};
use sde_tests::{assert_kind, says};

#[sde::app]
fn one(x: f64) -> f64 {
    x
}

#[sde::app]
fn label(basis: String, charge: i32, points: &[f64], at: Value<Vec<u8>>) -> String {
    format!("{basis} {charge} {} {}", points.len(), at.len())
}

fn in_order() -> Inputs {
    inputs! { basis: "sto-3g", charge: -1, points: vec![1.0, 2.0], at: vec![7_u8] }
}

fn in_another() -> Inputs {
    inputs! { points: vec![1.0, 2.0], at: Value::new(vec![7_u8]), charge: -1, basis: "sto-3g".to_owned() }
}

fn told<T>(result: Result<T, Error>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

#[test]
fn another_order_is_the_same_run() {
    let sde = Sde::new();
    let typed = label
        .call(
            &sde,
            "sto-3g".to_owned(),
            -1,
            &[1.0, 2.0],
            Value::new(vec![7]),
        )
        .unwrap();
    assert_eq!(*typed, "sto-3g -1 2 1");
    let prepared = sde.prepare(&Instance::new(label)).unwrap();
    sde.apps().register("labelled", label).unwrap();
    for inputs in [in_order(), in_another(), in_another()] {
        // The second time they are known to be as declared.
        for _ in 0..2 {
            sde.run(&label, &inputs).unwrap();
            sde.run(&prepared, &inputs).unwrap();
            sde.request(&prepared, &inputs).run().unwrap();
            sde.run("labelled", &inputs).unwrap();
        }
    }
    assert_eq!(sde.stats().total.computed, 1);
    // A body that begins from `Inputs` gets them whatever they were given as.
    for inputs in [in_order(), in_another()] {
        let computed = Sde::new().run(&label, &inputs).unwrap();
        assert_eq!(*computed.get::<String>("result").unwrap(), *typed);
    }
}

/// One `Inputs` keeps the order of one app, and may be given to others.
#[test]
fn inputs_may_go_to_apps_with_other_orders() {
    #[sde::app]
    fn first(a: i32, b: i32, c: i32) -> i32 {
        100 * a + 10 * b + c
    }
    #[sde::app]
    fn second(b: i32, c: i32, a: i32) -> i32 {
        100 * b + 10 * c + a
    }
    let sde = Sde::new();
    let prepare = |app| sde.prepare(&app).unwrap();
    let apps = [Instance::new(first), Instance::new(second)].map(prepare);
    let of = |inputs: &Inputs| {
        let results = apps.each_ref().map(|app| sde.run(app, inputs).unwrap());
        results.map(|results| *results.get::<i32>("result").unwrap())
    };
    let given = inputs! { c: 3, b: 2, a: 1 };
    for inputs in [&given, &given.clone(), &inputs! { b: 2, c: 3, a: 1 }] {
        assert_eq!([of(inputs), of(inputs)], [[123, 231]; 2]);
    }
    assert_eq!(sde.stats().total.computed, 2);
    // They are what they were, and change as others do.
    assert!(given.names().eq(["c", "b", "a"]));
    let changed = given.clone().with("a", 6);
    assert_eq!([of(&changed), of(&given)], [[623, 236], [123, 231]]);
    assert!(told(sde.run(&apps[0], &changed.with("d", 6))).contains("\"d\""));
    let before = inputs! { a: 1, b: 2, c: 3 };
    of(&before);
    assert!(told(sde.run(&apps[0], &before.with("d", 6))).contains("\"d\""));
}

#[test]
fn what_is_not_as_declared_is_told_before_the_body() {
    #[sde::app]
    fn none() -> i32 {
        1
    }
    let sde = Sde::new();
    let without = inputs! { basis: "sto-3g", points: vec![1.0], at: vec![7_u8] };
    let wrong = |name: &'static str| in_order().with(name, 1.5_f32);
    let all = [
        (
            in_order().with("spin", 2),
            "label has no input \"spin\"; it has: basis, charge, points, at",
        ),
        (
            without.clone().with("charg", 1),
            "label has no input \"charg\"; did you mean: charge",
        ),
        (
            without,
            "label needs the input \"charge\"; given are: basis, points, at",
        ),
        (
            wrong("charge"),
            "input \"charge\" of label is a f32, not a i32",
        ),
        (
            wrong("points"),
            "input \"points\" of label is a f32, not a alloc::vec::Vec<f64>",
        ),
        (wrong("at"), "is a f32, not a alloc::vec::Vec<u8>"),
        (wrong("basis"), "is a f32, not a alloc::string::String"),
    ];
    for (inputs, expected) in all {
        let each = [
            told(sde.run(&label, &inputs)),
            told(sde.request(&label, &inputs).run()),
            told(sde.peek(&label, &inputs)),
            told(sde.cost(&label, &inputs)),
            told(sde.par_map(&label, std::slice::from_ref(&inputs)).remove(0)),
        ];
        for told in each {
            assert!(told.contains(expected), "{told}");
        }
    }
    assert!(told(sde.run(&none, &inputs! { x: 1 })).contains("it has: none"));
    let total = sde.stats().total;
    assert_eq!((total.computed, total.failures), (0, 0));
    sde.run(&none, &inputs! {}).unwrap();
}

#[test]
fn peek_names_the_key_that_a_call_makes() {
    let sde = Sde::new();
    let Peek::Miss { key, .. } = sde.peek(&label, &in_another()).unwrap() else {
        panic!("it was not run");
    };
    assert_eq!(sde.request(&label, &in_order()).run().unwrap().key, key);
    let hit = sde.peek(&label, &in_another()).unwrap();
    assert!(
        matches!(hit, Peek::Hit { key: found, .. } if found == key),
        "{hit}"
    );
    // A run with other values differs in those alone.
    let other = in_another().with("charge", 3);
    let Peek::Miss {
        nearest: Some(Nearest { differences, .. }),
        ..
    } = sde.peek(&label, &other).unwrap()
    else {
        panic!("it was not run");
    };
    assert_eq!(differences.len(), 1, "{differences:?}");
}

/// They were deduplicated by their encoding, so equal ones in another order were not.
#[test]
fn a_list_with_mixed_orders_computes_equal_inputs_once() {
    let sde = Sde::builder().threads(4).build().unwrap();
    let wrong = in_order().with("spin", 2);
    let list = [
        in_order(),
        wrong,
        in_another(),
        in_another().with("charge", 2),
        in_order(),
    ];
    let results = sde.par_map(&label, &list);
    let value = |at: usize| {
        results[at]
            .as_ref()
            .unwrap()
            .get::<String>("result")
            .unwrap()
    };
    assert!([0, 2, 4].iter().all(|at| *value(*at) == "sto-3g -1 2 1"));
    assert_eq!(*value(3), "sto-3g 2 2 1");
    assert!(
        results[1]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("\"spin\"")
    );
    let total = sde.stats().total;
    assert_eq!((total.computed, total.hits()), (2, 0));
    // On sets of ranks equal items are computed once, too.
    #[sde::app(distributed)]
    fn minus_together(_sde: &Handle, a: i32, b: i32) -> i32 {
        a - b
    }
    let sde = Sde::new();
    let list = [
        inputs! { a: 3, b: 1 },
        inputs! { c: 1 },
        inputs! { b: 1, a: 3 },
    ];
    let results = sde.par_map_on_sets(&minus_together, &list, 1);
    let are_well: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(
        (are_well, sde.stats().total.computed),
        (vec![true, false, true], 1)
    );
}

/// An app that may say something of its inputs.
#[derive(Fingerprint)]
struct Sum {
    declares: Declares,
}

#[derive(Clone, Copy, Fingerprint, PartialEq)]
enum Declares {
    Nothing,
    Both,
    Twice,
}

impl App for Sum {
    fn info(&self) -> AppInfo {
        let info = AppInfo::new("inputs.Sum", "1").result(ResultSpec::new::<f64>("result"));
        let both = |info: AppInfo| {
            let info = info.input::<f64>("x").optional_input::<f64>("y");
            info.optional_input::<&'static str>("title")
        };
        match self.declares {
            Declares::Nothing => info,
            Declares::Both => both(info.without_inputs()),
            Declares::Twice => both(both(info)),
        }
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let value = |name: &str| inputs.get::<f64>(name).map_or(0.0, |value| *value);
        Ok(ResultMap::new().with("result", value("x") + value("y")))
    }
}

#[test]
fn an_app_that_declares_nothing_takes_what_it_is_given() {
    let sde = Sde::new();
    let app = Sum {
        declares: Declares::Nothing,
    };
    assert!(app.info().inputs().is_empty());
    for inputs in [
        inputs! { x: 1.0, y: 2.0 },
        inputs! { y: 2.0, x: 1.0 },
        inputs! { x: 1.0, y: 2.0, z: "another" },
        inputs! { x: 1_u8 },
    ] {
        sde.run(&app, &inputs).unwrap();
    }
    assert_eq!(sde.stats().total.computed, 4);
}

#[test]
fn an_optional_input_may_be_left_out() {
    let sde = Sde::new();
    let app = Sum {
        declares: Declares::Both,
    };
    let info = app.info();
    let declared: Vec<_> = info
        .inputs()
        .iter()
        .map(|spec| (spec.name(), spec.type_name(), spec.is_optional()))
        .collect();
    assert_eq!(
        declared,
        [
            ("x", "f64", false),
            ("y", "f64", true),
            ("title", "&str", true)
        ]
    );
    let run = |inputs: Inputs| {
        *sde.run(&app, &inputs)
            .unwrap()
            .get::<f64>("result")
            .unwrap()
    };
    assert_eq!(run(inputs! { x: 1.0 }), 1.0);
    assert_eq!(run(inputs! { y: 2.0, x: 1.0 }), 3.0);
    assert_eq!(run(inputs! { x: 1.0, y: 2.0 }), 3.0);
    assert_eq!(run(inputs! { x: 1.0, title: "without y" }), 1.0);
    assert_eq!(run(inputs! { title: "without y", x: 1.0 }), 1.0);
    assert_eq!(sde.stats().total.computed, 3);
    assert!(told(sde.run(&app, &inputs! { y: 2.0 })).contains("inputs.Sum needs the input \"x\""));
    assert!(
        told(sde.run(&app, &inputs! { x: 1.0, y: 2 })).contains("\"y\" of inputs.Sum is a i32")
    );
    // What it declares is no part of its identity.
    let twice = told(sde.run(
        &Sum {
            declares: Declares::Twice,
        },
        &inputs! { x: 1.0 },
    ));
    assert!(
        twice.contains("its input \"x\" is declared twice"),
        "{twice}"
    );
}

/// An app with another in its slot, to which it gives one input more than a function takes that has but one.
#[derive(Fingerprint)]
struct Outer;

impl App for Outer {
    fn info(&self) -> AppInfo {
        #[sde::app]
        fn two(y: f64, x: f64) -> f64 {
            x - y
        }
        AppInfo::new("inputs.Outer", "1")
            .slot(Slot::new("term", two))
            .result(ResultSpec::new::<f64>("result"))
            .without_inputs()
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let term = sde.sub_app("term")?;
        let results = sde.run(&term, &inputs! { x: 3.0, y: 1.0 })?;
        Ok(ResultMap::new().with("result", *results.get::<f64>("result")?))
    }
}

#[test]
fn an_app_in_a_slot_is_checked() {
    let sde = Sde::new();
    let results = sde.run(&Outer, &inputs! {}).unwrap();
    assert_eq!(*results.get::<f64>("result").unwrap(), 2.0);
    let filled = Instance::new(Outer).fill("term", one).unwrap();
    let error = sde.run(&filled, &inputs! {}).unwrap_err();
    assert!(
        error.root().to_string().contains("one has no input \"y\""),
        "{error}"
    );
}

/// The caller may go on without, and a later program's app may take what this one refused.
#[test]
fn a_caller_that_goes_on_after_a_refusal_is_not_remembered() {
    #[sde::app]
    fn goes_on(sde: &Handle) -> bool {
        sde.run(&one, &inputs! { x: 1.0, y: 1.0 }).is_err()
    }
    let sde = Sde::new();
    assert!(*goes_on.call(&sde).unwrap() && *goes_on.call(&sde).unwrap());
    assert_eq!(sde.stats().apps["goes_on"].computed, 2);
}

/// A function knows the types that its caller does not, so both make one run.
#[test]
fn a_function_is_given_its_types() {
    #[sde::app(name = "inputs.typed")]
    fn typed(n: u8, x: f32, title: &str, points: &[f64], counts: Vec<i32>, at: Value<f64>) -> f64 {
        let sum = points.iter().sum::<f64>() + f64::from(counts.iter().sum::<i32>());
        sum + f64::from(n) + f64::from(x) + title.len() as f64 + *at
    }
    let sde = Sde::new();
    let made = typed
        .call(
            &sde,
            3,
            0.5,
            "title",
            &[1.0, 2.0],
            vec![1, 2],
            Value::new(7.0),
        )
        .unwrap();
    let data = || {
        inputs! {
            at: Data::from(Value::new(Data::Float(7.0))),
            n: Data::Int(3), x: Data::Float(0.5), title: Data::from("title"),
            points: Data::from(AnyArray::from(vec![1.0, 2.0])),
            counts: Data::from(vec![Data::Int(1), Data::Int(2)])
        }
    };
    for inputs in [data(), data().with("n", Value::new(Data::Int(3)))] {
        for _ in 0..2 {
            let results = sde.run(&typed, &inputs).unwrap();
            assert_eq!(results.get::<f64>("result").unwrap(), made);
        }
        assert!(sde.try_get(&typed, &inputs).is_some());
        assert!(matches!(
            sde.peek(&typed, &inputs).unwrap(),
            Peek::Hit { .. }
        ));
    }
    assert_eq!(sde.stats().total.computed, 1);
    let anew = Sde::new().run(&typed, &data()).unwrap();
    assert_eq!(anew.get::<f64>("result").unwrap(), made);
    for (name, value, is) in [
        ("n", Data::Int(300), "`Data` (300), not a u8"),
        ("n", Data::Float(3.0), "not a u8"),
        ("x", Data::Float(0.1), "not a f32"),
        (
            "points",
            Data::from(AnyArray::from(vec![1_u8])),
            "not a alloc::vec::Vec<f64>",
        ),
        (
            "counts",
            Data::from(vec![Data::Int(1), Data::from("2")]),
            "not a alloc::vec::Vec<i32>",
        ),
        ("title", Data::None, "not a alloc::string::String"),
    ] {
        let error = sde.run(&typed, &data().with(name, value)).unwrap_err();
        assert_kind!(error, TypeMismatch);
        says(&error, is);
    }
    let unknown = sde.run(&typed, &data().with("m", Data::None)).unwrap_err();
    assert_kind!(unknown, UnknownName);
}

#[test]
fn one_value_is_of_another_type_to_each_app() {
    #[sde::app(name = "inputs.narrow")]
    fn narrow(n: u8) -> u8 {
        n
    }
    #[sde::app(name = "inputs.wide")]
    fn wide(n: i32) -> i32 {
        n
    }
    let (sde, inputs) = (Sde::new(), inputs! { n: Data::Int(3) });
    let apps = [Instance::new(narrow), Instance::new(wide)].map(|app| sde.prepare(&app).unwrap());
    for app in [&apps[0], &apps[1], &apps[0], &apps[1]] {
        sde.run(app, &inputs).unwrap();
        assert!(sde.try_get(app, &inputs).is_some());
    }
    assert_eq!(sde.stats().total.computed, 2);
}

/// The other way round: an app without types declares that it takes any value.
#[test]
fn a_dynamic_app_declares_its_inputs() {
    let described = AppInfo::new("inputs.dynamic", "1")
        .input::<Data>("x")
        .optional_input::<f64>("y");
    let app = DynApp::new(described, |_, inputs| {
        Ok(ResultMap::new().with("result", (*inputs.value::<Data>("x")?).clone()))
    });
    let sde = Sde::new();
    for inputs in [
        inputs! { x: 1.5, y: 2.5 },
        inputs! { x: Data::Float(1.5), y: 2.5 },
        inputs! { y: Data::Float(2.5), x: Data::Float(1.5) },
    ] {
        let results = sde.run(&app, &inputs).unwrap();
        assert_eq!(*results.get::<f64>("result").unwrap(), 1.5);
    }
    assert_eq!(sde.stats().total.computed, 1);
    assert_kind!(
        sde.run(&app, &inputs! { y: 2.5 }).unwrap_err(),
        MissingInput
    );
    assert_kind!(
        sde.run(&app, &inputs! { x: 1.5, y: "a" }).unwrap_err(),
        TypeMismatch
    );
}

#[test]
fn a_body_gets_the_declared_types() {
    let info = AppInfo::new("inputs.declared", "1")
        .input::<i32>("n")
        .input::<String>("text");
    let app = DynApp::new(info.result(ResultSpec::data("result")), |_, given| {
        let length = given.text("text")?.len() as i32;
        Ok(ResultMap::new().with("result", length + given.get::<i32>("n")?))
    });
    let given = inputs! { n: Data::Int(2), text: "abc" };
    let y = Sde::new().run(&app, &given).unwrap().get::<i32>("result");
    assert_eq!(*y.unwrap(), 5);
}
