//! The ways to say which app is meant.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Handle;
use crate::app::{App, Callee, Instance, Prepared, ResolvedApp, Setup};
use crate::error::{Error, ErrorKind};

/// The ways to give an app to `run`: an app by value, an [`Instance`], a [`Prepared`] handle, or the name under which
/// one is registered.
///
/// All four make the same key for the same app and settings.
pub trait AppSource {
    /// Finds and identifies the app.
    ///
    /// # Errors
    /// If no such app is registered, or it can't be identified.
    #[doc(hidden)]
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error>;
}

/// An app about to be run, however it was named: found, checked and identified.
#[doc(hidden)]
pub struct CalledApp<'a> {
    pub(crate) app: AppRef<'a>,
    pub(crate) resolved: Cow<'a, Arc<ResolvedApp>>,
    /// The registered name it was called by, if it was.
    pub(crate) by_name: Option<&'a str>,
}

impl fmt::Debug for CalledApp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CalledApp").field(&self.resolved).finish()
    }
}

/// The caller's own app, or one that the engine holds.
pub(crate) enum AppRef<'a> {
    Borrowed(&'a dyn App),
    Shared(Arc<dyn App>),
}

impl Deref for AppRef<'_> {
    type Target = dyn App;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(app) => *app,
            Self::Shared(app) => &**app,
        }
    }
}

impl<'a> CalledApp<'a> {
    /// The caller's app with these settings, identified for this call.
    fn identified(app: &'a dyn App, settings: Setup, sde: &Handle) -> Result<Self, Error> {
        Ok(Self {
            app: AppRef::Borrowed(app),
            resolved: Cow::Owned(sde.identify(app, settings)?),
            by_name: None,
        })
    }

    /// The caller's app, identified before.
    #[inline]
    pub(super) fn ready(app: &'a dyn App, resolved: &'a Arc<ResolvedApp>) -> Self {
        Self {
            app: AppRef::Borrowed(app),
            resolved: Cow::Borrowed(resolved),
            by_name: None,
        }
    }
}

impl<A: App> AppSource for A {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        CalledApp::identified(self, Setup::defaults(self), sde)
    }
}

impl AppSource for Prepared {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        match &self.resolved.volatile {
            None => Ok(CalledApp::ready(&*self.app, &self.resolved)),
            Some(_) => CalledApp::identified(&*self.app, self.resolved.settings.clone(), sde),
        }
    }
}

impl AppSource for Instance {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        CalledApp::identified(&*self.app, self.setup.clone(), sde)
    }
}

impl AppSource for str {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        let found = sde.engine().named(self);
        let prepared = found.inspect_err(|error| match (error.kind(), sde.caller()) {
            // The run may go on: its result is good for as long as there is none.
            (ErrorKind::UnknownApp { name, .. }, Some(run)) if name == self => {
                let name = Arc::from(self);
                run.dependencies.add([Callee::Absent { name }], false);
            }
            // Another name further down, or a setting that was refused: more than one thing may change that.
            _ => sde.note_uncacheable(),
        })?;
        Ok(CalledApp {
            app: AppRef::Shared(prepared.app),
            resolved: Cow::Owned(prepared.resolved),
            by_name: Some(self),
        })
    }
}

impl AppSource for String {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        self.as_str().resolve(sde)
    }
}
