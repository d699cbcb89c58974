//! An app that is made when the program runs, of a text that a user wrote: it calls functions by name, and a function calls it.

use sde::key::commit;
use sde::record::CodeId;
use sde::{AppInfo, Data, DynApp, Handle, Instance, ResultMap, Sde, inputs};

#[sde::app]
fn square(x: f64) -> f64 {
    x * x
}

#[sde::app]
fn half(x: f64) -> f64 {
    x / 2.0
}

/// The app of a formula: the functions that are applied, one after the other. Its text is its code.
fn formula(sde: &Sde, text: &str) -> Result<DynApp, Box<dyn std::error::Error>> {
    let find = |name: &str| {
        let found = sde.apps().linked(name);
        found.ok_or_else(|| format!("there is no app {name}"))
    };
    let steps: Vec<Instance> = text.split(" | ").map(find).collect::<Result<_, _>>()?;
    let info = AppInfo::with_code("formula", CodeId::Source(commit(text)?.digest()));
    Ok(DynApp::new(info, move |sde, inputs| {
        let mut value = inputs.value::<Data>("x")?;
        for step in &steps {
            value = sde.run(step, &inputs! { x: value })?.get("result")?;
        }
        Ok(ResultMap::new().with_value("result", value))
    }))
}

/// Calls the formula by its registered name.
#[sde::app]
fn sum(sde: &Handle, terms: u32) -> Result<f64, sde::Error> {
    (1..=terms).try_fold(0.0, |so_far, term| {
        let results = sde.run("formula", &inputs! { x: f64::from(term) })?;
        Ok(so_far + *results.get::<f64>("result")?)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sde = sde::open("dynamic.sde")?;
    let text = std::env::args()
        .nth(1)
        .unwrap_or("square | half".to_owned());
    sde.apps().register("formula", formula(&sde, &text)?)?;
    println!("{} {}", *square.call(&sde, 3.0)?, *sum.call(&sde, 3)?);
    println!("{} computed", sde.stats().total.computed);
    Ok(sde.finish()?)
}
