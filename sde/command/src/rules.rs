//! What makes a run a success, and which values it gave.

use std::fmt;
use std::str::FromStr;

use regex::bytes::Regex;
use thiserror::Error;

/// The rules by which a run is judged: at each call, whenever it was made. They are in no key.
///
/// A run passes if its exit status is one of [`ok_status`](Self::ok_status) (0, unless it is said), each `require`
/// matches, no `reject` does, and each value that is not optional is found. Expressions are those of the crate `regex`,
/// and are matched line by line. They are looked for in the standard output, then the standard error; one that begins
/// with the name of a declared output and a colon is looked for in that file.
///
/// ```
/// use sde_command::Rules;
///
/// let mut rules = Rules::new();
/// rules.require("normal termination")?;
/// rules.get("energy", r"TOTAL ENERGY +(\S+)")?;
/// assert_eq!(rules.to_string(), "require normal termination\nget energy=TOTAL ENERGY +(\\S+)\n");
/// assert_eq!(rules.to_string().parse::<Rules>()?.to_string(), rules.to_string());
/// assert!(rules.reject("(").is_err());
/// # Ok::<(), sde_command::RuleError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(crate) ok_status: Vec<i32>,
    pub(crate) rules: Vec<Rule>,
    /// Declared outputs that must be written.
    pub(crate) outputs: Vec<String>,
}

/// One rule but that on the status.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) kind: RuleKind,
    /// The expression, with the file before it if there is one, as it was written.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Require,
    Reject,
    Get { name: String, is_optional: bool },
}

/// A rule that makes no sense.
#[derive(Clone, Debug, Error)]
#[error("{rule}: {why}")]
pub struct RuleError {
    pub(crate) rule: String,
    pub(crate) why: String,
}

impl Rules {
    /// No rule but that the status is 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a status with which a run passes. With one given, 0 is one only if it is given too.
    pub fn ok_status(&mut self, status: i32) {
        self.ok_status.push(status);
        self.ok_status.sort_unstable();
        self.ok_status.dedup();
    }

    /// Demands that an expression matches a line.
    ///
    /// # Errors
    /// If it is no regular expression.
    pub fn require(&mut self, expression: &str) -> Result<(), RuleError> {
        self.add(RuleKind::Require, expression)
    }

    /// Demands that an expression matches no line.
    ///
    /// # Errors
    /// If it is no regular expression.
    pub fn reject(&mut self, expression: &str) -> Result<(), RuleError> {
        self.add(RuleKind::Reject, expression)
    }

    /// Takes a value out of what the run wrote: the first group, or else the whole, of the last match. It is a number if it
    /// reads as one, and else a text. A name that begins with `?` may have none; for others none is a failure.
    ///
    /// # Errors
    /// If it is no regular expression, or the name is empty, has a `=` or is given already.
    pub fn get(&mut self, name: &str, expression: &str) -> Result<(), RuleError> {
        let (name, is_optional) = match name.strip_prefix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let refused = |why: &str| RuleError {
            rule: format!("get {name}"),
            why: why.to_owned(),
        };
        if ["status", "command", "key"].contains(&name) {
            return Err(refused("a table has a column of that name; choose another"));
        }
        if name.is_empty() || name.contains(['=', '\n']) {
            return Err(refused("the value needs a name without `=`"));
        }
        if self.values().any(|there| there == name) {
            return Err(refused("another value has this name"));
        }
        let name = name.to_owned();
        self.add(RuleKind::Get { name, is_optional }, expression)
    }

    /// The names of the values that it takes.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| match &rule.kind {
            RuleKind::Get { name, .. } => Some(&**name),
            _ => None,
        })
    }

    /// Whether there is no rule but that the status is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ok_status.is_empty() && self.rules.is_empty() && self.outputs.is_empty()
    }

    fn add(&mut self, kind: RuleKind, text: &str) -> Result<(), RuleError> {
        let rule = Rule {
            kind,
            text: text.to_owned(),
        };
        let refused = |why: String| RuleError {
            rule: rule.to_string(),
            why,
        };
        if text.contains('\n') {
            return Err(refused(
                "an expression is matched with single lines, so it has none".into(),
            ));
        }
        // What stands before a colon may be the name of a file, which only the command knows.
        Regex::new(text).map_err(|error| refused(error.to_string()))?;
        self.rules.push(rule);
        Ok(())
    }

    /// Demands that each of these outputs is written, if it was declared.
    pub(crate) fn outputs<'a>(mut self, outputs: impl Iterator<Item = &'a str>) -> Self {
        self.outputs.extend(outputs.map(str::to_owned));
        self
    }

    pub(crate) fn passes_with(&self, status: i32) -> bool {
        match &self.ok_status[..] {
            [] => status == 0,
            statuses => statuses.contains(&status),
        }
    }
}

impl Rule {
    /// The output that it looks at, if it is one of these, and the expression.
    pub(crate) fn split(&self, is_output: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
        match self.text.split_once(':') {
            Some((file, expression)) if is_output(file) => (Some(file), expression),
            _ => (None, &self.text),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            RuleKind::Require => write!(f, "require {}", self.text),
            RuleKind::Reject => write!(f, "reject {}", self.text),
            RuleKind::Get { name, is_optional } => {
                let mark = if *is_optional { "?" } else { "" };
                write!(f, "get {mark}{name}={}", self.text)
            }
        }
    }
}

/// A line for each rule, which [`FromStr`] reads.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.ok_status.iter();
        statuses
            .into_iter()
            .try_for_each(|status| writeln!(f, "ok-status {status}"))?;
        let outputs = self.outputs.iter();
        outputs
            .into_iter()
            .try_for_each(|output| writeln!(f, "output {output}"))?;
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl FromStr for Rules {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut rules = Self::new();
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            let unknown = || RuleError {
                rule: line.to_owned(),
                why: "this is no rule".to_owned(),
            };
            match line.split_once(' ').ok_or_else(unknown)? {
                ("ok-status", status) => {
                    rules.ok_status(status.parse().map_err(|_| unknown())?);
                }
                ("output", output) => rules = rules.outputs(std::iter::once(output)),
                ("require", expression) => rules.require(expression)?,
                ("reject", expression) => rules.reject(expression)?,
                ("get", rule) => {
                    let (name, expression) = rule.split_once('=').ok_or_else(unknown)?;
                    rules.get(name, expression)?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(rules)
    }
}
