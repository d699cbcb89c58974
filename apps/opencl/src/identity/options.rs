//! Build options from all the places they come from, as one list.
//!
//! They are made alike only where that can change nothing: how they are parted by blanks, and whether
//! a blank is between `-D` or `-I` and what belongs to it. Their order stays: the last `-D` of
//! a name counts, and directories are searched in turn.

use std::path::PathBuf;

use crate::Error;

/// The options of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Each on its own, unquoted.
    pub(super) list: Vec<String>,
}

impl Options {
    /// Appends what is written in a text, with `"` and `\` as in OpenCL's option strings.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        let mut words = words(text)?.into_iter();
        while let Some(word) = words.next() {
            let takes_next = matches!(&*word, "-D" | "-I" | "-U");
            match (takes_next, takes_next.then(|| words.next()).flatten()) {
                (true, Some(next)) => self.list.push(word + &next),
                (true, None) => {
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

    /// An option with files behind it that nobody follows.
    pub(super) fn unfollowed(&self) -> Option<&String> {
        let reads = [
            "-include",
            "-imacros",
            "-isystem",
            "-iquote",
            "-idirafter",
            "@",
            "-x",
        ];
        let reads_files = |option: &&String| {
            reads.iter().any(|name| option.starts_with(name)) || *option == "-save-temps"
        };
        self.list.iter().find(reads_files)
    }

    /// As a driver takes them.
    pub(super) fn text(&self) -> String {
        let quoted: Vec<String> = self.list.iter().map(|option| quote(option)).collect();
        quoted.join(" ")
    }
}

fn quote(option: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && c != '"' && c != '\\';
    match option.chars().all(plain) && !option.is_empty() {
        true => option.to_owned(),
        false => format!("\"{}\"", option.replace('\\', "\\\\").replace('"', "\\\"")),
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
        assert_eq!(two.include_dirs(), [PathBuf::from("dir with blanks")]);
    }

    #[test]
    fn what_can_not_be_told_apart_is_an_error() {
        for wrong in ["-D", "\"open", "ends\\", "nu\0ll"] {
            assert!(Options::default().add(wrong).is_err(), "{wrong:?}");
        }
    }
}
