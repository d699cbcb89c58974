#[sde::app]
fn twice(x: f64) -> f64 {
    2.0 * x
}

pub fn program(sde: &sde::Sde) -> Result<f64, sde::Error> {
    let y = *twice.call(sde, 2.0);
    Ok(y)
}
