//! The apps of this program, as far as they are known, and whether a remembered
//! result still rests on them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, RwLock};

use super::Engine;
use crate::app::{
    App, AppInfo, Callee, CodeId, Defaults, Instance, ResolvedApp, Setup, SubApp, linked_apps,
};
use crate::entry::{Entry, RecordHead};
use crate::error::{Error, printable};
use crate::key::Digest;
use crate::sync::{read, write};

/// The linked, prepared and run apps by name. A name has several apps if functions in different modules share it, or if
/// the program has two versions of an app. Each is current as long as it is part of the program.
pub(crate) struct AppCatalog(RwLock<HashMap<Arc<str>, OfName>>);

/// The apps of one name. Shared, so that they are looked at without the lock: users' code fingerprints their defaults.
type OfName = Arc<Vec<Arc<CatalogEntry>>>;

/// An app as this program has it.
struct CatalogEntry {
    info: AppInfo,
    /// Whether the linker collected it: it is part of the program for ever.
    is_linked: bool,
    /// Made when first asked for: many linked apps are never asked for, and reading a file takes time.
    defaults: OnceLock<Defaults>,
}

impl CatalogEntry {
    fn new(info: AppInfo, is_linked: bool) -> Self {
        Self {
            info,
            is_linked,
            defaults: OnceLock::new(),
        }
    }

    fn is(&self, code: &CodeId, defaults: Option<Digest>) -> bool {
        self.info.code() == code && self.defaults().digest == defaults
    }

    fn defaults(&self) -> Defaults {
        match self.kept() {
            Defaults { volatile: true, .. } => Defaults::of(&self.info),
            kept => kept,
        }
    }

    /// The defaults as they were when first asked for.
    fn kept(&self) -> Defaults {
        self.defaults.get().copied().unwrap_or_else(|| {
            let made = Defaults::of(&self.info);
            *self.defaults.get_or_init(|| made)
        })
    }
}

impl AppCatalog {
    pub(super) fn linked() -> Self {
        let mut apps: HashMap<Arc<str>, OfName> = HashMap::new();
        for app in linked_apps() {
            let info = app.info().clone();
            let of_name = apps.entry(Arc::from(info.name())).or_default();
            Arc::make_mut(of_name).push(Arc::new(CatalogEntry::new(info, true)));
        }
        Self(RwLock::new(apps))
    }

    fn of_name(&self, app: &str) -> OfName {
        read(&self.0).get(app).cloned().unwrap_or_default()
    }

    pub(super) fn citations(&self, app: &str) -> Vec<String> {
        let entries = self.of_name(app);
        let entries = entries.iter();
        let citations: BTreeSet<&str> = entries.flat_map(|entry| entry.info.citations()).collect();
        citations.into_iter().map(str::to_owned).collect()
    }

    /// The description of the app that made an entry, if the program has it with this code.
    pub(crate) fn info_of(&self, made: &RecordHead) -> Option<AppInfo> {
        let entries = self.of_name(&made.app);
        let of_code = |entry: &&Arc<CatalogEntry>| *entry.info.code() == made.code;
        Some(entries.iter().find(of_code)?.info.clone())
    }

    /// Why the program has no app with this code and these defaults, and whether only the defaults differ.
    fn changed(
        &self,
        app: &str,
        code: &CodeId,
        defaults: Option<Digest>,
    ) -> Option<(bool, String)> {
        let entries = self.of_name(app);
        if entries.iter().any(|entry| entry.is(code, defaults)) {
            return None;
        }
        let codes: BTreeSet<_> = entries.iter().map(|entry| entry.info.code()).collect();
        let app = printable(app);
        if codes.contains(code) {
            let why = format!("it ran {app} ({code}), which has other defaults now");
            return Some((true, why));
        }
        let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
        let why = match codes.is_empty() {
            true => format!(
                "it ran {app}, which this program has not shown yet; name it in `link_app!`, or give its description to `apps().declare`"
            ),
            false => format!("it ran {app} ({code}), which is now {}", codes.join(" or ")),
        };
        Some((false, why))
    }

    /// Whether a file is among the defaults of an app of this name.
    fn is_volatile(&self, app: &str) -> bool {
        self.of_name(app).iter().any(|entry| entry.kept().volatile)
    }

    /// Notes an app. That can only make more results current, never fewer, so the
    /// epoch need not be raised.
    fn note(&self, name: &Arc<str>, info: &AppInfo, defaults: Option<Digest>) {
        if self.changed(name, info.code(), defaults).is_some() {
            let mut apps = write(&self.0);
            let of_name = apps.entry(Arc::clone(name)).or_default();
            Arc::make_mut(of_name).push(Arc::new(CatalogEntry::new(info.clone(), false)));
        }
    }

