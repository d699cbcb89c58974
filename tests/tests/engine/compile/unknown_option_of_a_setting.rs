#[derive(sde::Settings)]
pub struct Total {
    #[setting(defualt = 1.0)]
    scale: f64,
}
