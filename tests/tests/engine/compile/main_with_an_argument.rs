#[sde::main]
fn main(arguments: Vec<String>) -> Result<(), sde::Error> {
    Ok(())
}
