//! Where a store is: here, or on another machine.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The place of a store, as a user names it.
pub enum Place {
    Here(PathBuf),
    There(Remote),
}

/// A folder on another machine.
pub struct Remote {
    /// What `ssh` is given: `node17`, `anna@node17`.
    pub host: String,
    /// The folder there. A relative one begins in the home folder, as for `scp`.
    pub dir: String,
}

impl Place {
    /// `HOST:DIR` is on another machine, unless there is a `/` before the colon.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let here = || Ok(Self::Here(path.to_owned()));
        let Some((host, dir)) = path.to_str().and_then(|text| text.split_once(':')) else {
            return here();
        };
        let is_drive = cfg!(windows) && host.len() == 1;
        if host.is_empty() || host.contains('/') || is_drive {
            return here();
        }
        // `ssh` would take it for an option.
        if host.starts_with('-') {
            return Err(Failure::told(format!(
                "{host:?} is no name of a machine; a folder that is called so is ./{host}:{dir}"
            )));
        }
        if dir.is_empty() {
            return Err(Failure::told(format!(
                "which folder on {host}? Name it after the colon: {host}:results.sde"
            )));
        }
        // A shell does not expand what is quoted, and `ssh` begins in the home folder anyway.
        let dir = match dir.strip_prefix("~/") {
            Some(rest) => format!("./{rest}"),
            None => dir.to_owned(),
        };
        let host = host.to_owned();
        Ok(Self::There(Remote { host, dir }))
    }
}

/// A line that a POSIX shell takes for these words, whatever is in them.
pub fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = words.iter().map(quote).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Option<String> {
        match Place::of(Path::new(text)) {
            Ok(Place::Here(path)) => Some(path.display().to_string()),
            Ok(Place::There(there)) => Some(format!("{} | {}", there.host, there.dir)),
            Err(_) => None,
        }
    }

    #[test]
    fn a_colon_before_any_slash_names_a_machine() {
        for (text, expected) in [
            ("store", Some("store")),
            ("./a:b", Some("./a:b")),
            ("/a:b", Some("/a:b")),
            (":b", Some(":b")),
            ("node:store", Some("node | store")),
            ("anna@node:/a b:c", Some("anna@node | /a b:c")),
            ("node:~/runs/a.sde", Some("node | ./runs/a.sde")),
            ("-oProxyCommand=x:y", None),
            ("node:", None),
        ] {
            assert_eq!(place(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn no_word_ends_its_quotes() {
        let words = ["a b", "it's", "$(x)", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"'a b' 'it'\''s' '$(x)' ''");
    }
}
