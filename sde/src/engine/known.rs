//! The apps of this program, as far as they are known, and whether a remembered
//! result still rests on them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use super::Engine;
use super::app_store::InStore;
use crate::app::{App, AppInfo, Callee, CodeId, Facts, Instance, Setup, SubApp, linked_apps};
use crate::cache::Entry;
use crate::error::{Error, printable};

/// Name -> what this program has under it.
pub(super) struct Known(RwLock<HashMap<Arc<str>, KnownApp>>);

#[derive(Default)]
struct KnownApp {
    /// What the linker collected. Several, if functions in different modules have
    /// one name; an edit of either is still seen.
    linked: Vec<CodeId>,
    /// What was prepared or run last.
    seen: Option<CodeId>,
    citations: BTreeSet<String>,
}

impl KnownApp {
    fn has(&self, code: &CodeId) -> bool {
        self.seen.as_ref() == Some(code) || self.linked.contains(code)
    }

    fn codes(&self) -> String {
        let codes: BTreeSet<_> = self.linked.iter().chain(&self.seen).collect();
        let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
        codes.join(" or ")
    }
}

impl Known {
    /// What the linker collected.
    pub(super) fn linked() -> Self {
        let mut apps: HashMap<Arc<str>, KnownApp> = HashMap::new();
        for info in linked_apps() {
            let app = apps.entry(Arc::from(info.name())).or_default();
            app.linked.push(info.code().clone());
            app.citations.extend(info.citations().map(str::to_owned));
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
            Some(known) if known.has(code) => Ok(()),
            Some(known) => Err(Some(known.codes())),
            None => Err(None),
        }
    }

    /// Notes an app; says whether that changed anything.
    fn note(&self, name: &Arc<str>, info: &AppInfo) -> bool {
        if self.check(name, info.code()).is_ok() {
            return false;
        }
        let mut apps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let app = apps.entry(Arc::clone(name)).or_default();
        app.seen = Some(info.code().clone());
        app.citations.extend(info.citations().map(str::to_owned));
        true
    }
}

impl Engine {
    /// The facts of an app given by value, with all its defaults.
    pub(super) fn facts_of(&self, app: &dyn App) -> Result<Arc<Facts>, Error> {
        let facts = Facts::of(app, &Setup::defaults(app), &InStore(self), &mut Vec::new())?;
        self.note_code(&facts);
        Ok(Arc::new(facts))
    }

    /// Notes the code of an app and of those in its slots: the latest seen is the
    /// current one.
    pub(super) fn note_code(&self, facts: &Facts) {
        let mut changed = self.known.note(&facts.name, &facts.info);
        for sub_app in facts.sub_apps.values() {
            changed |= self.known.note(&sub_app.facts.name, &sub_app.facts.info);
            self.note_code(&sub_app.facts);
        }
        if changed {
            self.raise_epoch();
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

    /// Why an entry does not rest on what this program has; `None` if it does.
    /// Looked at once for each entry and epoch.
    pub(super) fn stale(&self, entry: &Entry) -> Option<String> {
        let epoch = self.epoch();
        if entry.is_checked(epoch) {
            return None;
        }
        let why = entry
            .record
            .beneath
            .iter()
            .find_map(|callee| self.changed(callee));
        if why.is_none() {
            entry.set_checked(epoch);
        }
        why
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
