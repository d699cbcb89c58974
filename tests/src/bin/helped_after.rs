//! The program after the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    10.0 * x
}

#[sde::helper]
type Real = f64;

#[sde::helper]
type Sized = [u8; 4];

#[sde::helper]
enum Order {
    Second,
    First,
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
        Ok(sde::ResultMap::new().with("result", x * 10.0))
    }
}

/// Its fields are code of the app that returns it.
#[derive(sde::Results)]
struct Ends {
    #[result(name = "high")]
    first: f64,
    #[result(name = "low")]
    last: f64,
}

/// Not marked.
fn plain(x: f64) -> f64 {
    100.0 * x
}

#[sde::app(name = "helped.whole_file", code = file)]
fn whole_file(x: f64) -> f64 {
    plain(x)
}

use v2::step;

include!("helped/program.rs");
