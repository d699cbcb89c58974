//! Build options from all the places they come from, as a driver is given them.
//!
//! Blanks between them do not count, nor one between `-D`, `-U` or `-I` and its value; their order does. An option
//! that is not known to leave other files alone makes the program not cacheable. So does a quote or a backslash,
//! which drivers read in different ways.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::cacheable::NotCacheable;

/// Options whose value follows after a blank.
const WITH_VALUE: [&str; 3] = ["-cl-nv-arch", "-cl-nv-maxrregcount", "-cl-nv-opt-level"];

/// The options of a build, each as one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options(Vec<String>);

impl Options {
    /// Appends what is written in a text.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Options {
            options: text.to_owned(),
            why,
        };
        if text.contains('\0') {
            return Err(wrong(
                "there is a null byte in them, or what is no text".to_owned(),
            ));
        }
        let mut words = text.split(is_blank).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let between = match word {
                "-D" | "-U" | "-I" => "",
                name if WITH_VALUE.contains(&name) => " ",
                _ => {
                    self.0.push(word.to_owned());
                    continue;
                }
            };
            let Some(next) = words.next() else {
                return Err(wrong(format!("nothing follows {word}")));
            };
            self.0.push(format!("{word}{between}{next}"));
        }
        Ok(())
    }

    /// Appends a directory for included files, whatever characters its name has.
    pub(super) fn add_dir(&mut self, dir: &Path) -> Result<(), Error> {
        let dir = dir.to_str().ok_or_else(|| Error::Options {
            options: dir.display().to_string(),
            why: "the name of the directory is no text".to_owned(),
        })?;
        self.0.push(match dir.contains(is_blank) {
            true => format!("-I\"{dir}\""),
            false => format!("-I{dir}"),
        });
        Ok(())
    }

    /// The directories for included files, in order.
    pub(super) fn include_dirs(&self) -> Vec<PathBuf> {
        let dirs = self.0.iter().filter_map(|one| one.strip_prefix("-I"));
        dirs.map(PathBuf::from).collect()
    }

    /// Whether all options are known to read and write no file that is not followed.
    pub(super) fn cacheable(&self) -> Result<(), NotCacheable> {
        let unknown = self.0.iter().find(|one| !reads_no_file(one));
        unknown.map_or(Ok(()), |option| {
            let option = option.clone();
            Err(NotCacheable::Option { option })
        })
    }

    /// The text that a driver gets.
    pub(super) fn text(&self) -> String {
        self.0.join(" ")
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// Whether an option is known to write no file, and to read none but in the directories it names for the
/// source. Compilers have many that do, under several names each, so the known harmless ones are listed here.
fn reads_no_file(option: &str) -> bool {
    const WHOLE: [&str; 4] = ["-w", "-g", "-create-library", "-enable-link-options"];
    const BEGIN: [&str; 5] = ["-spir-std=", "-std=", "-O", "-W", "-cl-"];
    let follows = |begin: &str, holds: fn(&str) -> bool| {
        let rest = option.strip_prefix(begin);
        rest.is_some_and(holds)
    };
    // `-I-` and `-I=` search in ways of their own.
    let is_dir: fn(&str) -> bool = |rest| !(rest.is_empty() || rest.starts_with(['-', '=']));
    let is_value: fn(&str) -> bool = |rest| {
        let value = rest.strip_prefix(' ');
        value.is_some_and(|value| is_word(value) && !value.starts_with('-'))
    };
    !option.contains(['"', '\'', '\\'])
        && (WHOLE.contains(&option)
            || follows("-D", |rest| !rest.is_empty())
            || follows("-U", |rest| !rest.is_empty())
            || follows("-I", is_dir)
            || WITH_VALUE.iter().any(|name| follows(name, is_value))
            || BEGIN.iter().any(|begin| follows(begin, is_word)))
}

/// Without a slash, and without a comma but between extensions: `-Wp,` passes options to another program.
fn is_word(rest: &str) -> bool {
    let is_list = rest.starts_with("ext=");
    let mut chars = rest.chars();
    chars.all(|c| c.is_ascii_alphanumeric() || "-_+.=".contains(c) || (is_list && c == ','))
}
