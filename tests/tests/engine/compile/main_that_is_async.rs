#[sde::main]
async fn main() -> Result<(), sde::Error> {
    Ok(())
}
