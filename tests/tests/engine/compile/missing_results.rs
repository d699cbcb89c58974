#[derive(sde::Results)]
pub struct Fit {
    pub slope: f64,
}

#[sde::app]
pub fn fit(ys: &[f64]) -> Fit {
    Fit { slope: ys[1] - ys[0] }
}
