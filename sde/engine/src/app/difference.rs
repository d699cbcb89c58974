//! How one run differs from an earlier one: why it was computed although a similar one is remembered.
//!
//! "It was not run before" does not help a user whose month-long scan begins again. A tolerance may be 1e-9 in one
//! script and 1e-09f32 in the other. Records have a digest and a short text of each part of a key, so differing parts
//! can be named.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use super::dependencies::Callee;
use super::identity::{AppId, CodeId};
use super::summary::{AppSetup, SlotSummary};
use crate::error::printable;
use crate::event::RunId;
use crate::inputs::ValueSummary;
use crate::key::{Digest, Key};

/// One difference of a run from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The slots that lead to the part; empty if it is of the app itself.
    pub slots: Vec<String>,
    /// The part that differs.
    pub part: Changed,
    /// The text of both, where they read the same: one file with two contents, a long value of which the text is cut
    /// off, a number of another type. Then the other texts are their digests.
    pub same: Option<String>,
    /// The part in the earlier run; `None` if that had none.
    pub earlier: Option<String>,
    /// The part in the later run; `None` if that has none.
    pub later: Option<String>,
}

/// A part in which two runs may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed {
    /// The app: another name.
    App,
    /// The app's version or source changed.
    Code,
    /// The helper of this path, which counts as the app's code ([`#[sde::helper]`](macro@crate::helper)). `use NAME`,
    /// after the path of the helper that has the name, stands for the helper that the compiler finds by NAME.
    Helper(String),
    /// The input of this name.
    Input(String),
    /// The order of the inputs; the inputs are equal.
    InputOrder,
    /// The app's own field of this name.
    Field(String),
    /// The parameter of this name.
    Parameter(String),
    /// The slot of this name, which is empty in one of the runs.
    Slot(String),
    /// The app itself, in something that is none of its fields.
    Itself,
    /// The app of this name, called by the run: its code, or the app that the name led to. It is not in the key; an
    /// entry is out of date if it changes.
    Callee(String),
}

impl Changed {
    /// The kind of the part in one word: `app`, `version`, `helper`, `input`, `order`, `field`, `parameter`, `slot`,
    /// `itself` or `callee`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Code => "version",
            Self::Helper(_) => "helper",
            Self::Input(_) => "input",
            Self::InputOrder => "order",
            Self::Field(_) => "field",
            Self::Parameter(_) => "parameter",
            Self::Slot(_) => "slot",
            Self::Itself => "itself",
            Self::Callee(_) => "callee",
        }
    }

    /// Whether the part is code, not an input or a setting.
    const fn is_code(&self) -> bool {
        matches!(self, Self::Code | Self::Helper(_) | Self::Callee(_))
    }

    /// Whether the part is a file that was given to a command: `./` and its path there.
    fn is_file(&self) -> bool {
        matches!(self, Self::Input(name) if name.starts_with("./"))
    }

    /// The name of the part, if a run may have several of its kind.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Helper(name)
            | Self::Input(name)
            | Self::Field(name)
            | Self::Parameter(name)
            | Self::Slot(name)
            | Self::Callee(name) => Some(name),
            Self::App | Self::Code | Self::InputOrder | Self::Itself => None,
        }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.name()) {
            (Self::InputOrder, _) => f.write_str("order of the inputs"),
            (Self::Itself, _) => f.write_str("the app itself"),
            (part, Some(name)) => write!(f, "{} \"{}\"", part.kind(), printable(name)),
            (part, None) => f.write_str(part.kind()),
        }
    }
}

/// `input "basis": "STO-3G" -> "6-31G*"`, on one line, without control characters. Of what reads the same:
/// `input "molecule": content of "water.xyz" changed, digest 5c2f6f1d2a3b -> digest 77a05c3c94d1`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for slot in &self.slots {
            write!(f, "in slot \"{}\": ", printable(slot))?;
        }
        let text = |side: &Option<String>| match side {
            Some(text) => printable(text),
            None => "(nothing)".to_owned(),
        };
        let (earlier, later) = (text(&self.earlier), text(&self.later));
        write!(f, "{}: ", self.part)?;
        if let Some(same) = &self.same {
            write!(f, "{} changed, ", printable(same))?;
        }
        write!(f, "{earlier} -> {later}")
    }
}

