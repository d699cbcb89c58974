//! Build options from all the places they come from, as one list.
//!
//! They are made alike only where that can change nothing: how they are parted by blanks, and whether
//! a blank is between `-D` or `-I` and what belongs to it. Their order stays: the last `-D` of
//! a name counts, and directories are searched in turn.
//!
//! OpenCL does not say how an option that has a blank in it is written. PoCL 3.1 takes quotes after the
//! `-D`; it takes none around the whole option, none in quotes (so that a macro that is a text can't be
//! had there), and finds no directory with a blank in its name.

use std::path::PathBuf;

use super::closure::volatile_in;
use crate::Error;
use crate::cacheable::NotCacheable;

/// The options of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Each on its own, unquoted.
    pub(super) list: Vec<String>,
}

impl Options {
    /// Appends what is written in a text: blanks between `"` are kept, and so is what follows a `\`.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        let mut words = words(text)?.into_iter();
        while let Some(word) = words.next() {
            let takes_next = matches!(&*word, "-D" | "-I" | "-U");
            match (takes_next, takes_next.then(|| words.next()).flatten()) {
                (true, Some(next)) if !next.is_empty() => self.list.push(word + &next),
                (true, _) => {
                    return Err(Error::Options {
                        options: text.to_owned(),
                        why: format!("nothing follows {word}"),
                    });
                }
                (false, _) => self.list.push(word),
            }
        }
        Ok(())
    }

    /// Where included files are looked for, in turn.
    pub(super) fn include_dirs(&self) -> Vec<PathBuf> {
        let options = self.list.iter();
        options
            .filter_map(|option| option.strip_prefix("-I").map(PathBuf::from))
            .collect()
    }

    /// An option that may read or write files nobody follows, or after which each build is another.
    pub(super) fn not_cacheable(&self) -> Option<NotCacheable> {
        let why = |option: &String| {
            let volatile = volatile_in(option).map(|word| NotCacheable::Volatile {
                at: format!("the option {option}"),
                word,
            });
            let unknown = || NotCacheable::Option {
                option: option.clone(),
            };
            volatile.or_else(|| (!reads_no_file(option)).then(unknown))
        };
        self.list.iter().find_map(why)
    }

    /// As a driver takes them.
    pub(super) fn text(&self) -> String {
        let quoted: Vec<String> = self.list.iter().map(|option| quote(option)).collect();
        quoted.join(" ")
    }
}

/// Whether it is known that an option reads no file, but in the directories it names for the source,
/// and writes none. Compilers have many that do, under several names each; so these are told by name, and
/// all others are not.
fn reads_no_file(option: &str) -> bool {
    const WHOLE: [&str; 4] = ["-w", "-g", "-create-library", "-enable-link-options"];
    const BEGIN: [&str; 5] = ["-cl-", "-spir-std=", "-std=", "-O", "-W"];
    // No comma: `-Wp,` hands options on to another program. No slash: no path.
    let is_word = |rest: &str| {
        let mut chars = rest.chars();
        chars.all(|c| c.is_ascii_alphanumeric() || "-_+.=".contains(c))
    };
    // A directive ends with the line; and to a driver that parts options at blanks whatever the quotes,
    // a value must not have one that reads a file.
    let may_read = |word: &str| {
        ["-i", "-I", "--", "@"]
            .iter()
            .any(|name| word.starts_with(name))
    };
    let is_macro = |rest: &str| {
        let is_line = !rest.is_empty() && !rest.contains(['\n', '\r']);
        is_line && !rest.split_whitespace().skip(1).any(may_read)
    };
    // `-I-` and `-I=` search in ways of their own; and not all drivers find what needs quotes, so that they
    // may read a file of the next directory.
    let is_dir = |rest: &str| is_plain(rest) && !rest.starts_with(['-', '=']);
    let follows = |begin: &str, holds: &dyn Fn(&str) -> bool| {
        let rest = option.strip_prefix(begin);
        rest.is_some_and(holds)
    };
    WHOLE.contains(&option)
        || follows("-D", &is_macro)
        || follows("-U", &is_macro)
        || follows("-I", &is_dir)
        || BEGIN.iter().any(|begin| follows(begin, &is_word))
}

