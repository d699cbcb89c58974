//! In what one run is another than an earlier one: why it was computed although something much
//! like it is remembered.
//!
//! "It was not run before" helps nobody whose month-long scan begins again because a tolerance
//! was given as 1e-9 in one script and as 1e-09f32 in the other. Records have a digest and a short
//! text of everything that enters a key, so what differs can be named.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use super::frame::Callee;
use super::identity::{AppId, CodeId};
use super::summary::AppSetup;
use crate::error::printable;
use crate::event::RunId;
use crate::inputs::ValueSummary;
use crate::key::Key;

/// One thing in which a run is another than an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The slots that lead to it; empty if it is of the app itself.
    pub slots: Vec<String>,
    /// What it is.
    pub part: Part,
    /// What it was in the earlier run; `None` if there was no such thing.
    pub earlier: Option<String>,
    /// What it is in the later run; `None` if there is no such thing.
    pub later: Option<String>,
}

/// What may differ between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The app: another name.
    App,
    /// Its version or source.
    Code,
    /// The helper of this path, which counts as the app's code
    /// ([`#[sde::helper]`](macro@crate::helper)).
    Helper(String),
    /// The input of this name.
    Input(String),
    /// The same inputs in another order.
    InputOrder,
    /// The app's own field of this name.
    Field(String),
    /// The parameter of this name.
    Parameter(String),
    /// Whether the slot of this name has anything in it.
    Slot(String),
    /// The app itself, in something that is none of its fields.
    Itself,
    /// The app of this name, which ran beneath: its code, or what the name led to. That is not in
    /// the key; an entry is out of date if it changes.
    Callee(String),
}

impl Part {
    /// What kind of thing it is, in one word: `app`, `version`, `helper`, `input`, `order`, `field`,
    /// `parameter`, `slot`, `itself` or `callee`.
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

    /// Whether it is of the code, and nothing that was given.
    const fn is_code(&self) -> bool {
        matches!(self, Self::Code | Self::Helper(_) | Self::Callee(_))
    }

    /// What it is called, if there may be several of its kind.
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

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.name()) {
            (Self::InputOrder, _) => f.write_str("order of the inputs"),
            (Self::Itself, _) => f.write_str("the app itself"),
            (part, Some(name)) => write!(f, "{} \"{}\"", part.kind(), printable(name)),
            (part, None) => f.write_str(part.kind()),
        }
    }
}

/// `input "basis": "STO-3G" -> "6-31G*"`, on one line, without control characters.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for slot in &self.slots {
            write!(f, "in slot \"{}\": ", printable(slot))?;
        }
        let text = |side: &Option<String>| match side {
            Some(text) => printable(text),
            None => "(nothing)".to_owned(),
        };
        write!(
            f,
            "{}: {} -> {}",
            self.part,
            text(&self.earlier),
            text(&self.later)
        )
    }
}

/// The remembered run that another is most like.
///
/// That is an earlier computation of the same key; else the one from which the fewest inputs and settings differ, whatever was
/// edited; of several the one with the fewest differences, and of these the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearest {
    /// Its key.
    pub key: Key,
    /// The computation.
    pub run: RunId,
    /// When it was made.
    pub made_at: SystemTime,
    /// In what they differ.
    pub differences: Vec<Difference>,
}

impl Nearest {
    /// The less of two is nearer to the run of this key.
    pub(crate) fn rank(&self, key: &Key) -> impl Ord + use<> {
        let given = self.differences.iter().filter(|one| !one.part.is_code());
        let counts = (given.count(), self.differences.len());
        (self.key != *key, counts, Reverse((self.made_at, self.run)))
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

/// What is compared of a run.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) app: &'a str,
    pub(crate) code: &'a CodeId,
    pub(crate) id: &'a AppId,
    pub(crate) setup: &'a AppSetup,
    pub(crate) inputs: &'a [ValueSummary],
}

/// In what the keys of two runs differ.
pub(crate) fn of_keys(then: Compared<'_>, now: Compared<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let sides = [then, now].map(|run| Side {
        app: run.app,
        code: run.code,
        id: run.id,
        setup: run.setup,
    });
    of_apps(&mut found, &mut Vec::new(), sides);
    of_values(&mut found, &[], Part::Input, then.inputs, now.inputs);
    let order = |run: Compared<'_>| {
        let names: Vec<_> = run.inputs.iter().map(|input| &*input.name).collect();
        names.join(", ")
    };
    if found.is_empty() {
        let (then, now) = (Some(order(then)), Some(order(now)));
        push(&mut found, &[], Part::InputOrder, then, now);
    }
    found
}

/// In what two runs differ that ran beneath them.
pub(crate) fn of_callees(then: &[Callee], now: &[Callee]) -> Vec<Difference> {
    let mut found = Vec::new();
    let named = |callees: &[Callee]| -> Vec<_> { callees.iter().map(named_callee).collect() };
    for (name, then, now) in pairs(named(then), named(now)) {
        push(&mut found, &[], Part::Callee(name), then, now);
    }
    found
}

/// One app of two that are compared.
struct Side<'a> {
    app: &'a str,
    code: &'a CodeId,
    id: &'a AppId,
    setup: &'a AppSetup,
}

