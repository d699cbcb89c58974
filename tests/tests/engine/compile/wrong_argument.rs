#[sde::app]
fn twice(x: f64) -> f64 {
    2.0 * x
}

pub fn program(sde: &sde::Sde) -> Result<(), sde::Error> {
    twice.call(sde, "2.0")?;
    Ok(())
}
