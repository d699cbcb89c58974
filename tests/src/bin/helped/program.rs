// A program whose apps rest on more than their own text. It is included after what is edited, of which there are two
// texts.

#[path = "conditions.rs"]
mod conditions;

mod v1 {
    #[sde::helper]
    #[allow(dead_code, reason = "only one of them is called")]
    pub fn step(x: f64) -> f64 {
        x + 1.0
    }
}

mod v2 {
    #[sde::helper]
    #[allow(dead_code, reason = "only one of them is called")]
    pub fn step(x: f64) -> f64 {
        x + 2.0
    }
}

#[sde::helper]
fn stepped(x: f64) -> f64 {
    step(x)
}

#[sde::app(name = "helped.alias")]
fn alias(x: f64) -> f64 {
    x * size_of::<Real>() as f64
}

#[sde::app(name = "helped.size")]
fn size(x: f64) -> f64 {
    x * size_of::<Sized>() as f64
}

#[sde::app(name = "helped.order")]
fn order(x: f64) -> f64 {
    x * f64::from(Order::First as u8 + 2 * Order::Second as u8)
}

#[sde::app(name = "helped.imported")]
fn imported(x: f64) -> f64 {
    stepped(x)
}

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

#[sde::app(name = "helped.ends", results)]
fn ends(x: f64) -> Ends {
    Ends {
        first: x,
        last: 2.0 * x,
    }
}

fn described(name: &'static str) -> sde::AppInfo {
    sde::AppInfo::named(name).result(sde::ResultSpec::new::<f64>("result"))
}

#[derive(sde::Fingerprint)]
struct Scaled;

#[sde::app]
impl sde::App for Scaled {
    fn info(&self) -> sde::AppInfo {
        described("helped.scaled")
    }

    fn run(
        &self,
        _: &sde::Handle,
        inputs: &sde::Inputs,
    ) -> Result<sde::ResultMap, sde::AppError> {
        Ok(sde::ResultMap::new().with("result", twice(*inputs.get::<f64>("x")?)))
    }
}

/// Says what a peek says of two, and then of each its result and where that came from.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).ok_or("give a directory")?;
    if std::env::args_os().nth(2).is_some() {
        println!("{}", conditions::codes().join("\n"));
        return Ok(());
    }
    let store = sde::store::DirStore::open(directory)?;
    let sde = sde::Sde::builder().store(store).save(sde::SavePolicy::OnRequest).build()?;
    let x = sde::inputs! { x: 1.5_f64 };
    for peek in [sde.peek(&doubled, &x)?, sde.peek(&imported, &x)?] {
        if let sde::Peek::Miss { nearest, .. } = peek {
            let differences = nearest.map(|nearest| nearest.differences);
            for difference in differences.unwrap_or_default() {
                println!("{difference}");
            }
        }
    }
    for (name, outcome) in [
        ("caller", sde.request(&caller, &x).run()?),
        ("doubled", sde.request(&doubled, &x).run()?),
        ("versioned", sde.request(&versioned, &x).run()?),
        ("alias", sde.request(&alias, &x).run()?),
        ("size", sde.request(&size, &x).run()?),
        ("order", sde.request(&order, &x).run()?),
        ("imported", sde.request(&imported, &x).run()?),
        ("edited", sde.request(&Edited, &x).run()?),
        ("scaled", sde.request(&Scaled, &x).run()?),
        ("whole_file", sde.request(&whole_file, &x).run()?),
    ] {
        let result = outcome.results.get::<f64>("result")?;
        println!("{name}: {result} {:?}", outcome.source);
    }
    let low = sde.run(&ends, &x)?.get::<f64>("low")?;
    println!("low: {low}");
    Ok(sde.finish()?)
}
