#[sde::app]
pub fn root(x: f64) -> Result<f64, ()> {
    if x < 0.0 { Err(()) } else { Ok(x.sqrt()) }
}
