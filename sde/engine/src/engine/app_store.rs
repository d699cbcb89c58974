//! Apps registered by name, so that a workflow chooses its methods at run time.
//!
//! The apps that have run are part of the record of a calculation. So a registered app freezes once it has run, or an
//! app that has it in a slot: changing it is an error that says to copy it first.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use super::Engine;
use super::handle::CalledApp;
use crate::app::{AppInfo, Instance, Prepared, Setting, Setup, SubApp, linked_app, prepare};
use crate::error::{Error, ErrorKind, join_names, printable};
use crate::key::Fingerprint;
use crate::sync::{Guard, read, write};

#[derive(Default)]
pub(super) struct AppStore(RwLock<BTreeMap<String, Registered>>);

#[derive(Clone)]
struct Registered {
    instance: Arc<Instance>,
    frozen: bool,
    /// Made when first needed; good for one epoch.
    prepared: Option<(u64, Prepared)>,
}

impl Registered {
    fn new(instance: Arc<Instance>) -> Self {
        Self {
            instance,
            frozen: false,
            prepared: None,
        }
    }
}

impl AppStore {
    fn read(&self) -> Guard<std::sync::RwLockReadGuard<'_, BTreeMap<String, Registered>>> {
        read(&self.0)
    }

    fn registered(&self, name: &str) -> Result<Registered, Error> {
        let apps = self.read();
        apps.get(name).cloned().ok_or_else(|| {
            ErrorKind::UnknownApp {
                name: name.to_owned(),
                known: apps.keys().cloned().collect(),
            }
            .into()
        })
    }

    pub(super) fn instance(&self, name: &str) -> Result<Arc<Instance>, Error> {
        Ok(self.registered(name)?.instance)
    }

    /// The app registered under a name, prepared. The prepared app is kept, and serves for one epoch.
    pub(super) fn find(
        &self,
        engine: &Engine,
        name: &str,
        path: &mut Vec<String>,
    ) -> Result<Prepared, Error> {
        if path.iter().any(|seen| seen == name) {
            path.push(name.to_owned());
            let names: Vec<_> = path.iter().map(|name| printable(name)).collect();
            let names = names.join(" -> ");
            return Err(Error::refused(
                "a circle of registered names",
                format!("{names}; put another app in one of the slots"),
            ));
        }
        let epoch = engine.epoch();
        let kept = self.read().get(name).and_then(|app| app.prepared.clone());
        if let Some((made, prepared)) = kept
            && made == epoch
            && prepared.resolved.volatile.is_none()
        {
            return Ok(prepared);
        }
        path.push(name.to_owned());
        let prepared = prepare(&*self.instance(name)?, &engine.find_named(), path)?;
        path.pop();
        let _before = write(&self.0)
            .get_mut(name)
            .and_then(|registered| registered.prepared.replace((epoch, prepared.clone())));
        Ok(prepared)
    }

    /// Whether the identity of a prepared app changes with a file's content.
    pub(super) fn is_volatile(&self, name: &str) -> bool {
        let apps = self.read();
        let found = apps.get(name).and_then(|app| app.prepared.as_ref());
        found.is_some_and(|(_, prepared)| prepared.resolved.volatile.is_some())
    }

    #[inline(never)]
    fn freeze<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) {
        let is_frozen = |name: &str| self.read().get(name).is_some_and(|app| app.frozen);
        if names.clone().all(is_frozen) {
            return;
        }
        let mut apps = write(&self.0);
        for name in names {
            if let Some(registered) = apps.get_mut(name) {
                registered.frozen = true;
            }
        }
    }

    /// Changes an app that has not run. The change calls the app's checks, which may look into the registry: it
    /// is made without a lock, and once more if another came between.
    fn change(
        &self,
        name: &str,
        change: impl Fn(Instance) -> Result<Instance, Error>,
    ) -> Result<(), Error> {
        loop {
            let before = self.registered(name)?;
            if before.frozen {
                let name = name.to_owned();
                return Err(ErrorKind::Frozen { name }.into());
            }
            let changed = Registered::new(Arc::new(change(Instance::clone(&before.instance))?));
            // Dropped when the apps are free again: destructors may look into the registry.
            let (_replaced, mut apps);
            apps = write(&self.0);
            if let Some(registered) = apps.get_mut(name)
                && Arc::ptr_eq(&registered.instance, &before.instance)
                && !registered.frozen
            {
                _replaced = std::mem::replace(registered, changed);
                return Ok(());
            }
        }
    }

    fn insert(&self, name: &str, instance: Arc<Instance>) -> Result<(), Error> {
        let mut apps = write(&self.0);
        if apps.contains_key(name) {
            let why =
                "an app is registered by it; choose another name, or set its parameters instead";
            let (name, why) = (name.to_owned(), why.to_owned());
            return Err(ErrorKind::NameTaken { name, why }.into());
        }
        apps.insert(name.to_owned(), Registered::new(instance));
        Ok(())
    }
}

impl Engine {
    pub(crate) fn named(&self, name: &str) -> Result<Prepared, Error> {
        let prepared = self.apps.find(self, name, &mut Vec::new())?;
        self.note_code(&prepared.resolved);
        Ok(prepared)
    }

    /// The look-up of registered apps by name.
    pub(super) fn find_named(&self) -> impl Fn(&str, &mut Vec<String>) -> Result<Prepared, Error> {
        |name, path| self.apps.find(self, name, path)
    }

