//! The scratch space of a run: the state that an iterative app keeps to go on from.

use std::fmt;
use std::sync::Arc;

use super::Handle;
use crate::app::{DependencySnapshot, Frame};
use crate::cache::ScratchState;
use crate::error::Error;
use crate::ranks::distributed::DistOps;
use crate::ranks::{Distributed, StateKind};
use crate::result_map::{Codec, ErasedValue, Storable, Value};

/// The scratch space of the run that a handle belongs to.
///
/// An iterative app keeps its *whole* iteration state here. Checkpoints save the
/// latest state; if the program is killed, or the run fails or is taken over, the
/// next run of the same key finds it and goes on. It is never taken for
/// a result, and is gone once the run has its results. Going on from any saved
/// state must end in the same bits: keep everything that the next step depends on.
///
/// ```
/// use sde::{AppError, Handle, Sde};
///
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct State {
///     step: u32,
///     x: Vec<f64>,
/// }
///
/// /// Heron's rule, which can be stopped and taken up at any step.
/// #[sde::app]
/// fn square_roots(sde: &Handle, of: &[f64]) -> Result<Vec<f64>, AppError> {
///     let scratch = sde.scratch::<State>();
///     let mut state = scratch.resume_or(|| State { step: 0, x: of.to_vec() })?;
///     while state.step < 60 {
///         state.x.iter_mut().zip(of).for_each(|(x, of)| *x = 0.5 * (*x + of / *x));
///         state.step += 1;
///         scratch.save(state.clone())?;
///     }
///     Ok(state.x)
/// }
///
/// assert_eq!(**square_roots.call(&Sde::new(), &[4.0, 9.0])?, [2.0, 3.0]);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// # On many ranks
///
/// In an app that is [`distributed`](crate::AppInfo::distributed) each rank has a state of its own. All ranks call
/// [`load`](Self::load) together, and each calls [`save`](Self::save) at the same steps; between two steps they make a
/// collective call (`gather`, say). A rank is given the state that it saved itself, if the states of all ranks are
/// there and as many ranks run as saved them; else all start afresh. If the states are the same on all ranks, say so
/// ([`replicated`](Self::replicated)), or that they are parts of one ([`distributed`](Self::distributed)): then any
/// number of ranks goes on from them.
pub struct Scratch<'a, T> {
    pub(super) handle: &'a Handle,
    pub(super) kind: StateKind<T>,
}

/// A state, and its dependencies: an app called for it, in no slot, may be another in the program that goes on.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
struct Kept<T: Storable> {
    rests_on: DependencySnapshot,
    state: Value<T>,
}

impl<T> fmt::Debug for Scratch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch")
            .field("of", &self.handle)
            .field("type", &std::any::type_name::<T>())
            .finish_non_exhaustive()
    }
}

