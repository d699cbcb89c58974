//! Containers whose elements lie side by side.

use std::borrow::Cow;

use super::element::Element;

/// Selects the index that runs slowest in memory. There is no third order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisOrder {
    /// The first, as in C and by default in NumPy: row by row.
    Rows,
    /// The last, as in Fortran: column by column.
    Columns,
}

impl AxisOrder {
    /// The names of the variants of [`ARRAY`](super::ARRAY), in their order.
    pub const NAMES: &'static [&'static str] = &["by_rows", "by_columns"];

    /// The name of the variant of [`ARRAY`](super::ARRAY).
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The order that has this [`name`](Self::name).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Rows, Self::Columns]
            .into_iter()
            .find(|order| order.name() == name)
    }
}

/// The lengths of a multi-dimensional array, and how its elements lie.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// The order in which the elements lie in memory.
    pub order: AxisOrder,
    /// One length for each dimension.
    pub lengths: Vec<usize>,
}

/// The elements of a [`Bulk`] value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Elements<'a, E: Element> {
    /// In the order in which they lie; copied if they don't lie side by side.
    pub items: Cow<'a, [E]>,
    /// `None` for a list.
    pub shape: Option<Shape>,
}

/// A list or an array of numbers: what a field with `#[serde(with = "sde::bulk")]`
/// can be.
///
/// `Vec<T>`, `Box<[T]>` and `[T; N]` for each [`Element`] `T`, of any `N`; with the
/// feature `ndarray-0_17` the arrays that own their elements.
pub trait Bulk: Sized {
    /// The type of its elements.
    type Element: Element;

    /// Whether it has a shape of its own. A list has none.
    const SHAPED: bool;

    /// The container's elements.
    fn elements(&self) -> Elements<'_, Self::Element>;

    /// The value with these elements.
    ///
    /// # Errors
    /// Why there is none: they don't fit the shape, or the type has another.
    fn build(items: Vec<Self::Element>, shape: Option<Shape>) -> Result<Self, String>;
}

macro_rules! lists {
    ($([$($generics:tt)*] $type:ty, |$items:ident| $build:expr;)*) => {$(
        impl<T: Element, $($generics)*> Bulk for $type {
            type Element = T;
            const SHAPED: bool = false;

            fn elements(&self) -> Elements<'_, T> {
                let (items, shape) = (Cow::Borrowed(&self[..]), None);
                Elements { items, shape }
            }

            fn build($items: Vec<T>, _: Option<Shape>) -> Result<Self, String> {
                $build
            }
        }
    )*};
}

lists! {
    [] Vec<T>, |items| Ok(items);
    [] Box<[T]>, |items| Ok(items.into_boxed_slice());
    [const N: usize] [T; N], |items| Self::try_from(items).map_err(|items| format!("{} elements, not {N}", items.len()));
}
