//! `#[derive(Settings)]`: each field of a struct is a parameter or a slot of its app.

use sde::{
    App, AppError, AppInfo, ConfiguredApp, Fingerprint, Handle, Inputs, Instance, Parameter,
    ParameterValues, Prepared, ResultMap, ResultSpec, Sde, Slot, inputs,
};
use sde_tests::says;

#[sde::app(name = "settings.square")]
fn square(x: f64) -> f64 {
    x * x
}

#[sde::app(name = "settings.cube")]
fn cube(x: f64) -> f64 {
    x * x * x
}

fn positive(value: &f64) -> Result<(), String> {
    match *value > 0.0 {
        true => Ok(()),
        false => Err("it must be positive".to_owned()),
    }
}

fn above_low(high: &f64, all: &ParameterValues<'_>) -> Result<(), String> {
    match all.get::<f64>("low").is_none_or(|low| low < high) {
        true => Ok(()),
        false => Err("it must be above low".to_owned()),
    }
}

/// A sum of what the app in its slot makes of some numbers.
#[derive(sde::Settings)]
struct Total {
    /// Multiplies the sum.
    #[setting(default = 1.0, check = positive)]
    scale: f64,
    #[setting(default = 0.0)]
    low: f64,
    #[setting(default = 10.0, check_with = above_low)]
    high: f64,
    #[setting(default = 1, transparent, name = "number of threads")]
    threads: usize,
    title: String,
    /// x -> result
    #[slot(default = square)]
    term: Prepared,
    #[slot(name = "last", about = "result -> result")]
    at_the_end: Prepared,
}

fn run(total: &Total, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
    let of = |app, x: f64| -> Result<f64, AppError> {
        Ok(*sde.run(app, &inputs! { x: x })?.get::<f64>("result")?)
    };
    let mut sum = 0.0;
    for x in inputs.get::<Vec<f64>>("xs")? {
        sum += of(&total.term, x.clamp(total.low, total.high))?;
    }
    let sum = of(&total.at_the_end, total.scale * sum)?;
    let text = format!("{}: {sum} on {}", total.title, total.threads);
    Ok(ResultMap::new().with("text", text))
}