/// Whether it needs no quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\')
}

fn quote(option: &str) -> String {
    match is_plain(option) {
        true => option.to_owned(),
        false => {
            let names = ["-D", "-I", "-U"];
            let name = names.into_iter().find(|name| option.starts_with(name));
            let (name, rest) = option.split_at(name.map_or(0, str::len));
            let rest = rest.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}\"{rest}\"")
        }
    }
}

fn words(text: &str) -> Result<Vec<String>, Error> {
    let wrong = |why: &str| Error::Options {
        options: text.to_owned(),
        why: why.to_owned(),
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\0' => return Err(wrong("there is a null byte in them")),
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => {
                let next = chars.next().ok_or_else(|| wrong("they end with a \\"))?;
                word.get_or_insert_default().push(next);
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return Err(wrong("a \" is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(texts: &[&str]) -> Vec<String> {
        let mut options = Options::default();
        texts.iter().for_each(|text| options.add(text).unwrap());
        options.list
    }

    #[test]
    fn blanks_do_not_count_and_order_does() {
        assert_eq!(
            options(&["-D  A=1   -cl-mad-enable", "-I x"]),
            options(&["-DA=1 -cl-mad-enable -Ix"])
        );
        assert_ne!(options(&["-DA=1 -DA=2"]), options(&["-DA=2 -DA=1"]));
    }

    #[test]
    fn quoted_blanks_stay_and_come_back_as_they_were() {
        let mut two = Options::default();
        two.add(r#"-D "TEXT=a b" -I"dir with blanks" -DQ=\"x\""#)
            .unwrap();
        assert_eq!(two.list, ["-DTEXT=a b", "-Idir with blanks", "-DQ=\"x\""]);
        assert_eq!(options(&[&two.text()]), two.list);
        assert!(
            two.text()
                .starts_with(r#"-D"TEXT=a b" -I"dir with blanks""#)
        );
        assert_eq!(two.include_dirs(), [PathBuf::from("dir with blanks")]);
    }

    #[test]
    fn what_can_not_be_told_apart_is_an_error() {
        for wrong in ["-D", "-I \"\" -DX", "\"open", "ends\\", "nu\0ll"] {
            assert!(Options::default().add(wrong).is_err(), "{wrong:?}");
        }
    }
    /// Those that are known, and no others.
    #[test]
    fn an_option_that_may_read_a_file_is_not_cacheable() {
        let why = |text: &str| {
            let mut all = Options::default();
            all.add(text).unwrap();
            all.not_cacheable()
        };
        let plain = "-DA=1 -D \"B=/a b\" -UA -Iinclude -I /usr/include -cl-std=CL3.0 -cl-mad-enable -w -Werror \
                     -Wno-error=x -g -O0 -std=CL2.0 -create-library";
        assert_eq!(why(plain), None);
        for wrong in [
            "-include a.h",
            "-includea.h",
            "--include=a.h",
            "--include a.h",
            "--include-directory=a",
            "-imacros a.h",
            "-isystem a",
            "-iquote a",
            "-idirafter a",
            "-iprefix a",
            "-iwithprefix a",
            "-iwithprefixbefore a",
            "--sysroot=a",
            "-isysroot a",
            "-save-temps",
            "-save-temps=cwd",
            "-x cl",
            "-Wp,-include,a.h",
            "-I-",
            "-I=a",
            "-I\"a b\"",
            "@file",
            "file.cl",
            "-fmodule-file=a",
            "-Xclang -include",
            "-cl-a=/b",
            "-D\"A=1 -I/elsewhere\"",
        ] {
            assert!(
                matches!(why(wrong), Some(NotCacheable::Option { .. })),
                "{wrong}"
            );
        }
        let clock = why("-DA=1 -DWHEN=__TIME__").unwrap();
        let text =
            "the option -DWHEN=__TIME__ has __TIME__, which is another from one build to the next";
        assert_eq!(clock.to_string(), text);
        assert!(why("\"-DA=1\n#include <a.h>\"").is_some());
    }
}
