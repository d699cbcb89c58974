//! The scratch space of a run: what an iterative app keeps to go on from.

use std::marker::PhantomData;
use std::sync::Arc;

use super::frame::{Frame, RestsOn};
use super::handle::Handle;
use crate::error::Error;
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
/// /// Heron's rule, which can be stopped and taken up at any step.
/// #[sde::app]
/// fn square_root(sde: &Handle, of: f64) -> Result<f64, AppError> {
///     let scratch = sde.scratch::<(u32, f64)>();
///     let (mut step, mut x) = scratch.load()?.map_or((0, of), |state| *state);
///     while step < 60 {
///         x = 0.5 * (x + of / x);
///         step += 1;
///         scratch.save((step, x))?;
///     }
///     Ok(x)
/// }
///
/// assert_eq!(*square_root.call(&Sde::new(), 9.0)?, 3.0);
/// # Ok::<(), sde::Error>(())
/// ```
pub struct Scratch<'a, T> {
    handle: &'a Handle,
    of: PhantomData<fn() -> T>,
}

/// One saved state and how to write it.
#[derive(Clone)]
pub(crate) struct ScratchState {
    pub(crate) value: ErasedValue,
    pub(crate) codec: Codec,
}

/// A state, and what it was made with. An app that was called for it, in no slot, may
/// be another in the program that goes on.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
struct Kept<T: Storable> {
    rests_on: RestsOn,
    state: Value<T>,
}

impl<'a, T: Storable> Scratch<'a, T> {
    pub(crate) fn new(handle: &'a Handle) -> Self {
        Self {
            handle,
            of: PhantomData,
        }
    }

    /// The state saved by an earlier, unfinished run of this key, if there is
    /// one. A state that is damaged or of another type counts as none, and so does
    /// one for which an app was called that is another now; an event says so.
    ///
    /// # Errors
    /// If the handle belongs to no run, or to one that has ended.
    pub fn load(&self) -> Result<Option<crate::Value<T>>, Error> {
        let frame = self.frame()?;
        let runtime = self.handle.runtime();
        let found = runtime.load_scratch(frame, &Codec::of::<Kept<T>>());
        let Some(kept) = found.and_then(|value| value.downcast::<Kept<T>>()) else {
            return Ok(None);
        };
        if !runtime.may_go_on(frame, &kept.rests_on) {
            return Ok(None);
        }
        frame.inherit(&kept.rests_on);
        Ok(Some(kept.state.clone()))
    }

    /// Makes this the state to go on from. It is kept in memory; the next
    /// checkpoint saves it, or this call does where the policy is to save every
    /// result.
    ///
    /// # Errors
    /// If the handle belongs to no run, or to one that has ended. A store that
    /// fails is a warning event, not an error: the computation goes on.
    pub fn save(&self, state: impl Into<crate::Value<T>>) -> Result<(), Error> {
        let frame = self.frame()?;
        let kept = Kept::<T> {
            rests_on: frame.rests_on(),
            state: state.into(),
        };
        self.handle.runtime().save_scratch(
            frame,
            ScratchState {
                value: ErasedValue::new(kept),
                codec: Codec::of::<Kept<T>>(),
            },
        );
        Ok(())
    }

    fn frame(&self) -> Result<&Arc<Frame>, Error> {
        self.handle.own_frame("scratch")
    }
}