impl ConfiguredApp for Total {
    fn info() -> AppInfo {
        AppInfo::new("settings.Total", "1").result(ResultSpec::new::<String>("text"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        run(self, sde, inputs)
    }
}

/// The app as it was written before there was a derive.
mod by_hand {
    use super::*;

    #[derive(Fingerprint)]
    pub(super) struct Total;

    impl App for Total {
        fn info(&self) -> AppInfo {
            AppInfo::new("settings.Total", "1")
                .parameter(Parameter::new("scale", 1.0_f64).check(positive))
                .parameter(Parameter::new("low", 0.0_f64))
                .parameter(Parameter::new("high", 10.0_f64).check_with(above_low))
                .parameter(Parameter::new("number of threads", 1_usize).transparent())
                .parameter(Parameter::required::<String>("title"))
                .slot(Slot::new("term", square))
                .slot(Slot::required("last"))
                .result(ResultSpec::new::<String>("text"))
        }

        fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
            run(&sde.settings()?, sde, inputs)
        }
    }
}

fn text<A: sde::AppSource>(sde: &Sde, app: &A) -> Result<String, sde::Error> {
    let results = sde.run(app, &inputs! { xs: vec![1.0, 2.0, 20.0] })?;
    Ok(results.get::<String>("text")?.to_string())
}

fn titled() -> TotalApp {
    Total::app().title("sum".to_owned()).at_the_end(cube)
}

#[test]
fn each_field_is_set_by_its_method() {
    let sde = Sde::new();
    let of = |app| text(&sde, &app).unwrap();
    assert_eq!(of(titled()), "sum: 1157625 on 1");
    assert_eq!(of(titled().high(3.0).threads(4)), "sum: 2744 on 4");
    let app = titled().low(11.0).high(12.0).scale(0.5).term(cube);
    assert_eq!(of(app.at_the_end(square)), "sum: 4818025 on 1");
    // Transparent.
    assert_eq!(of(titled().high(3.0).threads(8)), "sum: 2744 on 4");
    assert_eq!(sde.stats().apps["settings.Total"].computed, 3);
}

#[test]
fn it_has_the_keys_of_an_app_written_by_hand() {
    let sde = Sde::new();
    let by_hand = || {
        let app = Instance::new(by_hand::Total).fill("last", cube).unwrap();
        app.set("title", "sum".to_owned()).unwrap()
    };
    let others = || by_hand().set("scale", 2.0).unwrap().fill("term", cube);
    let id = |app: Instance| sde.prepare(&app).unwrap().id();
    assert_eq!(id(titled().into()), id(by_hand()));
    assert_eq!(
        id(titled().scale(2.0).term(cube).into()),
        id(others().unwrap())
    );
    let told = text(&sde, &by_hand()).unwrap();
    assert_eq!(text(&sde, &titled()).unwrap(), told);
    assert_eq!(sde.stats().apps["settings.Total"].computed, 1);
    // `sde show` tells of both alike.
    let setup = |app: Instance| {
        let sde = Sde::new();
        text(&sde, &app).unwrap();
        let records = sde_tests::records(&sde);
        let mut of_total = records
            .iter()
            .filter(|record| &*record.app == "settings.Total");
        of_total.next().map(|record| format!("{:?}", record.setup))
    };
    assert_eq!(setup(titled().into()), setup(by_hand()));
}

#[test]
fn what_is_wrong_is_told_at_the_run() {
    let sde = Sde::new();
    let error = |app| format!("{:#}", text(&sde, &app).unwrap_err());
    says(&error(titled().scale(-1.0)), "it must be positive");
    says(&error(titled().low(11.0)), "it must be above low");
    let lacks = error(Total::app());
    says(&lacks, "parameter \"title\"");
    says(&lacks, "sub-app slot \"last\" is empty");
    assert_eq!(
        text(&sde, &titled().low(11.0).high(12.0)).unwrap(),
        "sum: 57512456 on 1"
    );
}

#[test]
fn it_goes_wherever_an_app_goes() {
    let sde = Sde::new();
    sde.apps().register("total", titled()).unwrap();
    assert_eq!(
        text(&sde, &"total".to_owned()).unwrap(),
        "sum: 1157625 on 1"
    );
    let info = sde.apps().info("total").unwrap();
    assert_eq!(
        info.description(),
        "A sum of what the app in its slot makes of some numbers."
    );
    let about: Vec<_> = info
        .parameters()
        .iter()
        .map(Parameter::description)
        .collect();
    assert_eq!(about[0], "Multiplies the sum.");
    let in_a_slot = Total::app().title("outer".to_owned()).at_the_end(titled());
    let error = format!("{:#}", text(&sde, &in_a_slot).unwrap_err());
    says(&error, "\"xs\"");
    let by_name = Instance::from(titled()).set("high", 3.0).unwrap();
    assert_eq!(text(&sde, &by_name).unwrap(), "sum: 2744 on 1");
    let error = format!("{:#}", sde.settings::<Total>().map(drop).unwrap_err());
    says(&error, "belongs to a run");
}

/// Marked, so that it is known before it runs, and its code is its text.
#[derive(sde::Settings)]
struct Marked {
    #[setting(default = 2)]
    factor: u32,
}

#[sde::app]
impl ConfiguredApp for Marked {
    fn info() -> AppInfo {
        AppInfo::named("settings.Marked").result(ResultSpec::new::<u32>("result"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("result", self.factor * inputs.get::<u32>("x")?))
    }
}

#[test]
fn a_marked_one_has_its_source_in_the_key() {
    let sde = Sde::new();
    let results = sde
        .run(&Marked::app().factor(7), &inputs! { x: 6_u32 })
        .unwrap();
    assert_eq!(*results.get::<u32>("result").unwrap(), 42);
    let records = sde_tests::records(&sde);
    let setup = &records[0].setup;
    assert!(
        setup
            .helpers
            .iter()
            .any(|helper| helper.name.ends_with("Marked")),
        "{setup:?}"
    );
}

/// Found by attack: under another name, a struct whose fields exchange their settings was no edit.
#[test]
fn which_field_is_which_setting_is_code_by_any_name() {
    mod first {
        #[derive(sde::Settings)]
        pub(super) struct Line {
            #[setting(default = 1, name = "slope")]
            pub(super) a: u32,
            #[setting(default = 2, name = "offset")]
            pub(super) b: u32,
        }
    }
    mod second {
        #[derive(sde::Settings)]
        pub(super) struct Line {
            #[setting(default = 2, name = "offset")]
            pub(super) a: u32,
            #[setting(default = 1, name = "slope")]
            pub(super) b: u32,
        }
    }
    macro_rules! code {
        ($of:ident) => {{
            use $of::Line as Of;
            #[sde::app]
            impl ConfiguredApp for Of {
                fn info() -> AppInfo {
                    AppInfo::named("settings.Line").result(ResultSpec::new::<u32>("y"))
                }

                fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
                    Ok(ResultMap::new().with("y", self.a - self.b))
                }
            }
            Instance::from(Of::app()).info().code().clone()
        }};
    }
    assert_ne!(code!(first), code!(second));
}
