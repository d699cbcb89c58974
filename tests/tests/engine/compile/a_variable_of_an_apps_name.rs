#[sde::app]
fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

pub fn program(sde: &sde::Sde) -> Result<f64, sde::Error> {
    let mean = mean.call(sde, &[1.0, 2.0])?;
    Ok(*mean)
}