/// The remembered run that a given run is most like.
///
/// That is the first of these that there is:
///
/// 1. an earlier computation of the same key;
/// 2. a run of equal inputs and settings, under other code;
/// 3. a run from which one thing differs that reads the same: a file with another content;
/// 4. the run that differs in the fewest inputs and settings.
///
/// Of several it is the one with the fewest differences, edits of code included; of these the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearest {
    /// The earlier run's key.
    pub key: Key,
    /// The computation.
    pub run: RunId,
    /// When it was made.
    pub made_at: SystemTime,
    /// The differences between the two runs.
    pub differences: Vec<Difference>,
}

impl Nearest {
    /// The order of nearness to the run of this key; the least is the nearest.
    pub(crate) fn rank(&self, key: &Key) -> impl Ord + use<> {
        let given = self.differences.iter().filter(|one| !one.part.is_code());
        let given: Vec<_> = given.collect();
        let far = match &given[..] {
            [] => 0,
            [only] if only.same.is_some() || only.part.is_file() => 1,
            more => 1 + more.len(),
        };
        let latest = Reverse((self.made_at, self.run));
        (self.key != *key, far, self.differences.len(), latest)
    }
}

/// `most like [5c2f6f1d2a3b] but for input "basis": "STO-3G" -> "6-31G*"`, on one line.
impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differences = self.differences.iter().map(ToString::to_string);
        let differences = differences.collect::<Vec<_>>().join("; ");
        write!(f, "most like [{}] but for {differences}", self.key.short())
    }
}

/// The compared parts of a run, or of an app in a slot, which has no inputs.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) app: &'a str,
    pub(crate) code: &'a CodeId,
    pub(crate) id: &'a AppId,
    pub(crate) setup: &'a AppSetup,
    pub(crate) inputs: &'a [ValueSummary],
}

/// How the keys of two runs differ.
pub(crate) fn of_keys(then: Compared<'_>, now: Compared<'_>) -> Vec<Difference> {
    let mut all = Differences::default();
    all.apps(then, now);
    all.values(Changed::Input, then.inputs, now.inputs);
    if all.found.is_empty() {
        let order = |run: Compared<'_>| {
            let names: Vec<_> = run.inputs.iter().map(|input| &*input.name).collect();
            Some(names.join(", "))
        };
        all.push(Changed::InputOrder, order(then), order(now));
    }
    all.found
}

/// How the dependencies of two runs differ.
pub(crate) fn of_callees(then: &[Callee], now: &[Callee]) -> Vec<Difference> {
    let mut all = Differences::default();
    for (name, then, now) in pairs(then.iter().map(named_callee), now.iter().map(named_callee)) {
        all.push(Changed::Callee(name), then, now);
    }
    all.found
}

/// The differences found so far, and the slots that lead to the app being compared.
#[derive(Default)]
struct Differences {
    found: Vec<Difference>,
    slots: Vec<String>,
}

