//! What a call would do.

use std::fmt;

use super::{AppSource, Handle};
use crate::app::Nearest;
use crate::entry::RecordHead;
use crate::error::Error;
use crate::event::RunId;
use crate::inputs::Inputs;
use crate::key::Key;

/// The prediction of [`Handle::peek`](crate::Handle::peek) for a run.
///
/// ```
/// use sde::{Peek, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let sde = Sde::new();
/// cube.call(&sde, 2.0)?;
/// assert!(matches!(cube.request(&sde, 2.0).peek()?, Peek::Hit { .. }));
/// let peek = cube.request(&sde, 3.0).peek()?;
/// let Peek::Miss { nearest: Some(nearest), .. } = &peek else { panic!("{peek}") };
/// assert_eq!(nearest.differences.len(), 1);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Peek {
    /// The call would be a hit in memory.
    #[non_exhaustive]
    Hit {
        /// The key of the run.
        key: Key,
        /// The computation that made the results.
        made_by: RunId,
    },
    /// The call would read the result from the store.
    #[non_exhaustive]
    Load {
        /// The key of the run.
        key: Key,
        /// The computation that made the results.
        made_by: RunId,
    },
    /// The call would wait, since another run of this key is going on.
    #[non_exhaustive]
    Wait {
        /// The key of the run.
        key: Key,
    },
    /// The call would give the error of an earlier failure, and compute nothing.
    #[non_exhaustive]
    Failed {
        /// The key of the run.
        key: Key,
        /// The error's text.
        why: String,
    },
    /// The call would compute.
    #[non_exhaustive]
    Miss {
        /// The key of the run.
        key: Key,
        /// The reasons why nothing remembered serves.
        why: String,
        /// If nothing is remembered for this key: the run of the app, in memory or in the store,
        /// that this one is most like, and in what it differs.
        nearest: Option<Nearest>,
    },
}

impl Peek {
    /// The key of the run that was looked at.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Hit { key, .. }
            | Self::Load { key, .. }
            | Self::Wait { key }
            | Self::Failed { key, .. }
            | Self::Miss { key, .. } => *key,
        }
    }
}

/// The prediction and its reason, on one line.
impl fmt::Display for Peek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", self.key().short())?;
        match self {
            Self::Hit { made_by, .. } => write!(f, "is in memory, made by {made_by}"),
            Self::Load { made_by, .. } => write!(f, "is in the store, made by {made_by}"),
            Self::Wait { .. } => f.write_str("is being computed"),
            Self::Failed { why, .. } => write!(f, "failed, and would again: {why}"),
            Self::Miss { why, nearest, .. } => {
                write!(f, "would be computed: {why}")?;
                nearest
                    .as_ref()
                    .map_or(Ok(()), |nearest| write!(f, "; {nearest}"))
            }
        }
    }
}

impl Handle {
    /// The record of the result that a call would be given: when it was made, and how long that took. `None` if the call
    /// would compute, wait or fail. It runs nothing and reads no value, and unlike [`peek`](Self::peek) it looks for no
    /// nearest run.
    ///
    /// It is for deciding whether a result is too old, and to be [refreshed](crate::Policy::Refresh). A body that asks it
    /// stays cacheable, so what the body returns must not depend on the answer.
    ///
    /// ```
    /// use std::time::SystemTime;
    ///
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// let inputs = sde::Inputs::new().with("x", 3.0);
    /// assert!(sde.record(&square, &inputs)?.is_none());
    /// sde.run(&square, &inputs)?;
    /// assert!(sde.record(&square, &inputs)?.unwrap().made_at <= SystemTime::now());
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn record<A: AppSource + ?Sized>(
        &self,
        app: &A,
        inputs: &Inputs,
    ) -> Result<Option<RecordHead>, Error> {
        self.check_active()?;
        let app = app.resolve(self)?;
        self.engine
            .record_serving(&app, &*self.declared(&app, inputs)?)
    }
}