impl<T: Storable> Scratch<'_, T> {
    /// Declares that the states are equal on all ranks, so that any number of ranks may go on from them. One rank
    /// saves the state, the others a digest of theirs: no run goes on from states that differ.
    ///
    /// It is for you to know: a state that means another thing on each rank may look the same on all by chance, a sum of
    /// their own that is still zero for one. A `HashMap` or `HashSet` in it is in another order on each rank, and so never
    /// the same: take a `BTreeMap`. Where there are no ranks this says nothing.
    #[must_use]
    pub fn replicated(self) -> Self {
        Self {
            kind: StateKind::Replicated,
            ..self
        }
    }

    /// Declares that the states of all ranks are the parts of one, so that any number of ranks may go on from them:
    /// each is given the part that it would have of a value that was saved so. Where there are no ranks, one has all
    /// of it.
    ///
    /// ```
    /// use sde::{DistArray, Distributed, Handle, Sde};
    /// use sde::ranks::Edge;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, Distributed, Serialize, Deserialize)]
    /// struct State {
    ///     #[distributed(same)]
    ///     step: u32,
    ///     field: DistArray<f64>,
    /// }
    ///
    /// /// A field that evens out.
    /// #[sde::app(distributed)]
    /// fn diffusion(sde: &Handle, length: usize) -> Result<DistArray<f64>, sde::Error> {
    ///     let scratch = sde.scratch::<State>().distributed();
    ///     let (mut step, mut field) = match scratch.load()? {
    ///         Some(state) => (state.step, state.field.clone()),
    ///         None => (0, DistArray::from_fn(sde, &[length], |at| (at[0] % 3) as f64)?),
    ///     };
    ///     while step < 50 {
    ///         let padded = field.padded(sde, &[1], &[Edge::Periodic])?;
    ///         field = padded.map(|near| 0.5 * near.at([0]) + 0.25 * (near.at([-1]) + near.at([1])));
    ///         step += 1;
    ///         scratch.save(State { step, field: field.clone() })?;
    ///     }
    ///     Ok(field)
    /// }
    ///
    /// let field = diffusion.call(&Sde::new(), 9)?;
    /// assert!(field.local().iter().all(|x| (x - 1.0).abs() < 1e-6));
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn distributed(self) -> Self
    where
        T: Distributed + Clone,
    {
        Self {
            kind: StateKind::Parts(DistOps::of::<T>(), T::clone),
            ..self
        }
    }

    /// The state saved by an earlier, unfinished run of this key, if there is one. A state counts as none if it is
    /// damaged, of another type, or made with an app that has changed since; an event says so. The state is shared:
    /// clone the content of the `Value` to change it. Collective in an app that is `distributed`.
    ///
    /// # Errors
    /// If the handle belongs to no run, or to one that has ended. In an app that is `distributed` the same error on all
    /// ranks, if one calls something else; on this rank, if it is called where other ranks can't join in.
    pub fn load(&self) -> Result<Option<crate::Value<T>>, Error> {
        let frame = self.frame()?;
        let engine = self.handle.engine();
        if frame.resolved.is_distributed() {
            return self.handle.load_state(frame, &self.kind);
        }
        let Some((found, took)) = engine.load_scratch(frame, &Codec::of::<Kept<T>>()) else {
            return Ok(None);
        };
        let Some(kept) = found.downcast::<Kept<T>>() else {
            return Ok(None);
        };
        if !engine.may_go_on(frame, &kept.rests_on) {
            return Ok(None);
        }
        engine.resumed(frame, took);
        frame.dependencies.inherit(&kept.rests_on);
        Ok(Some(kept.state.clone()))
    }

    /// All states of this key that there are, the latest first, for a run whose result need not be that of a run that
    /// goes on from none: it is recorded as one that is not compared. Empty in an app that is `distributed`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[doc(hidden)]
    pub fn load_each(&self) -> Result<Vec<crate::Value<T>>, Error> {
        let frame = self.frame()?;
        if frame.resolved.is_distributed() {
            return Ok(Vec::new());
        }
        let engine = self.handle.engine();
        let codec = Codec::of::<Kept<T>>();
        let found = engine.states_under(frame, frame.key, &codec);
        let kept = found.filter_map(|(value, took)| Some((value.downcast::<Kept<T>>()?, took)));
        let kept =
            kept.filter(|(kept, _)| frame.is_claimed() && engine.may_go_on(frame, &kept.rests_on));
        let mut latest = None;
        let states: Vec<_> = kept
            .map(|(kept, took)| {
                latest.get_or_insert(took);
                kept.state.clone()
            })
            .collect();
        if let Some(took) = latest {
            engine.resumed(frame, took);
            frame.dependencies.note_anew(true);
        }
        Ok(states)
    }

    /// The state to go on from: a copy of the one that [`load`](Self::load) finds, or else a first one. For a first
    /// state that may fail, match on what `load` gives.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn resume_or(&self, first: impl FnOnce() -> T) -> Result<T, Error>
    where
        T: Clone,
    {
        let found = self.load()?;
        Ok(found.map_or_else(first, |state| T::clone(&state)))
    }

    /// Makes this the state to go on from. It is kept in memory; the next checkpoint saves it, or this call does where
    /// the policy is to save every result. It waits for no other rank. On many ranks only the first state after a
    /// collective call counts. It is checkpointed when all of them have come by again since the checkpoint was due.
    ///
    /// # Errors
    /// If the handle belongs to no run, or to one that has ended. A store that
    /// fails is a warning event, not an error: the computation goes on.
    pub fn save(&self, state: impl Into<crate::Value<T>>) -> Result<(), Error> {
        let frame = self.frame()?;
        let state = state.into();
        if frame.resolved.is_distributed() {
            return self.handle.save_state(frame, state, &self.kind);
        }
        let kept = Kept::<T> {
            rests_on: frame.dependencies.snapshot(),
            state,
        };
        self.handle.engine().save_scratch(
            frame,
            ScratchState {
                value: ErasedValue::new(kept),
                codec: Codec::of::<Kept<T>>(),
                took: frame.clock.at_state(),
            },
        );
        Ok(())
    }

    fn frame(&self) -> Result<&Arc<Frame>, Error> {
        self.handle.own_frame("scratch")
    }
}
