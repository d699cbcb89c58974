use std::rc::Rc;

#[sde::app]
pub fn twice(x: Rc<f64>) -> f64 {
    2.0 * *x
}
