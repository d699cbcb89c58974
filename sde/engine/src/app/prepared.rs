//! Instances that are checked, identified and immutable.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::defaults::Defaults;
use super::definition::App;
use super::dependencies::Callee;
use super::identity::{AppId, CodeId};
use super::info::AppInfo;
use super::instance::Instance;
use super::linked::{TypeIndex, clash};
use super::setup::Setup;
use super::slot::SubApp;
use super::summary::AppSetup;
use crate::error::{Error, ErrorKind, join_names};
use crate::key::{Digest, FingerprintError, Volatile, with_encoder};
use crate::result_map::ResultSpec;

/// An app that is ready to run: checked, identified, immutable.
///
/// Running an app by value identifies it each time, which costs some microseconds; preparing it once saves that. An app
/// with an [`InputFile`](crate::InputFile) or a [`BySerde`](crate::key::BySerde) among its settings is identified anew
/// for each run even so.
/// Made by [`Handle::prepare`](crate::Handle::prepare).
#[derive(Clone)]
pub struct Prepared {
    pub(crate) app: Arc<dyn App>,
    pub(crate) resolved: Arc<ResolvedApp>,
}

impl Prepared {
    /// The identity that enters the key of each run. With a file among the settings, it is the identity at the time of
    /// preparing.
    #[must_use]
    pub fn id(&self) -> AppId {
        self.resolved.id
    }

    /// The description of the app.
    #[must_use]
    pub fn info(&self) -> &AppInfo {
        &self.resolved.info
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({} {})", self.resolved.name, self.resolved.id)
    }
}

impl fmt::Debug for ResolvedApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResolvedApp({} {})", self.name, self.id)
    }
}

/// Sorted by name, the order in which items enter an identity.
type ByName<T> = BTreeMap<Cow<'static, str>, T>;

/// All that the engine needs to know of an app and its settings.
#[doc(hidden)]
pub struct ResolvedApp {
    pub(crate) info: Arc<AppInfo>,
    pub(crate) name: Arc<str>,
    pub(crate) id: AppId,
    /// The number of the cache of its entries.
    pub(crate) type_index: TypeIndex,
    pub(crate) settings: Setup,
    pub(crate) sub_apps: ByName<Prepared>,
    /// The registered names in its slots, at every depth, and the identities they led to.
    pub(crate) registered: BTreeMap<String, AppId>,
    /// The digest of its declared defaults, whatever was set.
    pub(crate) defaults: Option<Digest>,
    /// The code of this app and of all in its slots, at every depth.
    pub(crate) codes: BTreeSet<Callee>,
    /// Whether it, or any app in its slots, is non-deterministic.
    pub(crate) nondeterministic: bool,
    /// The app that makes this one collective: itself, or one in its slots, at any depth.
    distributed: Option<Arc<str>>,
    /// Everything missing before it can run, in its slots too.
    pub(crate) missing: Vec<String>,
    /// The parts of its identity that may change while the app is held, those of the apps in its slots included: the
    /// identity holds only while each file keeps its content.
    pub(crate) volatile: Option<Volatile>,
    /// The setup that records keep, made when a run misses.
    setup: OnceLock<Arc<AppSetup>>,
}

/// Finds the app registered under a name. The path has the names that led there, to detect cycles.
pub(crate) type FindNamed<'a> = dyn Fn(&str, &mut Vec<String>) -> Result<Prepared, Error> + 'a;

impl ResolvedApp {
    /// Resolves an app with its settings and all its slots.
    pub(crate) fn of(
        app: &dyn App,
        settings: Setup,
        find_named: &FindNamed<'_>,
        path: &mut Vec<String>,
    ) -> Result<Arc<Self>, Error> {
        settings.verify_all()?;
        let info = Arc::clone(&settings.info);
        let name = settings.name();
        if let Some(places) = clash(&info) {
            let why = format!(
                "several functions are the app, and each could be given the results of the others: {}; give each a name of its own, `#[sde::app(name = \"..\")]`",
                join_names(places)
            );
            let name = name.to_string();
            return Err(ErrorKind::NameTaken { name, why }.into());
        }
        let sub_apps = resolve_slots(&settings, find_named, path)?;
        let identified = identify(app, &settings, &sub_apps);
        let (id, seen) = identified.map_err(|source| ErrorKind::Fingerprint {
            app: Arc::clone(&name),
            source,
        })?;
        let defaults = Defaults::of(&info).digest;
        let mut codes = BTreeSet::from([Callee::Code {
            app: Arc::clone(&name),
            code: info.code.clone(),
            defaults,
        }]);
        let mut in_slots = sub_apps.values().map(|sub| &*sub.resolved);
        codes.extend(in_slots.clone().flat_map(|sub| sub.codes.iter().cloned()));
        Ok(Arc::new(Self {
            registered: registered(&settings, &sub_apps),
            type_index: TypeIndex::of(&name),
            nondeterministic: info.nondeterministic
                || in_slots.clone().any(|sub| sub.nondeterministic),
            distributed: if info.distributed {
                Some(Arc::clone(&name))
            } else {
                in_slots.find_map(|sub| sub.distributed.clone())
            },
            missing: missing(app, &settings, &sub_apps),
            volatile: volatile(seen, &sub_apps),
            info,
            name,
            id,
            settings,
            sub_apps,
            defaults,
            codes,
            setup: OnceLock::new(),
        }))
    }

