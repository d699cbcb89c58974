//! Arrays of ndarray.

use std::borrow::Cow;

use ndarray::{Array, Dimension, ShapeBuilder};

use super::container::{AxisOrder, Bulk, Elements, Shape};
use super::element::Element;

impl<T: Element, D: Dimension> Bulk for Array<T, D> {
    type Element = T;
    const SHAPED: bool = true;

    /// One whose elements lie by columns is written so, and comes back so: sums over
    /// it then go in the same order, and have the same bits.
    fn elements(&self) -> Elements<'_, T> {
        let lengths = self.shape().to_vec();
        let (order, items) = match (self.as_slice(), self.t().to_slice()) {
            (Some(items), _) => (AxisOrder::Rows, Cow::Borrowed(items)),
            (None, Some(items)) => (AxisOrder::Columns, Cow::Borrowed(items)),
            (None, None) => (AxisOrder::Rows, self.iter().copied().collect()),
        };
        Elements {
            items,
            shape: Some(Shape { order, lengths }),
        }
    }

    fn build(items: Vec<T>, shape: Option<Shape>) -> Result<Self, String> {
        let Shape { order, lengths } = shape.ok_or("an array has a shape")?;
        if D::NDIM.is_some_and(|dimensions| dimensions != lengths.len()) {
            return Err(format!("an array has {} dimensions", lengths.len()));
        }
        let mut dimensions = D::zeros(lengths.len());
        for (at, length) in lengths.into_iter().enumerate() {
            dimensions[at] = length;
        }
        Self::from_shape_vec(dimensions.set_f(order == AxisOrder::Columns), items)
            .map_err(|error| error.to_string())
    }
}
