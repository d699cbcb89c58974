//! The ways to say which app is meant.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::Handle;
use crate::app::{App, Instance, Prepared, ResolvedApp};
use crate::error::Error;

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

    /// The registered name, if that is how the app is given.
    #[doc(hidden)]
    fn registered_name(&self) -> Option<&str> {
        None
    }
}

/// An app about to be run, however it was named: found, checked and identified.
#[doc(hidden)]
pub struct CalledApp<'a> {
    pub(crate) app: AppRef<'a>,
    pub(crate) resolved: Cow<'a, Arc<ResolvedApp>>,
    /// The registered name it was called by, if it was.
    pub(crate) by_name: Option<&'a str>,
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

impl CalledApp<'_> {
    fn of(prepared: Prepared) -> Self {
        Self {
            app: AppRef::Shared(prepared.instance.app),
            resolved: Cow::Owned(prepared.resolved),
            by_name: None,
        }
    }
}

impl<A: App> AppSource for A {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        Ok(CalledApp {
            app: AppRef::Borrowed(self),
            resolved: Cow::Owned(sde.engine().identify(self)?),
            by_name: None,
        })
    }
}

impl AppSource for Prepared {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        if self.resolved.volatile.is_some() {
            return self.instance.resolve(sde);
        }
        Ok(CalledApp {
            app: AppRef::Borrowed(&*self.instance.app),
            resolved: Cow::Borrowed(&self.resolved),
            by_name: None,
        })
    }
}

impl AppSource for Instance {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        Ok(CalledApp::of(sde.engine().prepare(self)?))
    }
}

impl AppSource for str {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        Ok(CalledApp {
            by_name: Some(self),
            ..CalledApp::of(sde.engine().named(self)?)
        })
    }

    fn registered_name(&self) -> Option<&str> {
        Some(self)
    }
}

impl AppSource for String {
    fn resolve(&self, sde: &Handle) -> Result<CalledApp<'_>, Error> {
        self.as_str().resolve(sde)
    }

    fn registered_name(&self) -> Option<&str> {
        Some(self)
    }
}
