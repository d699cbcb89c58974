#[derive(sde::Settings)]
pub struct Total {
    #[setting(default = 1.0)]
    scale: f64,
}
