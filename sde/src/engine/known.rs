//! The apps of this program, as far as they are known, and whether a remembered
//! result still rests on them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use super::Engine;
use super::app_store::InStore;
use crate::app::{App, AppInfo, Callee, CodeId, Facts, Instance, Setup, SubApp, linked_apps};
use crate::cache::Entry;
use crate::error::{Error, ErrorKind, close_names, printable};

/// Name -> what this program has under it.
pub(super) struct Known(RwLock<HashMap<Arc<str>, KnownApp>>);

#[derive(Default)]
struct KnownApp {
    /// What the linker collected, and what was prepared or run. Several, if functions
    /// in different modules have one name, or a program has two versions of an app:
    /// each is current for as long as it is part of the program.
    codes: BTreeSet<CodeId>,
    citations: BTreeSet<String>,
}

impl KnownApp {
    fn note(&mut self, info: &AppInfo) {
        self.codes.insert(info.code().clone());
        self.citations.extend(info.citations().map(str::to_owned));
    }

    fn codes(&self) -> String {
        let codes: Vec<_> = self.codes.iter().map(ToString::to_string).collect();
        codes.join(" or ")
    }
}

impl Known {
    /// What the linker collected.
    pub(super) fn linked() -> Self {
        let mut apps: HashMap<Arc<str>, KnownApp> = HashMap::new();
        for info in linked_apps() {
            apps.entry(Arc::from(info.name())).or_default().note(&info);
        }
        Self(RwLock::new(apps))
    }

    pub(super) fn citations(&self, app: &str) -> Vec<String> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        apps.get(app)
            .map_or_else(Vec::new, |app| app.citations.iter().cloned().collect())
    }

    /// Whether the code is what this program has; if not, what it has.
    fn check(&self, app: &str, code: &CodeId) -> Result<(), Option<String>> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match apps.get(app) {
            Some(known) if known.codes.contains(code) => Ok(()),
            Some(known) => Err(Some(known.codes())),
            None => Err(None),
        }
    }

    /// Notes an app. That can only make more results current, never fewer, so the
    /// epoch need not be raised.
    fn note(&self, name: &Arc<str>, info: &AppInfo) {
        if self.check(name, info.code()).is_err() {
            let mut apps = self.0.write().unwrap_or_else(PoisonError::into_inner);
            apps.entry(Arc::clone(name)).or_default().note(info);
        }
    }

    /// The names of all apps.
    pub(super) fn names(&self) -> Vec<String> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        apps.keys().map(ToString::to_string).collect()
    }
}

impl Engine {
    /// The facts of an app given by value, with all its defaults.
    pub(super) fn facts_of(&self, app: &dyn App) -> Result<Arc<Facts>, Error> {
        let facts = Facts::of(app, &Setup::defaults(app), &InStore(self), &mut Vec::new())?;
        self.note_code(&facts);
        Ok(Arc::new(facts))
    }

    /// Notes the code of an app and of those in its slots.
    pub(super) fn note_code(&self, facts: &Facts) {
        self.known.note(&facts.name, &facts.info);
        for sub_app in facts.sub_apps.values() {
            self.note_code(&sub_app.facts);
        }
    }

    /// Notes the code of a registered app, and of those put into its slots by
    /// value, whatever the names in the others will lead to.
    pub(super) fn note_instance(&self, instance: &Instance) {
        self.known.note(&instance.setup.name(), instance.info());
        for slot in instance.info().slots() {
            if let Some(SubApp::Instance(inner)) = instance.setup.sub_app(slot.name()) {
                self.note_instance(inner);
            }
        }
    }

    /// That there is an app of this name, whether it has run or not.
    pub(super) fn must_know(&self, name: &str) -> Result<(), Error> {
        let known = self.known.names();
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        let registered = self.apps.instance(name).ok();
        Err(ErrorKind::NoSuchApp {
            name: name.to_owned(),
            close: match registered {
                Some(instance) => vec![instance.info().name().to_owned()],
                None => close_names(name, known),
            },
        }
        .into())
    }

    /// Why an entry does not rest on what this program has; `None` if it does.
    /// Looked at once for each entry and epoch, and each time if a registered app was
    /// run whose identity may change without anybody saying so.
    pub(super) fn stale(&self, entry: &Entry) -> Option<String> {
        let epoch = self.epoch();
        if entry.is_checked(epoch) {
            return None;
        }
        let why = self.changed_beneath(&entry.record.beneath);
        if why.is_none() && !self.rests_on_files(&entry.record) {
            entry.set_checked(epoch);
        }
        why
    }

    /// The first of these that is not what it was, and what it is now.
    pub(super) fn changed_beneath<'c>(
        &self,
        beneath: impl IntoIterator<Item = &'c Callee>,
    ) -> Option<String> {
        beneath.into_iter().find_map(|callee| self.changed(callee))
    }

    fn changed(&self, callee: &Callee) -> Option<String> {
        match callee {
            Callee::Code { app, code } => match self.known.check(app, code) {
                Ok(()) => None,
                Err(Some(now)) => Some(format!(
                    "it ran {} ({code}), which is now {now}",
                    printable(app)
                )),
                Err(None) => Some(format!(
                    "it ran {}, which this program has not shown yet; name it in `link_app!`",
                    printable(app)
                )),
            },
            Callee::Named { name, id } => match self.apps.id_of(self, name) {
                Ok(now) if now == *id => None,
                Ok(_) => Some(format!(
                    "it ran the app registered as \"{}\", which is set up otherwise now",
                    printable(name)
                )),
                Err(error) => Some(format!(
                    "it ran the app registered as \"{}\": {error}",
                    printable(name)
                )),
            },
        }
    }
}
