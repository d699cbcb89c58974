pub struct Grid {
    pub spacing: f64,
}

#[sde::app]
pub fn finer(spacing: f64) -> Grid {
    Grid { spacing: spacing / 2.0 }
}
