#[sde::app]
pub fn scaled(xs: &[f64], by: f64) -> f64 {
    by * xs.iter().sum::<f64>()
}

pub fn all(sde: &sde::Handle) -> Result<Vec<sde::Value<f64>>, sde::Error> {
    scaled.par_call(sde, [(vec![1.0], "two")])
}
