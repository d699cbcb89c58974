//! The program before the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    1.0 * x
}

#[sde::helper]
type Real = f32;

#[sde::helper]
type Sized = [u8; 3];

#[sde::helper]
enum Order {
    First,
    Second,
}

#[derive(sde::Fingerprint)]
struct Edited;

#[sde::app]
impl sde::App for Edited {
    fn info(&self) -> sde::AppInfo {
        described("helped.edited")
    }

    fn run(&self, _: &sde::Handle, inputs: &sde::Inputs) -> Result<sde::ResultMap, sde::AppError> {
        let x = inputs.get::<f64>("x")?;
        Ok(sde::ResultMap::new().with("result", x * 1.0))
    }
}

/// Its fields are code of the app that returns it.
#[derive(sde::Results)]
struct Ends {
    #[result(name = "low")]
    first: f64,
    #[result(name = "high")]
    last: f64,
}

/// Not marked.
fn plain(x: f64) -> f64 {
    1.0 * x
}

#[sde::app(name = "helped.whole_file", code = file)]
fn whole_file(x: f64) -> f64 {
    plain(x)
}

use v1::step;

include!("helped/program.rs");
