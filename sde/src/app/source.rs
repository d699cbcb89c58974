//! The ways to say which app is meant.

use std::sync::Arc;

use super::Handle;
use super::definition::App;
use super::instance::Instance;
use super::prepared::{Facts, Prepared, Subject};
use crate::error::Error;

/// What can be given to `run` as the app: an app by value, an [`Instance`],
/// a [`Prepared`] handle, or the name under which one is registered.
///
/// All four make the same key for the same app and settings.
pub trait AppSource {
    /// Finds and identifies the app.
    ///
    /// # Errors
    /// If no such app is registered, or it can't be identified.
    #[doc(hidden)]
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error>;

    /// The registered name, if that is how the app is given.
    #[doc(hidden)]
    fn registered_name(&self) -> Option<&str> {
        None
    }
}

/// An app that was found, and who owns it.
#[doc(hidden)]
pub struct Resolved<'a>(Inner<'a>);

enum Inner<'a> {
    Handle(&'a Prepared),
    Owned(Prepared, Option<&'a str>),
    Value(&'a dyn App, Arc<Facts>),
}

impl Resolved<'_> {
    pub(crate) fn subject(&self) -> Subject<'_> {
        match &self.0 {
            Inner::Handle(prepared) => prepared.subject(),
            Inner::Owned(prepared, by_name) => Subject {
                by_name: *by_name,
                ..prepared.subject()
            },
            Inner::Value(app, facts) => Subject {
                app: *app,
                facts,
                by_name: None,
            },
        }
    }
}

impl<A: App> AppSource for A {
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error> {
        Ok(Resolved(Inner::Value(self, sde.engine().identify(self)?)))
    }
}

impl AppSource for Prepared {
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error> {
        Ok(Resolved(match self.to_renew() {
            None => Inner::Handle(self),
            Some(instance) => Inner::Owned(sde.engine().prepare(&instance)?, None),
        }))
    }
}

impl AppSource for Instance {
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error> {
        Ok(Resolved(Inner::Owned(sde.engine().prepare(self)?, None)))
    }
}

impl AppSource for str {
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error> {
        Ok(Resolved(Inner::Owned(
            sde.engine().named(self)?,
            Some(self),
        )))
    }

    fn registered_name(&self) -> Option<&str> {
        Some(self)
    }
}

impl AppSource for String {
    fn resolve(&self, sde: &Handle) -> Result<Resolved<'_>, Error> {
        self.as_str().resolve(sde)
    }

    fn registered_name(&self) -> Option<&str> {
        Some(self)
    }
}
