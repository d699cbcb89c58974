#[sde::app(distributed, tags(intermediate, distributed))]
fn own_numbers(sde: &sde::Handle) -> Result<Vec<usize>, sde::Error> {
    Ok(vec![sde.rank()?])
}
