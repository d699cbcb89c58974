//! Whether a result is remembered, without a comparison with other runs.

use std::sync::Arc;

use super::{AppSource, Handle, Peek};
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::key::{Key, keyed};

impl Handle {
    /// Tells the key of a run, and whether it would be given a remembered result. It runs nothing.
    ///
    /// It looks for this one key, so it may be asked before each run of a sweep, where [`peek`](Self::peek) would compare
    /// each with all that is remembered. A body that asks stays cacheable: what the body returns must not depend on the
    /// answer.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// let inputs = sde::Inputs::new().with("x", 3.0);
    /// let (key, is_remembered) = sde.find(&square, &inputs)?;
    /// assert!(!is_remembered);
    /// sde.run(&square, &inputs)?;
    /// assert_eq!(sde.find(&square, &inputs)?, (key, true));
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn find<A: AppSource + ?Sized>(
        &self,
        app: &A,
        inputs: &Inputs,
    ) -> Result<(Key, bool), Error> {
        self.check_active()?;
        let app = app.resolve(self)?;
        let inputs = self.declared(&app, inputs)?;
        let resolved = &*app.resolved;
        let key = inputs
            .with_encoded(|encoded| keyed(&resolved.id.0, encoded))
            .map_err(|source| ErrorKind::Fingerprint {
                app: Arc::clone(&resolved.name),
                source,
            })?;
        let known = self.engine.known(resolved, &key, None);
        let is_remembered = matches!(known, Some(Peek::Hit { .. } | Peek::Load { .. }));
        Ok((key, is_remembered))
    }
}
