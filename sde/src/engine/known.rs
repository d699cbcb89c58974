//! The apps of this program, as far as they are known, and whether a remembered
//! result still rests on them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::Engine;
use super::app_store::InStore;
use crate::app::{
    App, AppInfo, Callee, CodeId, Defaults, Facts, Instance, Setup, SubApp, linked_apps,
};
use crate::cache::Entry;
use crate::error::{Error, ErrorKind, close_names, printable};
use crate::key::Digest;

/// Name -> what this program has under it.
pub(crate) struct Known(RwLock<HashMap<Arc<str>, KnownApp>>);

#[derive(Default)]
struct KnownApp {
    /// What the linker collected, and what was prepared or run. Several, if functions
    /// in different modules have one name, or a program has two versions of an app:
    /// each is current for as long as it is part of the program.
    shown: Vec<Shown>,
    citations: BTreeSet<String>,
}

/// An app as this program has it.
struct Shown {
    info: AppInfo,
    /// Made when first asked for: what is linked need not be asked for, and to read
    /// a file takes time.
    defaults: OnceLock<Defaults>,
}

impl Shown {
    fn is(&self, code: &CodeId, defaults: Option<Digest>) -> bool {
        self.info.code() == code && self.defaults().digest == defaults
    }

    fn defaults(&self) -> Defaults {
        match self.kept() {
            Defaults { volatile: true, .. } => Defaults::of(&self.info),
            kept => kept,
        }
    }

    /// As they were when first asked for.
    fn kept(&self) -> Defaults {
        *self.defaults.get_or_init(|| Defaults::of(&self.info))
    }
}

/// What this program has in place of an app that it has not.
enum Instead {
    /// No app of the name.
    Nothing,
    /// These codes.
    Codes(String),
    /// The same code, which does otherwise where its caller says nothing.
    Defaults,
}

/// Why a result does not rest on what this program has.
enum Changed {
    Defaults(String),
    Else(String),
}

impl KnownApp {
    fn note(&mut self, info: &AppInfo) {
        self.shown.push(Shown {
            info: info.clone(),
            defaults: OnceLock::new(),
        });
        self.citations.extend(info.citations().map(str::to_owned));
    }

    fn check(&self, code: &CodeId, defaults: Option<Digest>) -> Result<(), Instead> {
        if self.shown.iter().any(|shown| shown.is(code, defaults)) {
            return Ok(());
        }
        let codes: BTreeSet<_> = self.shown.iter().map(|shown| shown.info.code()).collect();
        if codes.contains(code) {
            return Err(Instead::Defaults);
        }
        let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
        Err(Instead::Codes(codes.join(" or ")))
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

    /// What an app says of itself, if this program has shown it.
    pub(crate) fn info_of(&self, app: &str, code: &CodeId) -> Option<AppInfo> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_code = |shown: &&Shown| shown.info.code() == code;
        let shown = apps.get(app)?.shown.iter().find(of_code)?;
        Some(shown.info.clone())
    }

    /// Whether the code with these defaults is what this program has; if not, what it
    /// has.
    fn check(&self, app: &str, code: &CodeId, defaults: Option<Digest>) -> Result<(), Instead> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = apps.get(app).ok_or(Instead::Nothing)?;
        known.check(code, defaults)
    }

    /// Whether a file is among the defaults of an app of this name.
    pub(super) fn is_volatile(&self, app: &str) -> bool {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let volatile = |shown: &Shown| shown.kept().volatile;
        apps.get(app)
            .is_some_and(|app| app.shown.iter().any(volatile))
    }

    /// Notes an app. That can only make more results current, never fewer, so the
    /// epoch need not be raised.
    fn note(&self, name: &Arc<str>, info: &AppInfo, defaults: Option<Digest>) {
        if self.check(name, info.code(), defaults).is_err() {
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
        self.known.note(&facts.name, &facts.info, facts.defaults);
        for sub_app in facts.sub_apps.values() {
            self.note_code(&sub_app.facts);
        }
    }

    /// Notes the code of a registered app, and of those put into its slots by
    /// value, whatever the names in the others will lead to.
    pub(super) fn note_instance(&self, instance: &Instance) {
        let info = instance.info();
        self.known
            .note(&instance.setup.name(), info, Defaults::of(info).digest);
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
        if why.is_none() && !self.rest_on_files(&entry.record.beneath) {
            entry.set_checked(epoch);
        }
        why
    }

    /// One of these that is not what it was, and what it is now. Edited code comes before
    /// defaults: those of an app differ if the code of one in its slots does.
    pub(super) fn changed_beneath<'c>(
        &self,
        beneath: impl IntoIterator<Item = &'c Callee>,
    ) -> Option<String> {
        let mut defaults = None;
        for callee in beneath {
            match self.changed(callee) {
                None => {}
                Some(Changed::Defaults(why)) => defaults = defaults.or(Some(why)),
                Some(Changed::Else(why)) => return Some(why),
            }
        }
        defaults
    }

    fn changed(&self, callee: &Callee) -> Option<Changed> {
        let changed = |why| Some(Changed::Else(why));
        match callee {
            Callee::Code {
                app,
                code,
                defaults,
            } => match self.known.check(app, code, *defaults) {
                Ok(()) => None,
                Err(Instead::Codes(now)) => changed(format!(
                    "it ran {} ({code}), which is now {now}",
                    printable(app)
                )),
                Err(Instead::Defaults) => Some(Changed::Defaults(format!(
                    "it ran {} ({code}), which has other defaults now",
                    printable(app)
                ))),
                Err(Instead::Nothing) => changed(format!(
                    "it ran {}, which this program has not shown yet; name it in `link_app!`",
                    printable(app)
                )),
            },
            Callee::Absent { name } => match self.apps.instance(name) {
                Ok(_) => changed(format!(
                    "no app was registered as \"{}\", and one is now",
                    printable(name)
                )),
                Err(_) => None,
            },
            Callee::Named { name, id } => match self.apps.id_of(self, name) {
                Ok(now) if now == *id => None,
                Ok(_) => changed(format!(
                    "it ran the app registered as \"{}\", which is set up otherwise now",
                    printable(name)
                )),
                Err(error) => changed(format!(
                    "it ran the app registered as \"{}\": {error}",
                    printable(name)
                )),
            },
        }
    }
}
