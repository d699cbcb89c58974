//! Arrays distributed over the ranks of a process set.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sde_engine::bulk::Element;
use sde_engine::key::Digest;
use sde_engine::ranks::Collective;
use sde_engine::{Error, ErrorKind, Handle, MemorySize};

use super::block::Block;
use super::layout::{Layout, refused};
use super::moves::{Header, Move};

/// An array of numbers of one to three (or more) dimensions, of which each rank of a process set
/// has a [`Block`].
///
/// All ranks make an array together. It moves by itself when process sets change, is saved part by part, and loaded on
/// any number of ranks. Elements lie by rows.
///
/// ```
/// use sde::{DistArray, Handle, Sde, Value};
///
/// /// A table of products.
/// #[sde::app(distributed)]
/// fn products(sde: &Handle, size: usize) -> Result<DistArray<f64>, sde::Error> {
///     DistArray::from_fn(sde, &[size, size], |index| (index[0] * index[1]) as f64)
/// }
///
/// let sde = Sde::new();
/// let table = products.call(&sde, 4)?;
/// assert_eq!(table.gather(&sde)?[2 * 4 + 3], 6.0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// # As an input
/// An array that an app returned is identified by the run and the code that it called, whatever ranks it lies on. Any
/// other array can be an input after [`keyed`](Self::keyed), by its content. Only `distributed` apps take arrays as
/// inputs: an ordinary app would see one rank's part.
///
/// # Process sets
/// An array lies on the process set it was made on. Operations that need other ranks are errors on another set; run the
/// app that made the array there: its cached result gives the array as it lies on that set.
pub struct DistArray<T> {
    pub(super) layout: Arc<Layout>,
    /// This rank's place in the layout.
    pub(super) place: usize,
    pub(super) local: Vec<T>,
    pub(super) set: AtomicU64,
    /// The digest that identifies the array as an input, once it has one.
    pub(super) origin: OnceLock<Digest>,
}

/// Counts this rank's part.
impl<T: Element> MemorySize for DistArray<T> {
    fn memory_size(&self) -> usize {
        size_of::<Self>() + self.local.capacity() * size_of::<T>()
    }
}

impl<T: Element> DistArray<T> {
    /// An array laid out [by rows](Layout::rows). Each rank makes its own elements: the function gets the index of
    /// each. Not collective, but all ranks must call it.
    ///
    /// # Errors
    /// As [`Handle::rank`].
    pub fn from_fn(
        sde: &Handle,
        shape: &[usize],
        element: impl FnMut(&[usize]) -> T,
    ) -> Result<Self, Error> {
        let layout = Layout::rows(shape, sde.ranks()?);
        Self::from_fn_on(sde, layout, element)
    }

    /// Makes an array as [`from_fn`](Self::from_fn) does, on a layout that the caller gives.
    ///
    /// # Errors
    /// As [`Handle::rank`]; if the layout is for another number of ranks.
    pub fn from_fn_on(
        sde: &Handle,
        layout: Layout,
        mut element: impl FnMut(&[usize]) -> T,
    ) -> Result<Self, Error> {
        let local = fill(&layout.block(sde.rank()?), |index| Ok(element(index)))?;
        Self::from_local(sde, layout, local)
    }

    /// Makes an array as [`from_fn`](Self::from_fn) does, of elements that may fail, such as runs of ordinary apps.
    /// Collective: each rank computes its own elements one after another, and waits for the others. Results from
    /// before an error stay cached.
    ///
    /// ```
    /// use sde::{DistArray, Handle, Sde};
    ///
    /// #[sde::app]
    /// fn repulsion(distance: usize) -> f64 {
    ///     1.0 / (distance as f64)
    /// }
    ///
    /// #[sde::app(distributed)]
    /// fn table(sde: &Handle, size: usize) -> Result<DistArray<f64>, sde::Error> {
    ///     DistArray::try_from_fn(sde, &[size], |at| Ok(*repulsion.call(sde, at[0] + 1)?))
    /// }
    ///
    /// assert_eq!(table.call(&Sde::new(), 4)?.local(), [1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0]);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// On all ranks alike: the error of the first element, by rows, that fails; or if the ranks give different shapes.
    /// On this rank, as [`Handle::rank`].
    pub fn try_from_fn(
        sde: &Handle,
        shape: &[usize],
        element: impl FnMut(&[usize]) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let layout = Layout::rows(shape, sde.ranks()?);
        let local = fill(&layout.block(sde.rank()?), element);
        if let Some(ranks) = sde.collective(|| "fills an array".to_owned())? {
            let header = header("fills", &layout, &[]);
            ranks.meet(&header.doing, &header.alike, local.as_ref().map(|_| 0))?;
        }
        Self::from_local(sde, layout, local?)
    }