    /// Notes an app in place of those of its name that the linker did not collect. The epoch must be raised.
    pub(super) fn declare(&self, info: AppInfo) {
        // Dropped without the lock: defaults have destructors of users.
        let _before;
        let entry = Arc::new(CatalogEntry::new(info, false));
        let mut apps = write(&self.0);
        let of_name = apps.entry(Arc::from(entry.info.name())).or_default();
        let linked = of_name.iter().filter(|entry| entry.is_linked).cloned();
        let all = linked.chain([entry]).collect();
        _before = std::mem::replace(of_name, Arc::new(all));
    }

    pub(super) fn names(&self) -> Vec<String> {
        read(&self.0).keys().map(ToString::to_string).collect()
    }
}

impl Engine {
    /// An app with its settings, checked and identified, its slots looked up.
    pub(crate) fn identify(
        &self,
        app: &dyn App,
        settings: Setup,
    ) -> Result<Arc<ResolvedApp>, Error> {
        let resolved = ResolvedApp::of(app, settings, &self.find_named(), &mut Vec::new())?;
        self.note_code(&resolved);
        Ok(resolved)
    }

    /// Notes the code of an app and of those in its slots.
    pub(super) fn note_code(&self, resolved: &ResolvedApp) {
        self.catalog
            .note(&resolved.name, &resolved.info, resolved.defaults);
        for sub_app in resolved.sub_apps.values() {
            self.note_code(&sub_app.resolved);
        }
    }

    /// Notes the code of a registered app, and of those put into its slots by
    /// value, whatever the names in the others will lead to.
    pub(super) fn note_instance(&self, instance: &Instance) {
        let info = instance.info();
        self.catalog
            .note(&instance.setup.name(), info, Defaults::of(info).digest);
        for slot in instance.info().slots() {
            if let Some(SubApp::Instance(inner)) = instance.setup.sub_app(slot.name()) {
                self.note_instance(inner);
            }
        }
    }

    /// Checks that there is an app of this name, whether it has run or not.
    pub(super) fn must_know(&self, name: &str) -> Result<(), Error> {
        let known = self.catalog.names();
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        // An app's own name counts, not that it is registered by.
        let known = match self.apps.instance(name) {
            Ok(instance) => vec![instance.info().name().to_owned()],
            Err(_) => known,
        };
        Err(Error::unknown_name("this program", "app", name, known))
    }

    /// Why an entry rests on apps that this program does not have so; `None` if it has. Checked once for each entry and
    /// epoch, and each time if the entry rests on files.
    pub(super) fn stale(&self, entry: &Entry) -> Option<String> {
        let epoch = self.epoch();
        if entry.is_checked(epoch) {
            return None;
        }
        let why = self.changed_dependency(&entry.record.dependencies);
        if why.is_none() && !self.rest_on_files(&entry.record.dependencies) {
            entry.set_checked(epoch);
        }
        why
    }

    /// Whether any dependency's identity or defaults change with a file's content: then no epoch tells that it is
    /// current.
    pub(super) fn rest_on_files<'c>(
        &self,
        dependencies: impl IntoIterator<Item = &'c Callee>,
    ) -> bool {
        dependencies.into_iter().any(|callee| match callee {
            Callee::Code { defaults: None, .. } | Callee::Absent { .. } => false,
            Callee::Code { app, .. } => self.catalog.is_volatile(app),
            Callee::Named { name, .. } => self.apps.is_volatile(name),
        })
    }

    /// Why one of these dependencies is not what it was, if one is not. Changed code is named before changed defaults,
    /// since an app's defaults also differ if the code in one of its slots does.
    pub(super) fn changed_dependency<'c>(
        &self,
        dependencies: impl IntoIterator<Item = &'c Callee>,
    ) -> Option<String> {
        let changed = dependencies
            .into_iter()
            .filter_map(|callee| self.changed(callee));
        let first = changed.min_by_key(|(are_defaults, _)| *are_defaults);
        first.map(|(_, why)| why)
    }

    /// Why a dependency is not what it was, and whether only its defaults differ.
    fn changed(&self, callee: &Callee) -> Option<(bool, String)> {
        let why = match callee {
            Callee::Code {
                app,
                code,
                defaults,
            } => return self.catalog.changed(app, code, *defaults),
            Callee::Absent { name } => {
                self.apps.instance(name).ok()?;
                let name = printable(name);
                format!("no app was registered as \"{name}\", and one is now")
            }
            Callee::Named { name, id } => {
                let now = self.apps.find(self, name, &mut Vec::new());
                let name = printable(name);
                match now {
                    Ok(now) if now.id() == *id => return None,
                    Ok(_) => format!(
                        "it ran the app registered as \"{name}\", which is set up otherwise now"
                    ),
                    Err(error) => format!("it ran the app registered as \"{name}\": {error:#}"),
                }
            }
        };
        Some((false, why))
    }
}
