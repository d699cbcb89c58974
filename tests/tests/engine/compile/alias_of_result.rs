type Answer<T> = Result<T, sde::AppError>;

#[sde::app]
pub fn root(x: f64) -> Answer<f64> {
    if x < 0.0 {
        return Err(sde::AppError::message("the root of a negative number"));
    }
    Ok(x.sqrt())
}