    /// An array of which each rank gives the elements of its block, by rows. Not collective, but all ranks must call
    /// it, with one layout.
    ///
    /// # Errors
    /// As [`Handle::rank`]; if the layout is for another number of ranks, or this rank's block has
    /// another number of elements.
    pub fn from_local(sde: &Handle, layout: Layout, local: Vec<T>) -> Result<Self, Error> {
        let (rank, ranks) = (sde.rank()?, sde.ranks()?);
        if layout.ranks() != ranks {
            let why = format!("it is for {} ranks, and there are {ranks}", layout.ranks());
            return Err(refused(why));
        }
        let expected = layout.block(rank).len();
        if local.len() != expected {
            let given = local.len();
            let why = format!("rank {rank} gave {given} elements for a block of {expected}");
            return Err(refused(why));
        }
        let set = sde.collective(String::new)?.map_or(0, |ranks| ranks.set());
        Ok(Self::of(Arc::new(layout), rank, local, set))
    }

    pub(super) fn of(layout: Arc<Layout>, place: usize, local: Vec<T>, set: u64) -> Self {
        Self {
            layout,
            place,
            local,
            set: AtomicU64::new(set),
            origin: OnceLock::new(),
        }
    }

    /// The lengths of the whole array.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The shape, and the block of each rank.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// This rank's block.
    #[must_use]
    pub fn block(&self) -> Block {
        self.layout.block(self.place)
    }

    /// The elements of this rank's block, by rows.
    #[must_use]
    pub fn local(&self) -> &[T] {
        &self.local
    }

