#[path = "made/app.rs"]
mod app;

fn scale(x: f64) -> f64 {
    2.0 * x
}

made!(scaled);

fn main() {
    scaled.call(&sde::Sde::new(), scale(1.0)).unwrap();
}
