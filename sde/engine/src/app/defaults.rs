//! The defaults of an app.
//!
//! A run that calls an app by value gets its default parameters and sub-apps. Neither the caller's key nor the app's
//! version has them, so an edited default makes results of the callers wrong. Therefore dependencies have a digest of
//! the defaults beside the code. It is made from the description alone, and so also for an app that this program has
//! linked and not run.
//!
//! Settings made by the caller are in the caller's code. The digest has all defaults, those that the caller replaced
//! too: editing one of these costs an unneeded run, never a wrong result.

use std::collections::BTreeMap;

use super::identity::CodeId;
use super::info::AppInfo;
use super::instance::Instance;
use super::parameter::{Parameter, Setting};
use super::slot::SubApp;
use crate::key::{Digest, Encoder, FingerprintError, Volatile, with_encoder};

/// Marks of a part that is absent or has no key, or whose value or name follows.
const ABSENT: u8 = 0;
const UNKEYED: u8 = 1;
const VALUE: u8 = 2;
const NAME: u8 = 3;

/// The digest of an app's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// `None` if there are no defaults that can change a result.
    pub(crate) digest: Option<Digest>,
    /// Whether a file is among them, whose content may change.
    pub(crate) volatile: bool,
}

/// A digest, and the files that it was made from.
type Noted = (Digest, Option<Box<Volatile>>);

impl Defaults {
    pub(crate) fn of(info: &AppInfo) -> Self {
        if info.slots.is_empty() && !info.parameters.iter().any(matters) {
            return Self::default();
        }
        let default = |slot: &str| info.slots.iter().find(|s| s.name == slot)?.default.as_ref();
        let noted = noted(|to| write(info, |p| p.default.as_ref(), default, to));
        // The fallback is never used: numbers and names have keys, and a part without a key is written as such.
        let (digest, files) = noted.unwrap_or((Digest::from_bytes([0; 32]), None));
        Self {
            digest: Some(digest),
            volatile: files.is_some(),
        }
    }
}

/// Writes parameters and slots sorted by name, so the order of declaration does not matter.
fn write<'a>(
    info: &'a AppInfo,
    setting: impl Fn(&'a Parameter) -> Option<&'a Setting>,
    sub_app: impl Fn(&str) -> Option<&'a SubApp>,
    to: &mut Encoder<'_>,
) -> Result<(), FingerprintError> {
    let parameters = info.parameters.iter().filter(|p| matters(p));
    let parameters: BTreeMap<_, _> = parameters.map(|p| (&*p.name, p)).collect();
    for (name, parameter) in parameters {
        to.named("parameter", name)?;
        match setting(parameter) {
            None => to.value(&ABSENT)?,
            Some(setting) => part(noted(|to| to.value(&*setting.value)), to)?,
        }
    }
    let mut slots: Vec<&str> = info.slots.iter().map(|slot| &*slot.name).collect();
    slots.sort_unstable();
    for slot in slots {
        to.named("slot", slot)?;
        match sub_app(slot) {
            None => to.value(&ABSENT)?,
            Some(SubApp::Instance(instance)) => part(of_instance(instance), to)?,
            Some(SubApp::Named(name)) => {
                to.value(&NAME)?;
                to.value(&**name)?;
            }
        }
    }
    Ok(())
}

/// Writes a part. A part without a key (such as a missing file) is no error here, only for a run that relies on it.
fn part(
    noted: Result<Noted, FingerprintError>,
    to: &mut Encoder<'_>,
) -> Result<(), FingerprintError> {
    let Ok((digest, files)) = noted else {
        to.volatile();
        return to.value(&UNKEYED);
    };
    to.add_volatile(files);
    to.value(&VALUE)?;
    to.value(digest.as_bytes())
}

/// The digest of an app in a slot. Names in its own slots stay names; their targets are noted apart.
fn of_instance(instance: &Instance) -> Result<Noted, FingerprintError> {
    let (setup, info) = (&instance.setup, instance.info());
    noted(|to| {
        to.named("name", info.name())?;
        match info.code() {
            CodeId::Version(version) => to.named("version", &**version)?,
            CodeId::Source(digest) => to.named("source", digest)?,
        }
        to.named("fields", &*instance.app)?;
        write(
            info,
            |p| setup.setting(&p.name),
            |slot| setup.sub_app(slot),
            to,
        )
    })
}

fn noted(
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), FingerprintError>,
) -> Result<Noted, FingerprintError> {
    with_encoder(|to| {
        write(to)?;
        Ok((to.digest()?, to.take_volatile()))
    })
}

fn matters(parameter: &Parameter) -> bool {
    !parameter.transparent
}