    /// The element at an index of the whole array, if this rank has it.
    #[must_use]
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let block = self.block();
        if index.len() != block.offset.len() {
            return None;
        }
        let mut at = 0;
        for (axis, index) in index.iter().enumerate() {
            let inside = index.checked_sub(block.offset[axis])?;
            if inside >= block.extent[axis] {
                return None;
            }
            at = at * block.extent[axis] + inside;
        }
        self.local.get(at).copied()
    }

    /// An array with the same layout, whose elements the function makes from this array's. Not collective.
    #[must_use]
    pub fn map<U: Element>(&self, each: impl FnMut(&T) -> U) -> DistArray<U> {
        let local = self.local.iter().map(each).collect();
        DistArray::of(Arc::clone(&self.layout), self.place, local, self.set())
    }

    /// An array with the same layout, whose elements the function makes from those of this array and another at the
    /// same place. Not collective.
    ///
    /// # Errors
    /// If the other array has another layout, or lies on another process set.
    pub fn zip<U: Element, V: Element>(
        &self,
        other: &DistArray<U>,
        mut each: impl FnMut(&T, &U) -> V,
    ) -> Result<DistArray<V>, Error> {
        if self.set() != other.set() {
            return Err(ErrorKind::OtherSet.into());
        }
        if self.layout != other.layout {
            let (own, other) = (self.shape(), other.shape());
            let why = format!("two arrays, of shapes {own:?} and {other:?}, lie otherwise");
            return Err(refused(why));
        }
        let pairs = self.local.iter().zip(&other.local);
        let local = pairs.map(|(own, other)| each(own, other)).collect();
        let layout = Arc::clone(&self.layout);
        Ok(DistArray::of(layout, self.place, local, self.set()))
    }

    /// The array with another layout. Collective. Each element is sent once, to the rank that needs it.
    ///
    /// # Errors
    /// On all ranks alike, if one does something else, or gives another layout. On this rank, if the array lies on
    /// another process set, the layout is for another number of ranks or another shape, or other ranks can't join in
    /// here.
    pub fn redistribute(&self, sde: &Handle, layout: Layout) -> Result<Self, Error> {
        let Some(ranks) = self.here(sde, "redistributes")? else {
            return Self::from_local(sde, layout, self.local.clone());
        };
        if layout.ranks() != ranks.size() || layout.shape() != self.shape() {
            let why = format!(
                "it is for shape {:?} on {} ranks, and the array has {:?} on {}",
                layout.shape(),
                layout.ranks(),
                self.shape(),
                ranks.size()
            );
            return Err(refused(why));
        }
        let header = header("moves", &layout, &[]);
        let of_rank = Move::of_all(ranks.rank(), self.layout.blocks(), layout.blocks());
        let local = of_rank.run(ranks, &self.local, header)?;
        let moved = Self::of(Arc::new(layout), ranks.rank(), local, ranks.set());
        if let Some(origin) = self.origin.get() {
            // `moved` is new, so its origin is unset.
            let _ = moved.origin.set(*origin);
        }
        Ok(moved)
    }

    /// The whole array on every rank, by rows. Collective.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn gather(&self, sde: &Handle) -> Result<Vec<T>, Error> {
        let Some(ranks) = self.here(sde, "gathers")? else {
            return Ok(self.local.clone());
        };
        let whole = vec![Block::whole(self.shape()); ranks.size()];
        let header = header("gathers", &self.layout, &[]);
        Move::of_all(ranks.rank(), self.layout.blocks(), &whole).run(ranks, &self.local, header)
    }

    pub(super) fn set(&self) -> u64 {
        self.set.load(Ordering::Relaxed)
    }

    /// The ranks that the array lies on, if the handle's code runs on these; `None` on one process.
    pub(super) fn here<'a>(
        &self,
        sde: &'a Handle,
        doing: &str,
    ) -> Result<Option<&'a dyn Collective>, Error> {
        let ranks = sde.collective(|| format!("{doing} an array"))?;
        let id = ranks.map_or(0, |ranks| ranks.set());
        // Process sets of different engines may have equal numbers.
        let ranks_here = ranks.map_or(1, |ranks| ranks.size());
        if id == self.set() && self.layout.ranks() == ranks_here {
            Ok(ranks)
        } else {
            Err(ErrorKind::OtherSet.into())
        }
    }
}

/// Makes the elements of a block, by rows; the function gets the index of each.
fn fill<T>(
    block: &Block,
    mut element: impl FnMut(&[usize]) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut local = Vec::new();
    let reserved = local.try_reserve_exact(block.len());
    reserved.map_err(|error| refused(format!("a block of {}: {error:#}", block.len())))?;
    let mut index = block.offset.clone();
    for _ in 0..block.len() {
        local.push(element(&index)?);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < block.end(axis) {
                break;
            }
            index[axis] = block.offset[axis];
        }
    }
    Ok(local)
}

/// The header of an operation on which all ranks must agree, with its layout and numbers.
pub(super) fn header(doing: &str, layout: &Layout, numbers: &[usize]) -> Header {
    let mut hasher = blake3::Hasher::new();
    hasher.update(doing.as_bytes());
    hasher.update(layout.digest().as_bytes());
    for number in numbers {
        hasher.update(&(*number as u64).to_le_bytes());
    }
    Header {
        doing: format!("{doing} an array of shape {:?}", layout.shape()),
        alike: Digest::from_bytes(*hasher.finalize().as_bytes()),
    }
}

impl<T: Element> Clone for DistArray<T> {
    /// A copy that keeps its identity as an input.
    fn clone(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            ..Self::of(
                Arc::clone(&self.layout),
                self.place,
                self.local.clone(),
                self.set(),
            )
        }
    }
}

impl<T> std::fmt::Debug for DistArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DistArray")
            .field("shape", &self.layout.shape())
            .field("block", &self.layout.block(self.place))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_no_memory_holds_is_refused() {
        let sde = sde_engine::Sde::new();
        let error = DistArray::from_fn(&sde, &[usize::MAX, 2], |_| 0.0).unwrap_err();
        assert!(
            format!("{error:#}").contains("a layout was refused"),
            "{error:#}"
        );
    }
}
