//! Sub-app slots: places in an app where the user puts another app.

use std::borrow::Cow;
use std::sync::Arc;

use super::definition::App;
use super::instance::Instance;

/// A slot that an app declares.
///
/// The app runs the sub-app in it by `sde.run(&sde.sub_app("integrals")?, &inputs)`.
#[derive(Clone, Debug)]
pub struct Slot {
    pub(crate) name: Cow<'static, str>,
    pub(crate) about: Cow<'static, str>,
    pub(crate) default: Option<SubApp>,
}

impl Slot {
    /// A slot with a default sub-app.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, default: impl Into<SubApp>) -> Self {
        Self {
            default: Some(default.into()),
            ..Self::required(name)
        }
    }

    /// A slot that the user has to fill before the app can run.
    #[must_use]
    pub fn required(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            about: Cow::Borrowed(""),
            default: None,
        }
    }

    /// Describes what an app in this slot takes and returns.
    #[must_use]
    pub fn about(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.about = text.into();
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the apps that fit this slot.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.about
    }
}

/// The filling of a slot: an app by value, set up or not, or the name under which one is registered.
///
/// A name stands for the app it leads to: it is looked up when the parent is
/// identified.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubApp {
    /// An app with its settings.
    Instance(Arc<Instance>),
    /// A registered name.
    Named(Cow<'static, str>),
}

impl<A: App> From<A> for SubApp {
    fn from(app: A) -> Self {
        Self::Instance(Arc::new(Instance::new(app)))
    }
}

impl From<Instance> for SubApp {
    fn from(instance: Instance) -> Self {
        Self::Instance(Arc::new(instance))
    }
}

impl From<&'static str> for SubApp {
    fn from(name: &'static str) -> Self {
        Self::Named(Cow::Borrowed(name))
    }
}

impl From<String> for SubApp {
    fn from(name: String) -> Self {
        Self::Named(Cow::Owned(name))
    }
}
