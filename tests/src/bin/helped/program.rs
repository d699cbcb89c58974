// A program whose apps call plain functions. It is included after `scale`, of which there are two texts.

/// Between the app and `scale`.
#[sde::helper]
fn twice(x: f64) -> f64 {
    scale(x) * 2.0
}

#[sde::app(name = "helped.doubled")]
fn doubled(x: f64) -> f64 {
    twice(x)
}

#[sde::app(name = "helped.caller")]
fn caller(sde: &sde::Handle, x: f64) -> Result<f64, sde::Error> {
    Ok(*doubled.call(sde, x)?)
}

#[sde::app(name = "helped.versioned", version = "1")]
fn versioned(x: f64) -> f64 {
    twice(x)
}

/// Says what a peek says of the first, and then of each its result and where that came from.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).ok_or("give a directory")?;
    let store = sde::store::DirStore::open(directory)?;
    let sde = sde::Sde::builder().store(store).build()?;
    let x = sde::inputs! { x: 1.5_f64 };
    if let sde::Peek::Miss { nearest, .. } = sde.peek(&doubled, &x)? {
        let differences = nearest.map(|nearest| nearest.differences);
        for difference in differences.unwrap_or_default() {
            println!("{difference}");
        }
    }
    for (name, outcome) in [
        ("caller", sde.request(&caller, &x).run()?),
        ("doubled", sde.request(&doubled, &x).run()?),
        ("versioned", sde.request(&versioned, &x).run()?),
    ] {
        let result = outcome.results.get::<f64>("result")?;
        println!("{name}: {result} {:?}", outcome.source);
    }
    Ok(sde.finish()?)
}
