//! The setup of an app in the record of a run.
//!
//! The identity of an app is one digest: it tells that two runs differ, but not how. So a record also has the parts,
//! each with a short text for people and a digest for whatever the text leaves out.

use std::sync::Arc;

use super::definition::App;
use super::identity::{AppId, CodeId};
use super::parameter::Setting;
use super::prepared::{Prepared, ResolvedApp};
use crate::inputs::ValueSummary;
use crate::key::{Digest, Short, with_encoder};

/// Describes how an app was set up when it ran: its own fields, its parameters, and the apps in its slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct AppSetup {
    /// The app itself in at most some eighty characters.
    #[serde(default)]
    pub short: String,
    /// The app's own fields, as far as its [`Fingerprint`](crate::Fingerprint) describes them as such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<ValueSummary>,
    /// The app's parameters, without the transparent ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ValueSummary>,
    /// The app's transparent parameters, which are not in the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transparent: Vec<ValueSummary>,
    /// The apps in its slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotSummary>,
    /// The helpers that count as its code ([`#[sde::helper]`](macro@crate::helper)), and the targets of names that may
    /// lead elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<ValueSummary>,
    /// The digest of its own source, if helpers count besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// The authors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The works to cite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<String>,
}

/// The app in one slot of another.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SlotSummary {
    /// The slot's name.
    pub slot: String,
    /// The app.
    pub app: Arc<str>,
    /// The app's version or source digest.
    pub code: CodeId,
    /// The app's identity with all its settings.
    pub id: AppId,
    /// The app's fields, parameters and sub-apps.
    pub setup: Arc<AppSetup>,
}

impl AppSetup {
    pub(super) fn of(app: &dyn App, resolved: &ResolvedApp) -> Self {
        let (short, mut fields) = Short::with_fields(app, true);
        // The variant of an app that is an enum.
        fields.retain(|field| !field.name.is_empty());
        let mut setup = Self {
            short,
            fields,
            authors: resolved.info.authors().map(str::to_owned).collect(),
            citations: resolved.info.citations().map(str::to_owned).collect(),
            ..Self::default()
        };
        if let Some(source) = resolved.info.source {
            let (helpers, own) = source.helpers();
            setup.helpers = helpers.to_vec();
            setup.source = own;
        }
        let info = &resolved.info;
        setup.helpers.extend(info.helpers.iter().cloned());
        setup.source = setup.source.or_else(|| info.own_digest());
        for declared in &resolved.info.parameters {
            let Some(setting) = resolved.settings.setting(&declared.name) else {
                continue;
            };
            match declared.transparent {
                false => &mut setup.parameters,
                true => &mut setup.transparent,
            }
            .push(of_setting(&declared.name, setting));
        }
        let slots = resolved.sub_apps.iter();
        setup.slots = slots.map(|(slot, app)| in_slot(slot, app)).collect();
        setup
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        let summaries = [
            &self.fields,
            &self.parameters,
            &self.transparent,
            &self.helpers,
        ];
        let summary = |one: &ValueSummary| size_of_val(one) + one.owned();
        let slot = |one: &SlotSummary| size_of_val(one) + one.slot.len() + one.setup.memory();
        size_of::<Self>()
            + self.short.len()
            + summaries.into_iter().flatten().map(summary).sum::<usize>()
            + self.slots.iter().map(slot).sum::<usize>()
    }
}

fn of_setting(name: &str, setting: &Setting) -> ValueSummary {
    let digest = with_encoder(|to| {
        to.value(&*setting.value)?;
        to.digest()
    });
    let (short, fields) = Short::with_fields(&*setting.value, false);
    ValueSummary {
        name: name.to_owned().into(),
        short,
        fields: fields.into(),
        digest: digest.unwrap_or(Digest::from_bytes([0; 32])),
        scalar: setting.value.to_scalar(),
    }
}

fn in_slot(slot: &str, sub_app: &Prepared) -> SlotSummary {
    let resolved = &sub_app.resolved;
    SlotSummary {
        slot: slot.to_owned(),
        app: Arc::clone(&resolved.name),
        code: resolved.info.code.clone(),
        id: resolved.id,
        setup: Arc::clone(resolved.setup(&*sub_app.app)),
    }
}
