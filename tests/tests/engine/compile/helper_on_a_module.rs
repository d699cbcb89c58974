#[sde::helper]
pub mod part {}