    /// Freezes the names by which a run about to be made came to its apps: its own
    /// and those in slots.
    #[inline]
    pub(super) fn freeze(&self, app: &CalledApp<'_>) {
        if app.by_name.is_some() || !app.resolved.registered.is_empty() {
            let in_slots = app.resolved.registered.keys().map(String::as_str);
            self.apps.freeze(app.by_name.into_iter().chain(in_slots));
        }
    }
}

/// The apps registered with an [`Sde`](crate::Sde).
///
/// ```
/// # use sde::*;
/// # #[derive(Fingerprint)]
/// # struct Rhf;
/// # impl App for Rhf {
/// #     fn info(&self) -> AppInfo {
/// #         AppInfo::new("doc.Rhf", "1")
/// #             .parameter(Parameter::new("threshold", 1e-6_f64))
/// #             .result(ResultSpec::new::<f64>("threshold"))
/// #     }
/// #     fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
/// #         Ok(ResultMap::new().with("threshold", *sde.parameter::<f64>("threshold")?))
/// #     }
/// # }
/// let sde = Sde::new();
/// sde.apps().register("RHF", Rhf)?;
/// sde.apps().set("RHF", "threshold", 1e-8)?;
/// sde.run("RHF", &inputs! {})?;
///
/// // It has run: what it was must not change any more.
/// let error = sde.apps().set("RHF", "threshold", 1e-4).unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Frozen { .. }));
/// sde.apps().copy("RHF", "loose RHF")?;
/// sde.apps().set("loose RHF", "threshold", 1e-4)?;
/// # Ok::<(), sde::Error>(())
/// ```
pub struct Apps<'a>(pub(super) &'a Engine);

impl Apps<'_> {
    /// Registers an app, or an [`Instance`], under a name.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn register(&self, name: &str, app: impl Into<SubApp>) -> Result<(), Error> {
        let instance = match app.into() {
            SubApp::Instance(instance) => instance,
            SubApp::Named(other) => self.0.apps.instance(&other)?,
        };
        self.0.note_instance(&instance);
        self.0.apps.insert(name, instance)?;
        self.0.raise_epoch();
        Ok(())
    }

    /// Sets a parameter of a registered app.
    ///
    /// # Errors
    /// If there is no such app or parameter, the value is refused, or the app has
    /// run.
    pub fn set<T: Fingerprint + Send + Sync + 'static>(
        &self,
        name: &str,
        parameter: &str,
        value: T,
    ) -> Result<(), Error> {
        let setting = Setting::new(value);
        self.0.apps.change(name, |instance| {
            instance.with_setting(parameter, setting.clone())
        })?;
        self.0.raise_epoch();
        Ok(())
    }

    /// Puts an app, or the name of one, into a slot of a registered app.
    ///
    /// # Errors
    /// If there is no such app or slot, or the app has run.
    pub fn fill(&self, name: &str, slot: &str, app: impl Into<SubApp>) -> Result<(), Error> {
        let app = app.into();
        self.0
            .apps
            .change(name, |instance| instance.fill(slot, app.clone()))?;
        self.0.note_instance(&*self.0.apps.instance(name)?);
        self.0.raise_epoch();
        Ok(())
    }

    /// Registers a copy of an app under another name; the copy is not frozen.
    ///
    /// # Errors
    /// If there is no such app, or the new name is taken.
    pub fn copy(&self, name: &str, new_name: &str) -> Result<(), Error> {
        let instance = self.0.apps.instance(name)?;
        self.0.apps.insert(new_name, instance)?;
        // A run may depend on there having been no app of that name.
        self.0.raise_epoch();
        Ok(())
    }

    /// Makes an app known that this program has and may not run, such as one of a script. Results of earlier programs
    /// that rest on it, and those of its callers, are then used again.
    ///
    /// It takes the place of an app of its name that was declared or has run before: one whose code was edited is
    /// declared again, and results that rest on its earlier code are not used any more.
    ///
    /// # Errors
    /// If the description contradicts itself.
    pub fn declare(&self, info: AppInfo) -> Result<(), Error> {
        Setup::of(info.clone()).verify_all()?;
        self.0.catalog.declare(info);
        self.0.raise_epoch();
        Ok(())
    }

    /// The app of this name that is part of the program: an `#[sde::app]` function, or a type named in
    /// [`link_app!`](crate::link_app). `None` if there is none, or if there are several with different code, as functions
    /// of several modules may be. Each call makes all linked apps, so keep what it gives.
    ///
    /// ```
    /// #[sde::app(name = "doc.half")]
    /// fn half(x: f64) -> f64 {
    ///     x / 2.0
    /// }
    ///
    /// let sde = sde::Sde::new();
    /// let found = sde.apps().linked("doc.half").expect("it is linked");
    /// assert_eq!(*sde.run(&found, &sde::inputs! { x: 3.0 })?.get::<f64>("result")?, 1.5);
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn linked(&self, name: &str) -> Option<Instance> {
        linked_app(name)
    }

    /// The registered names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.apps.read().keys().cloned().collect()
    }

    /// The app of this name as it describes itself.
    ///
    /// # Errors
    /// If there is no such app.
    pub fn info(&self, name: &str) -> Result<AppInfo, Error> {
        Ok(AppInfo::clone(self.0.apps.instance(name)?.info()))
    }

    /// The app of this name with its settings, to be changed and run by value.
    ///
    /// # Errors
    /// If there is no such app.
    pub fn instance(&self, name: &str) -> Result<Instance, Error> {
        self.0.apps.instance(name).map(Arc::unwrap_or_clone)
    }
}

impl std::fmt::Debug for Apps<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Apps({})", join_names(self.names()))
    }
}
