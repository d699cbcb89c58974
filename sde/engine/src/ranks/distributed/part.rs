//! The trait of types whose values lie on several ranks.

use super::placement::Placement;
use super::redistribution::Redistribution;
use crate::error::{AppError, ArchiveError};
use crate::result_map::Storable;

/// One rank's part of a value that lies on several ranks.
///
/// A result of such a type is declared with
/// [`ResultSpec::distributed`](crate::ResultSpec::distributed), by an app that is `distributed`. The
/// engine saves each rank's part for itself, and calls these functions, on all ranks that are
/// concerned, when process sets change and when the parts are loaded.
///
/// # Deriving it
///
/// A struct derives it whose fields are `Distributed` themselves, `DistArray`s above all, or the
/// same on all ranks:
///
/// ```
/// use sde::{DistArray, Distributed, Handle, Sde};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Distributed, Serialize, Deserialize)]
/// struct Solution {
///     /// How many steps it took.
///     #[distributed(same)]
///     steps: u32,
///     potential: DistArray<f64>,
///     field: DistArray<f64>,
/// }
///
/// #[sde::app(distributed)]
/// fn solve(sde: &Handle, size: usize) -> Result<Solution, sde::Error> {
///     let potential = DistArray::from_fn(sde, &[size], |at| at[0] as f64)?;
///     let field = potential.map(|_| -1.0);
///     Ok(Solution { steps: 1, potential, field })
/// }
///
/// #[sde::app(distributed)]
/// fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
///     Ok(array.gather(sde)?.iter().sum())
/// }
///
/// let sde = Sde::new();
/// let solution = solve.call(&sde, 4)?;
/// // Each array is an input of its own.
/// assert_eq!(*sum.call(&sde, &solution.potential)?, 6.0);
/// assert_eq!(*sum.call(&sde, &solution.field)?, -4.0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// A field marked `#[distributed(same)]` is sent by one rank for all when ranks are released, and read from one part
/// when they are loaded. It must be [`Fingerprint`](trait@crate::Fingerprint) and `Clone`: a digest of it is compared
/// after the body, and a difference makes the run an error. When parts are loaded, each other field reads the parts
/// that it needs: a struct of three arrays reads a part three times.
pub trait Distributed: Storable + Sized {
    /// The numbers that other ranks must know to move this part, such as its place in the whole. The parts of one value
    /// together must be whole; see [`check`](Self::check).
    fn part_descriptor(&self) -> Vec<u64>;

    /// Makes each rank's new part from the parts of the ranks that had the value. Collective over all ranks of
    /// `over`. `part` is `None` on ranks that had none, and the result may be `None` on ranks that go on without.
    /// When many values move at once, it is called several times for each, from its beginning, until other ranks have
    /// answered all its questions. Until then a question is an error, which it passes on: a panic would print a
    /// message, and work without the answer is in vain. It must ask the same questions each time.
    ///
    /// # Errors
    /// If the value can't be moved; it is then computed again where it is needed.
    fn redistribute_parts(
        part: Option<&Self>,
        over: &Redistribution<'_>,
    ) -> Result<Option<Self>, AppError>;

    /// Makes the part of rank `rank` of `ranks` from the parts that any number of ranks saved. Not collective.
    ///
    /// # Errors
    /// If a part is missing or the parts do not belong together; the value is then computed again. A type that can't
    /// change the number of ranks returns an error for every other number than that which saved it.
    fn assemble(parts: &SavedParts<'_, Self>, rank: usize, ranks: usize) -> Result<Self, AppError>;

    /// Checks that parts with these descriptors are one whole value.
    ///
    /// # Errors
    /// A text that names the part that is missing or there twice.
    fn check(descriptors: &[Vec<u64>]) -> Result<(), AppError> {
        let _ = descriptors;
        Ok(())
    }

    /// Records the process set that the value lies on, and the digest that identifies it as an input of other runs. A
    /// type with arrays in it passes this on to each of them. Called once, when the value was made, moved or loaded.
    fn bind(&self, at: &Placement) {
        let _ = at;
    }
}

/// The parts of one value as they were saved.
pub struct SavedParts<'a, T> {
    pub(crate) descriptors: &'a [Vec<u64>],
    pub(crate) read: &'a dyn Fn(usize) -> Result<T, ArchiveError>,
}

impl<'a, T> SavedParts<'a, T> {
    /// Parts with these descriptors, each read by the function; used for a value within another.
    #[must_use]
    pub fn new(
        descriptors: &'a [Vec<u64>],
        read: &'a dyn Fn(usize) -> Result<T, ArchiveError>,
    ) -> Self {
        Self { descriptors, read }
    }

    /// The number of ranks that saved the value.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.descriptors.len()
    }

    /// The descriptor of each part.
    #[must_use]
    pub fn descriptors(&self) -> &[Vec<u64>] {
        self.descriptors
    }

    /// Reads the part that a rank has saved.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn read(&self, rank: usize) -> Result<T, ArchiveError> {
        (self.read)(rank)
    }
}

impl<T> std::fmt::Debug for SavedParts<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SavedParts({} of them)", self.ranks())
    }
}
