//! What a trace found, as it is kept and told.

use std::fmt;
use std::path::{Path, PathBuf};

/// The most that are kept by name.
pub(super) const MOST: usize = 1000;
/// How many names of each use a message has.
const MOST_TOLD: usize = 8;

/// How a program used something that nobody declared. The last that fits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The program looked for it and did not find it. Once somebody makes it, the result may change.
    Missed,
    /// It asked whether it is there, or for its size, times or link.
    Looked,
    /// It listed a folder.
    Listed,
    /// It opened it for reading.
    Read,
    /// It ran it as a program.
    Started,
}

impl Use {
    /// All of them, those that matter most first.
    pub const ALL: [Self; 5] = [
        Self::Started,
        Self::Read,
        Self::Listed,
        Self::Looked,
        Self::Missed,
    ];

    /// What was done, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Missed => "looked for, not there",
            Self::Looked => "looked at",
            Self::Listed => "listed",
            Self::Read => "read",
            Self::Started => "started",
        }
    }

    /// How it is declared.
    #[must_use]
    pub fn flags(self) -> &'static str {
        match self {
            Self::Missed => "--uses '?PATH' counts it, or --uses of a folder above it",
            Self::Looked | Self::Listed => "--uses or --tree counts it",
            Self::Read => "-i, --uses or --tree counts it",
            Self::Started => "--uses counts it",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::Looked => "looked",
            Self::Listed => "listed",
            Self::Read => "read",
            Self::Started => "started",
        }
    }
}

/// Something that a program used and nobody declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// What was done with it.
    pub used: Use,
    /// Its absolute path. What is no text in it is replaced, control characters are escaped.
    pub path: String,
}

/// What the trace of a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    pub(super) cut: Option<String>,
    pub(super) undeclared: Vec<Undeclared>,
    pub(super) more: u64,
}

impl Traced {
    /// A run that could not be traced.
    pub(crate) fn not(why: String) -> Self {
        Self {
            cut: Some(why),
            undeclared: Vec::new(),
            more: 0,
        }
    }

    /// Whether all was traced, and all was declared.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.cut.is_none() && self.undeclared.is_empty() && self.more == 0
    }

    /// What is left of it if these paths are free, each with all below it: those of [`text`](crate::Command::text), which are in no key.
    #[must_use]
    pub fn without(&self, texts: &[String]) -> Self {
        let texts = texts
            .iter()
            .map(Path::new)
            .filter(|text| text.is_absolute());
        let free: Vec<PathBuf> = texts.flat_map(ways).collect();
        let is_free = |one: &Undeclared| {
            let path = Path::new(&one.path);
            // That there is a folder above is no news.
            let is_above = |text: &PathBuf| one.used == Use::Looked && text.starts_with(path);
            free.iter()
                .any(|text| path.starts_with(text) || is_above(text))
        };
        let mut left = self.clone();
        left.undeclared.retain(|one| !is_free(one));
        left
    }

    /// Why not all of the run was traced, if it was not.
    #[must_use]
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// What was used and not declared, by path: the first 1000 that were found.
    #[must_use]
    pub fn undeclared(&self) -> &[Undeclared] {
        &self.undeclared
    }

    /// The number of further ones.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }

    /// The text that a store keeps of it: a line says whether it is whole, then each has a use.
    pub(crate) fn kept(&self) -> String {
        let mut text = match &self.cut {
            None => "whole\n".to_owned(),
            Some(why) => format!("cut {}\n", shown(Path::new(why))),
        };
        for one in &self.undeclared {
            text += &format!("{} {}\n", one.used.word(), one.path);
        }
        if self.more > 0 {
            text += &format!("more {}\n", self.more);
        }
        text
    }

    /// Reads the text of the result [`TRACED`](crate::results::TRACED). What can't be read was not traced.
    #[must_use]
    pub fn read(kept: &str) -> Self {
        let unread = || Self::not("what is kept of its trace can't be read".to_owned());
        let mut lines = kept.lines();
        let cut = match lines.next().unwrap_or_default().split_once(' ') {
            None if kept.starts_with("whole\n") => None,
            Some(("cut", why)) => Some(why.to_owned()),
            _ => return unread(),
        };
        let (mut undeclared, mut more) = (Vec::new(), 0);
        for line in lines {
            let Some((word, rest)) = line.split_once(' ') else {
                return unread();
            };
            match Use::ALL.into_iter().find(|used| used.word() == word) {
                Some(used) => undeclared.push(Undeclared {
                    used,
                    path: rest.to_owned(),
                }),
                None => match (word, rest.parse()) {
                    ("more", Ok(count)) => more = count,
                    _ => return unread(),
                },
            }
        }
        Self {
            cut,
            undeclared,
            more,
        }
    }
}

/// A line for each use, with a few names.
impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        if let Some(why) = &self.cut {
            lines.push(format!("not traced as a whole: {why}"));
        }
        for used in Use::ALL {
            let of_it = self.undeclared.iter().filter(|one| one.used == used);
            let names: Vec<&str> = of_it.map(|one| &*one.path).collect();
            if names.is_empty() {
                continue;
            }
            let more = match names.len().saturating_sub(MOST_TOLD) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let some = names[..names.len().min(MOST_TOLD)].join(", ");
            let (words, flags) = (used.words(), used.flags());
            lines.push(format!("{words} and not declared: {some}{more} ({flags})"));
        }
        if self.more > 0 {
            lines.push(format!("and {} more files, not kept by name", self.more));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// A path as it is spelled, and without links.
fn ways(path: &Path) -> impl Iterator<Item = PathBuf> {
    let real = std::fs::canonicalize(path).ok();
    real.into_iter().chain([path.to_owned()])
}

/// A path in one line.
pub(super) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}
