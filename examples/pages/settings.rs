//! An app with a parameter that is set by name, and a slot for another app.

use sde::{AppError, AppInfo, ConfiguredApp, Handle, Inputs, Prepared, ResultMap, ResultSpec};

#[sde::app]
fn gaussian(x: f64) -> f64 {
    (-x * x).exp()
}

#[sde::app]
fn lorentzian(x: f64) -> f64 {
    1.0 / (1.0 + x * x)
}

/// The integral from -5 to 5 by the rule of midpoints.
#[derive(sde::Settings)]
struct Integral {
    /// Of how many points.
    #[setting(default = 100)]
    points: u32,
    /// x -> result
    #[slot(default = gaussian)]
    of: Prepared,
}

#[sde::app]
impl ConfiguredApp for Integral {
    fn info() -> AppInfo {
        AppInfo::named("Integral").result(ResultSpec::new::<f64>("area"))
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let step = 10.0 / f64::from(self.points);
        let mut area = 0.0;
        for point in 0..self.points {
            let x = -5.0 + (f64::from(point) + 0.5) * step;
            let value = sde.run(&self.of, &sde::inputs! { x: x })?;
            area += step * *value.get::<f64>("result")?;
        }
        Ok(ResultMap::new().with("area", area))
    }
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("settings.sde")?;
    for app in [Integral::app(), Integral::app().points(50).of(lorentzian)] {
        let results = sde.run(&app, &sde::inputs! {})?;
        println!("{:.6}", *results.get::<f64>("area")?);
    }
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
