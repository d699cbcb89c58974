//! The files that a source includes, and those that these include.
//!
//! OpenCL does not tell which files a compiler read, and preprocessing the source first would take
//! a compiler. So includes are looked for as the compiler would, in every branch of every condition: a
//! file too many in the key costs a build, one too few gives old code. A file that is missing where
//! only some builds would read it is noted as missing, so that the key is another once it is
//! there; one that every build reads is an error here, by name.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::full_key::Included;
use crate::Error;
use crate::cacheable::NotCacheable;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Closure {
    pub(super) included: Vec<Included>,
    pub(super) not_cacheable: Option<NotCacheable>,
}

/// Words after which a file is another one in each build.
const VOLATILE: &[&str] = &["__DATE__", "__TIME__", "__TIMESTAMP__", "__has_include"];

/// The closure of a source that has no file of its own.
pub(super) fn closure(source: &str, name: &str, dirs: &[PathBuf]) -> Result<Closure, Error> {
    let mut walk = Walk {
        dirs,
        seen: HashSet::new(),
        found: Closure::default(),
    };
    walk.text(source, name, None)?;
    Ok(walk.found)
}

struct Walk<'a> {
    dirs: &'a [PathBuf],
    /// By name and by the directory it was searched from first.
    seen: HashSet<(String, Option<PathBuf>)>,
    found: Closure,
}

impl Walk<'_> {
    fn text(&mut self, text: &str, name: &str, dir: Option<&Path>) -> Result<(), Error> {
        // How many conditions are open: what is beneath one is not read by every build.
        let mut depth = 0_usize;
        for (number, line) in logical_lines(text) {
            self.look_for_volatile(&line, name, number);
            let Some(directive) = directive(&line) else {
                continue;
            };
            if directive.starts_with("if") {
                depth += 1;
            } else if directive.starts_with("endif") {
                depth = depth.saturating_sub(1);
            } else if let Some(what) = included_by(directive) {
                match file_name(what) {
                    Some((file, angled)) => {
                        let is_certain = depth == 0 && !angled;
                        self.include(file, angled, name, dir, is_certain)?;
                    }
                    None => self.refuse(NotCacheable::ComputedInclude {
                        at: format!("{name}:{number}"),
                        line: line.trim().to_owned(),
                    }),
                }
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        file: &str,
        angled: bool,
        from: &str,
        dir: Option<&Path>,
        is_certain: bool,
    ) -> Result<(), Error> {
        let beside = dir.filter(|_| !angled);
        let seen = (file.to_owned(), beside.map(Path::to_owned));
        if !self.seen.insert(seen) {
            return Ok(());
        }
        let places = beside.into_iter().chain(self.dirs.iter().map(|dir| &**dir));
        for place in places {
            let path = place.join(file);
            let Some(text) = read(&path)? else {
                continue;
            };
            let shown = path.display().to_string();
            self.found.included.push(Included {
                name: file.to_owned(),
                path: Some(shown.clone()),
                text: Some(text.clone()),
            });
            return self.text(&text, &shown, path.parent());
        }
        if is_certain {
            return Err(Error::NoInclude {
                name: file.to_owned(),
                from: from.to_owned(),
            });
        }
        self.found.included.push(Included {
            name: file.to_owned(),
            path: None,
            text: None,
        });
        Ok(())
    }

    fn look_for_volatile(&mut self, line: &str, name: &str, number: usize) {
        if let Some(word) = VOLATILE.iter().find(|word| line.contains(**word)) {
            self.refuse(NotCacheable::Volatile {
                at: format!("{name}:{number}"),
                word,
            });
        }
    }

    /// The first reason stands.
    fn refuse(&mut self, why: NotCacheable) {
        self.found.not_cacheable.get_or_insert(why);
    }
}

/// The content, if there is such a file. Bytes that are no text are kept apart all the same.
fn read(path: &Path) -> Result<Option<String>, Error> {
    let failed = |why: String| Error::Include {
        path: path.to_owned(),
        why,
    };
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(failed("it is not UTF-8".to_owned())),
        },
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => Ok(None),
            _ => Err(failed(error.to_string())),
        },
    }
}

/// Lines as the preprocessor sees them: joined where one ends with a backslash, comments taken
/// out. With the number of the first line of each.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let (mut number, mut first) = (1, 1);
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
                number += 1;
            }
            ('\\', Some('\r')) => {
                chars.next();
                if chars.next_if_eq(&'\n').is_some() {
                    number += 1;
                }
            }
            ('\\', Some(_)) if quote.is_some() => {
                line.push(c);
                line.extend(chars.next());
            }
            ('/', Some('/')) if quote.is_none() => {
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            ('/', Some('*')) if quote.is_none() => {
                chars.next();
                let mut last = ' ';
                for inner in chars.by_ref() {
                    number += usize::from(inner == '\n');
                    if (last, inner) == ('*', '/') {
                        break;
                    }
                    last = inner;
                }
                line.push(' ');
            }
            ('\n', _) => {
                lines.push((first, std::mem::take(&mut line)));
                number += 1;
                first = number;
                quote = None;
            }
            _ => {
                match quote {
                    Some(open) if open == c => quote = None,
                    None if c == '"' || c == '\'' => quote = Some(c),
                    _ => {}
                }
                line.push(c);
            }
        }
    }
    lines.push((first, line));
    lines
}

/// What follows the `#` of a directive.
fn directive(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let after = line.strip_prefix('#').or_else(|| line.strip_prefix("%:"));
    after.map(str::trim_start)
}

/// What an including directive names.
fn included_by(directive: &str) -> Option<&str> {
    let words = ["include_next", "include", "import", "embed"];
    let after = words.iter().find_map(|word| directive.strip_prefix(word))?;
    let is_word = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (!is_word).then(|| after.trim())
}

/// The name between quotes or angle brackets, and whether it is the latter.
fn file_name(what: &str) -> Option<(&str, bool)> {
    if let Some(rest) = what.strip_prefix('"') {
        return rest.split_once('"').map(|(name, _)| (name, false));
    }
    let rest = what.strip_prefix('<')?;
    rest.split_once('>').map(|(name, _)| (name, true))
}

#[cfg(test)]
mod tests;
