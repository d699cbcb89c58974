#[sde::app(verison = "2")]
pub fn twice(x: f64) -> f64 {
    2.0 * x
}
