//! What an app does where its caller says nothing.
//!
//! A run that calls an app by value gets its default parameters and what is in its slots by
//! default. None of that is in the caller's key, nor in the app's version: once
//! a default is edited, what the callers remembered is wrong. So what a caller depends on has a digest of
//! the defaults beside the code. It can be made from the description alone, and so for an app that
//! this program has linked and not run.
//!
//! What the caller set itself is in its own code. The digest has all defaults, also those that the
//! caller replaced: to edit one of these costs a run that was not needed, never a wrong result.

use std::collections::BTreeMap;

use super::identity::CodeId;
use super::info::AppInfo;
use super::instance::Instance;
use super::parameter::{Parameter, Setting};
use super::slot::SubApp;
use crate::key::{Digest, Encoder, FingerprintError, Volatile, with_encoder};

/// Said of a part that is not there, that has no key, or that follows.
const ABSENT: u8 = 0;
const UNKEYED: u8 = 1;
const VALUE: u8 = 2;
const NAME: u8 = 3;

/// What an app does where its caller says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// `None` if there are no defaults that can change a result.
    pub(crate) digest: Option<Digest>,
    /// A file is among them, whose content may change.
    pub(crate) volatile: bool,
}

/// A digest, and the files that it was made from.
type Noted = (Digest, Option<Box<Volatile>>);

impl Defaults {
    /// Those of the app that is described.
    pub(crate) fn of(info: &AppInfo) -> Self {
        if info.slots.is_empty() && !info.parameters.iter().any(matters) {
            return Self::default();
        }
        let default = |slot: &str| info.slots.iter().find(|s| s.name == slot)?.default.as_ref();
        let noted = noted(|to| write(info, |p| p.default.as_ref(), default, to));
        // Numbers and names have keys, and what has none is written as such.
        let (digest, files) = noted.unwrap_or((Digest::from_bytes([0; 32]), None));
        Self {
            digest: Some(digest),
            volatile: files.is_some(),
        }
    }
}

/// Writes parameters and slots in the order of their names: the order in which an app declares
/// them changes nothing.
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
            Some(setting) => part(noted(|to| setting.encode(to)), to)?,
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

/// Writes a part. One that has no key (a file that is not there, say) is no error here: it is one
/// for a run that relies on the part.
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

/// An app as it lies in a slot, with names in its own slots left as they are: what they lead to is
/// noted apart.
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
