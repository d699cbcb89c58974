pub struct Grid {
    spacing: f64,
}

#[sde::app]
pub fn points(grid: &Grid) -> f64 {
    1.0 / grid.spacing
}
