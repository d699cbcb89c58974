#[sde::main]
fn main() {}
