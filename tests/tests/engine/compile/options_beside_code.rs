#[derive(sde::Fingerprint)]
pub struct Draw;

#[sde::app(code = file, nondeterministic)]
impl sde::App for Draw {
    fn info(&self) -> sde::AppInfo {
        sde::AppInfo::named("Draw")
    }

    fn run(&self, _: &sde::Handle, _: &sde::Inputs) -> Result<sde::ResultMap, sde::AppError> {
        Ok(sde::ResultMap::new())
    }
}