    /// The setup of the app for records. `app` must be the resolved app.
    pub(crate) fn setup(&self, app: &dyn App) -> &Arc<AppSetup> {
        // Outside the cell: describing a setting is code of users.
        let make = || Arc::new(AppSetup::of(app, self));
        self.setup.get().unwrap_or_else(|| {
            let made = make();
            self.setup.get_or_init(|| made)
        })
    }

    /// Whether the app is collective.
    #[inline]
    pub(crate) fn is_distributed(&self) -> bool {
        self.distributed.is_some()
    }

    /// Why the app is collective, for messages.
    pub(crate) fn why_distributed(&self) -> String {
        match &self.distributed {
            Some(by) if *by != self.name => format!("has the distributed {by} in its slots"),
            _ => "is `distributed`".to_owned(),
        }
    }

    pub(crate) fn result(&self, name: &str) -> Option<&ResultSpec> {
        let mut results = self.info.results.iter();
        results.find(|spec| spec.name == name).map(Arc::as_ref)
    }
}

pub(crate) fn prepare(
    instance: &Instance,
    find_named: &FindNamed<'_>,
    path: &mut Vec<String>,
) -> Result<Prepared, Error> {
    Ok(Prepared {
        app: Arc::clone(&instance.app),
        resolved: ResolvedApp::of(&*instance.app, instance.setup.clone(), find_named, path)?,
    })
}

fn resolve_slots(
    setup: &Setup,
    find_named: &FindNamed<'_>,
    path: &mut Vec<String>,
) -> Result<ByName<Prepared>, Error> {
    let mut resolved = BTreeMap::new();
    for slot in &setup.info.slots {
        let sub_app = match setup.sub_app(&slot.name) {
            None => continue,
            Some(SubApp::Instance(inner)) => prepare(inner, find_named, path)?,
            Some(SubApp::Named(name)) => find_named(name, path)?,
        };
        resolved.insert(slot.name.clone(), sub_app);
    }
    Ok(resolved)
}

/// The registered names in the slots, at every depth, and the identities they led to.
fn registered(setup: &Setup, sub_apps: &ByName<Prepared>) -> BTreeMap<String, AppId> {
    let in_slots = setup.info.slots.iter();
    let own = in_slots.filter_map(|slot| match setup.sub_app(&slot.name) {
        Some(SubApp::Named(name)) => Some((name.to_string(), sub_apps.get(&slot.name)?.id())),
        _ => None,
    });
    let deeper = sub_apps.values().flat_map(|sub| &sub.resolved.registered);
    own.chain(deeper.map(|(name, id)| (name.clone(), *id)))
        .collect()
}

fn missing(app: &dyn App, setup: &Setup, sub_apps: &ByName<Prepared>) -> Vec<String> {
    let mut missing = app.not_ready();
    for parameter in &setup.info.parameters {
        if setup.setting(&parameter.name).is_none() {
            missing.push(format!(
                "parameter \"{}\" ({}) has no default and is not set",
                parameter.name, parameter.type_name
            ));
        }
    }
    for slot in &setup.info.slots {
        match sub_apps.get(&slot.name) {
            None => missing.push(format!("sub-app slot \"{}\" is empty", slot.name)),
            Some(sub_app) => {
                let app = &sub_app.resolved;
                let what = app.missing.iter();
                let in_slot = |what| format!("{} in slot \"{}\": {what}", app.name, slot.name);
                missing.extend(what.map(in_slot));
            }
        }
    }
    missing
}

/// The digest of all that makes one app's runs differ from another's.
fn identify(
    app: &dyn App,
    settings: &Setup,
    sub_apps: &ByName<Prepared>,
) -> Result<(AppId, Option<Box<Volatile>>), FingerprintError> {
    let info = &settings.info;
    let in_key = info.parameters.iter().filter(|p| !p.transparent);
    let in_key: BTreeMap<_, _> = in_key
        .filter_map(|p| Some((&*p.name, settings.setting(&p.name)?)))
        .collect();
    with_encoder(|to| {
        to.named("name", &*info.name)?;
        match &info.code {
            CodeId::Version(version) => to.named("version", &**version)?,
            CodeId::Source(digest) => to.named("source", digest.as_bytes())?,
        }
        to.named("fields", app)?;
        for (name, setting) in in_key {
            to.value("parameter")?;
            to.value(name)?;
            to.value(&*setting.value)?;
        }
        for (slot, sub_app) in sub_apps {
            to.value("sub-app")?;
            to.named(slot, sub_app.resolved.id.as_bytes())?;
        }
        Ok((AppId(to.digest()?), to.take_volatile()))
    })
}

/// The parts of an identity that may change, with those of all slots.
fn volatile(own: Option<Box<Volatile>>, sub_apps: &ByName<Prepared>) -> Option<Volatile> {
    let in_slots = sub_apps.values();
    let all = in_slots.filter_map(|sub| sub.resolved.volatile.as_ref());
    all.chain(own.as_deref()).fold(None, |seen, next| {
        let mut seen = seen.unwrap_or_default();
        seen.add(next);
        Some(seen)
    })
}

/// An `#[sde::app]` function, which has neither settings nor slots: resolved at its first call.
#[doc(hidden)]
pub type ResolvedOnce = OnceLock<Arc<ResolvedApp>>;
