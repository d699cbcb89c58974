#[derive(sde::Results)]
pub struct Fit {
    #[result(expandable)]
    pub slope: f64,
}
