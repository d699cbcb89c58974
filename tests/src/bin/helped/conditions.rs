//! Apps that are not the same in each build, and one that is.

#[sde::app(name = "helped.condition")]
fn condition() -> bool {
    cfg!(test)
}

#[sde::app(name = "helped.attribute")]
fn attribute() -> u8 {
    #[cfg(not(test))]
    return 1;
    #[cfg(test)]
    2
}

#[sde::app(name = "helped.without")]
fn without() -> bool {
    true
}

/// What their codes come to.
pub fn codes() -> Vec<String> {
    use sde::App;
    let codes = [condition.info(), attribute.info(), without.info()];
    codes
        .iter()
        .map(|info| format!("{:?}", info.code()))
        .collect()
}