fn of_apps(found: &mut Vec<Difference>, slots: &mut Vec<String>, [then, now]: [Side<'_>; 2]) {
    if then.id == now.id {
        return;
    }
    let before = found.len();
    push(
        found,
        slots,
        Part::App,
        Some(then.app.to_owned()),
        Some(now.app.to_owned()),
    );
    push(
        found,
        slots,
        Part::Code,
        Some(own_code(&then)),
        Some(own_code(&now)),
    );
    of_values(
        found,
        slots,
        Part::Helper,
        &then.setup.helpers,
        &now.setup.helpers,
    );
    of_values(
        found,
        slots,
        Part::Field,
        &then.setup.fields,
        &now.setup.fields,
    );
    of_values(
        found,
        slots,
        Part::Parameter,
        &then.setup.parameters,
        &now.setup.parameters,
    );
    let named = |setup: &AppSetup| -> Vec<_> {
        let slots = setup.slots.iter();
        slots
            .map(|one| (one.slot.clone(), one.app.to_string()))
            .collect()
    };
    let both = |name: &str| {
        let find = |setup: &'_ AppSetup| setup.slots.iter().find(|one| one.slot == name).cloned();
        Some((find(then.setup)?, find(now.setup)?))
    };
    for (name, app_then, app_now) in pairs(named(then.setup), named(now.setup)) {
        match both(&name) {
            None => push(found, slots, Part::Slot(name), app_then, app_now),
            Some((then, now)) => {
                slots.push(name);
                let sides = [&then, &now].map(|one| Side {
                    app: &one.app,
                    code: &one.code,
                    id: &one.id,
                    setup: &one.setup,
                });
                of_apps(found, slots, sides);
                slots.pop();
            }
        }
    }
    if found.len() == before {
        let unseen = |side: &Side<'_>| {
            Some(format!(
                "{} ({})",
                side.setup.short,
                Digest(side.id.as_bytes())
            ))
        };
        push(found, slots, Part::Itself, unseen(&then), unseen(&now));
    }
}

/// Its version or source, without its helpers.
fn own_code(side: &Side<'_>) -> String {
    match side.setup.source {
        Some(own) => code(&CodeId::Source(own)),
        None => code(side.code),
    }
}

fn of_values(
    found: &mut Vec<Difference>,
    slots: &[String],
    part: impl Fn(String) -> Part,
    then: &[ValueSummary],
    now: &[ValueSummary],
) {
    let named = |values: &[ValueSummary]| -> Vec<_> {
        values
            .iter()
            .map(|value| (value.name.clone(), value.clone()))
            .collect()
    };
    for (name, then, now) in pairs(named(then), named(now)) {
        if then.as_ref().map(|value| value.digest) == now.as_ref().map(|value| value.digest) {
            continue;
        }
        // What reads the same differs in what was cut off, or in its type.
        let alike = match (&then, &now) {
            (Some(then), Some(now)) => then.short == now.short,
            _ => false,
        };
        let text = |value: ValueSummary| match alike {
            true => format!("{} ({})", value.short, Digest(value.digest.as_bytes())),
            false => value.short,
        };
        push(found, slots, part(name), then.map(text), now.map(text));
    }
}

/// Notes a difference, if it is one.
fn push(
    found: &mut Vec<Difference>,
    slots: &[String],
    part: Part,
    earlier: Option<String>,
    later: Option<String>,
) {
    if earlier != later {
        found.push(Difference {
            slots: slots.to_vec(),
            part,
            earlier,
            later,
        });
    }
}

/// What has one name on both sides, in the order of the later side, then what only the earlier has.
fn pairs<T>(
    then: impl IntoIterator<Item = (String, T)>,
    now: impl IntoIterator<Item = (String, T)>,
) -> Vec<(String, Option<T>, Option<T>)> {
    let mut then: BTreeMap<String, T> = then.into_iter().collect();
    let mut both: Vec<_> = now
        .into_iter()
        .map(|(name, now)| {
            let then = then.remove(&name);
            (name, then, Some(now))
        })
        .collect();
    both.extend(
        then.into_iter()
            .map(|(name, then)| (name, Some(then), None)),
    );
    both
}

fn code(code: &CodeId) -> String {
    match code {
        CodeId::Version(version) => format!("\"{version}\""),
        CodeId::Source(_) => code.to_string(),
    }
}

/// What a run rested on: its name, and a text that differs if it does.
fn named_callee(callee: &Callee) -> (String, String) {
    match callee {
        Callee::Code {
            app,
            code: of,
            defaults,
        } => {
            let defaults = defaults.map(|all| format!(", defaults {}", Digest(all.as_bytes())));
            let text = format!("{}{}", code(of), defaults.unwrap_or_default());
            (app.to_string(), text)
        }
        Callee::Absent { name } => (name.to_string(), "not registered".to_owned()),
        Callee::Named { name, id } => (
            name.to_string(),
            format!("set up as {}", Digest(id.as_bytes())),
        ),
    }
}

/// The first digits of a digest.
struct Digest<'a>(&'a [u8; 32]);

impl fmt::Display for Digest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("digest ")?;
        self.0[..6]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
