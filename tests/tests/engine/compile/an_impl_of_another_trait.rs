pub struct Scf;

#[sde::app]
impl Clone for Scf {
    fn clone(&self) -> Self {
        Self
    }
}
