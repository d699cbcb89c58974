use sde::Handle;

#[sde::app]
pub fn twice(x: f64, sde: &Handle) -> f64 {
    2.0 * x
}
