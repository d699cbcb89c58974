//! Holding what a run wrote against the rules.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use regex::bytes::{Captures, Regex};
use sde_engine::Data;

use crate::outputs::Outputs;
use crate::rules::{Rule, RuleKind, Rules};

/// A line that is longer is matched in pieces of this length, so that memory stays small.
const LONGEST_LINE: usize = 1 << 20;
/// A match of this length is found wherever a line is cut.
const OVERLAP: usize = 1 << 16;

/// What came of judging a run.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Judgement {
    /// The rules by which it fails.
    pub failures: Vec<Failure>,
    /// The values that rules took, by name.
    pub values: BTreeMap<String, Data>,
}

/// What a call does with a run that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It passes, and is given.
    Given,
    /// It fails by a rule by which it failed when it was made: the program runs again.
    Again,
    /// It fails so, and is given as the failure that it is, since the caller keeps failures.
    Kept,
    /// It fails only by rules that it did not fail by when it was made: the call fails, and nothing runs.
    New,
}

impl Judgement {
    /// What a call does with the run; `then` is how it is judged by the rules of the call that made it.
    #[must_use]
    pub fn verdict(&self, then: &Self, keeps_failures: bool) -> Verdict {
        let is_old = |failure: &Failure| then.failures.iter().any(|old| old.rule == failure.rule);
        match (self.failures.is_empty(), self.failures.iter().any(is_old)) {
            (true, _) => Verdict::Given,
            (false, true) if keeps_failures => Verdict::Kept,
            (false, true) => Verdict::Again,
            (false, false) => Verdict::New,
        }
    }
}

/// A rule by which a run fails.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The rule, as [`Rules`] are written.
    pub rule: String,
    /// What was found.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.why, self.rule)
    }
}

/// A place where a run wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream<'a> {
    /// Its standard output.
    Output,
    /// Its standard error.
    Error,
    /// An output.
    File(&'a str),
}

/// The run that is judged: its status, and what it wrote.
pub trait Judged {
    /// The exit status.
    fn status(&self) -> i32;
    /// The names and patterns of its declared outputs, without `?`.
    fn declared(&self) -> Vec<String>;
    /// The paths of the outputs that it wrote.
    fn files(&self) -> Vec<String>;
    /// What it wrote there, from the beginning.
    ///
    /// # Errors
    /// If it can't be read.
    fn open(&self, stream: Stream<'_>) -> io::Result<Box<dyn Read + '_>>;
}

/// A rule while its lines go by.
struct Watched<'a> {
    rule: &'a Rule,
    regex: Regex,
    is_matched: bool,
    value: Option<Data>,
}

impl Rules {
    /// Judges a run. Each of its files is read once, for all rules that look at it, a line at a time.
    ///
    /// # Errors
    /// If what it wrote can't be read.
    #[doc(hidden)]
    pub fn judge(&self, run: &dyn Judged) -> io::Result<Judgement> {
        let mut judged = Judgement::default();
        let mut fails = |rule: String, why: String| judged.failures.push(Failure { rule, why });
        let status = run.status();
        if !self.passes_with(status) {
            fails(
                format!("status {status}"),
                format!("its exit status is {status}"),
            );
        }
        // What is stored was checked when it was declared.
        let declared = Outputs::new(&run.declared()).map_err(io::Error::other)?;
        let files = run.files();
        let named = |output: &str| -> io::Result<Vec<String>> {
            let one = Outputs::new(&[output.to_owned()]).map_err(io::Error::other)?;
            let is_it = |file: &&String| one.may_be(file);
            Ok(files.iter().filter(is_it).cloned().collect())
        };
        for output in self
            .outputs
            .iter()
            .filter(|output| declared.is_declared(output))
        {
            if named(output)?.is_empty() {
                fails(
                    format!("output {output}"),
                    format!("it wrote no output {output:?}"),
                );
            }
        }
        let is_output = |name: &str| declared.may_be(name);
        let mut by_file: BTreeMap<Option<&str>, Vec<Watched<'_>>> = BTreeMap::new();
        for rule in &self.rules {
            let (file, expression) = rule.split(is_output);
            let regex = Regex::new(expression).map_err(io::Error::other)?;
            by_file.entry(file).or_default().push(Watched {
                rule,
                regex,
                is_matched: false,
                value: None,
            });
        }
        for (file, mut watched) in by_file {
            match file {
                None => {
                    each_line(&mut run.open(Stream::Output)?, &mut watched)?;
                    each_line(&mut run.open(Stream::Error)?, &mut watched)?;
                }
                Some(file) => {
                    for name in named(file)? {
                        each_line(&mut run.open(Stream::File(&name))?, &mut watched)?;
                    }
                }
            }
            watched.into_iter().for_each(|one| one.end(&mut judged));
        }
        Ok(judged)
    }
}

/// A carriage return ends a line too: progress is printed so. The pieces of a line that is too long overlap.
fn each_line(from: &mut dyn Read, watched: &mut [Watched<'_>]) -> io::Result<()> {
    let (mut from, mut line) = (BufReader::with_capacity(1 << 16, from), Vec::new());
    loop {
        let more = LONGEST_LINE - line.len();
        if from
            .by_ref()
            .take(more as u64)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(());
        }
        let whole = line.strip_suffix(b"\n").unwrap_or(&line);
        let whole = whole.strip_suffix(b"\r").unwrap_or(whole);
        for part in whole.split(|byte| *byte == b'\r') {
            watched.iter_mut().for_each(|one| one.see(part));
        }
        let is_cut = line.len() == LONGEST_LINE && !line.ends_with(b"\n");
        line.drain(
            ..if is_cut {
                LONGEST_LINE - OVERLAP
            } else {
                line.len()
            },
        );
    }
}

impl Watched<'_> {
    fn see(&mut self, line: &[u8]) {
        match self.rule.kind {
            RuleKind::Get { .. } => {
                if let Some(found) = self.regex.captures_iter(line).last() {
                    self.value = Some(value(&found));
                }
            }
            _ => self.is_matched |= self.regex.is_match(line),
        }
    }

    fn end(self, to: &mut Judgement) {
        let why = match &self.rule.kind {
            RuleKind::Require if !self.is_matched => "nothing that it wrote matches",
            RuleKind::Reject if self.is_matched => "something that it wrote matches",
            RuleKind::Get { name, is_optional } => match self.value {
                Some(value) => {
                    to.values.insert(name.clone(), value);
                    return;
                }
                None if *is_optional => return,
                None => "nothing that it wrote matches",
            },
            _ => return,
        };
        let (rule, why) = (self.rule.to_string(), why.to_owned());
        to.failures.push(Failure { rule, why });
    }
}

fn value(found: &Captures<'_>) -> Data {
    let text = found
        .get(1)
        .or_else(|| found.get(0))
        .map_or(&b""[..], |one| one.as_bytes());
    let text = String::from_utf8_lossy(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that would lose digits is a text.
        let number = text.parse::<i64>().ok();
        let is_whole = |number: &i64| number.unsigned_abs().to_string() == digits;
        return number
            .filter(is_whole)
            .map_or_else(|| Data::Text(text.clone().into_owned()), Data::Int);
    }
    // Fortran writes 1.0D+00.
    let number = text.replace(['d', 'D'], "e").parse::<f64>();
    match number {
        Ok(number)
            if number.is_finite()
                && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') =>
        {
            Data::Float(number)
        }
        _ => Data::Text(text.into_owned()),
    }
}