impl Differences {
    /// Compares two apps with the apps in their slots.
    fn apps(&mut self, then: Compared<'_>, now: Compared<'_>) {
        if then.id == now.id {
            return;
        }
        let before = self.found.len();
        let name = |app: &Compared<'_>| Some(app.app.to_owned());
        self.push(Changed::App, name(&then), name(&now));
        self.push(Changed::Code, own_code(&then), own_code(&now));
        let (setup, later) = (then.setup, now.setup);
        self.values(Changed::Helper, &setup.helpers, &later.helpers);
        self.values(Changed::Field, &setup.fields, &later.fields);
        self.values(Changed::Parameter, &setup.parameters, &later.parameters);
        for (name, then, now) in pairs(named_slots(setup), named_slots(later)) {
            if let (Some(then), Some(now)) = (then, now) {
                self.slots.push(name);
                self.apps(then.into(), now.into());
                self.slots.pop();
            } else {
                let app = |slot: Option<&SlotSummary>| slot.map(|slot| slot.app.to_string());
                self.push(Changed::Slot(name), app(then), app(now));
            }
        }
        if self.found.len() == before {
            let unseen = |app: &Compared<'_>| {
                let (short, id) = (&app.setup.short, digest(&app.id.0));
                Some(format!("{short} ({id})"))
            };
            self.push(Changed::Itself, unseen(&then), unseen(&now));
        }
    }

    fn values(
        &mut self,
        part: impl Fn(String) -> Changed,
        then: &[ValueSummary],
        now: &[ValueSummary],
    ) {
        for (name, then, now) in pairs(named_values(then), named_values(now)) {
            if then.map(|value| value.digest) == now.map(|value| value.digest) {
                continue;
            }
            // Equal short texts differ in the part that was cut off, in the type, or in a file's content.
            let same = then.zip(now).filter(|(then, now)| then.short == now.short);
            let text = |value: &ValueSummary| match same {
                Some(_) => digest(&value.digest),
                None => value.short.clone(),
            };
            self.push(part(name), then.map(text), now.map(text));
            if let (Some((then, _)), Some(noted)) = (same, self.found.last_mut()) {
                noted.same = Some(then.short.clone());
            }
        }
    }

    /// Notes a difference, if it is one.
    fn push(&mut self, part: Changed, earlier: Option<String>, later: Option<String>) {
        if earlier != later {
            self.found.push(Difference {
                slots: self.slots.clone(),
                part,
                same: None,
                earlier,
                later,
            });
        }
    }
}

impl<'a> From<&'a SlotSummary> for Compared<'a> {
    fn from(slot: &'a SlotSummary) -> Self {
        Self {
            app: &slot.app,
            code: &slot.code,
            id: &slot.id,
            setup: &slot.setup,
            inputs: &[],
        }
    }
}

fn named_slots(setup: &AppSetup) -> impl Iterator<Item = (String, &SlotSummary)> {
    setup.slots.iter().map(|one| (one.slot.clone(), one))
}

fn named_values(values: &[ValueSummary]) -> impl Iterator<Item = (String, &ValueSummary)> {
    values.iter().map(|value| (value.name.to_string(), value))
}

/// Its version or source, without its helpers.
fn own_code(app: &Compared<'_>) -> Option<String> {
    Some(match app.setup.source {
        Some(own) => code(&CodeId::Source(own)),
        None => code(app.code),
    })
}

/// Pairs items by name, in the order of the later side; items that only the earlier side has come last.
fn pairs<T>(
    then: impl IntoIterator<Item = (String, T)>,
    now: impl IntoIterator<Item = (String, T)>,
) -> Vec<(String, Option<T>, Option<T>)> {
    let mut then: BTreeMap<String, T> = then.into_iter().collect();
    let pair = |(name, now)| {
        let then = then.remove(&name);
        (name, then, Some(now))
    };
    let mut both: Vec<_> = now.into_iter().map(pair).collect();
    let only_then = then.into_iter();
    both.extend(only_then.map(|(name, then)| (name, Some(then), None)));
    both
}

fn code(code: &CodeId) -> String {
    match code {
        CodeId::Version(version) => format!("\"{version}\""),
        CodeId::Source(_) => code.to_string(),
    }
}

/// A dependency as its name and a text that tells it from others.
fn named_callee(callee: &Callee) -> (String, String) {
    match callee {
        Callee::Code {
            app,
            code: of,
            defaults,
        } => {
            let defaults = defaults.map(|all| format!(", defaults {}", digest(&all)));
            let text = format!("{}{}", code(of), defaults.unwrap_or_default());
            (app.to_string(), text)
        }
        Callee::Absent { name } => (name.to_string(), "not registered".to_owned()),
        Callee::Named { name, id } => (name.to_string(), format!("set up as {}", digest(&id.0))),
    }
}

fn digest(digest: &Digest) -> String {
    format!("digest {}", digest.short())
}
