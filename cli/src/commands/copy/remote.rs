//! A store on another machine: its name, and its `sde`, started by `ssh`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use crate::failure::Failure;

/// The location of a store, as a user names it.
pub enum Location {
    Local(PathBuf),
    Remote(Remote),
}

/// A folder on another machine.
pub struct Remote {
    /// What `ssh` is given: `node17`, `anna@node17`.
    pub host: String,
    /// The folder there. A relative one begins in the home folder, as for `scp`.
    pub dir: String,
}

impl Location {
    /// `HOST:DIR` is on another machine, unless there is a `/` before the colon.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let here = || Ok(Self::Local(path.to_owned()));
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
        Ok(Self::Remote(Remote { host, dir }))
    }
}

impl Remote {
    /// Runs `PROGRAM WORDS` there, with `talk` at its pipes. Its standard error is that of this command.
    pub fn talk<T>(
        &self,
        program: &str,
        words: &[String],
        talk: impl FnOnce((ChildStdout, ChildStdin)) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let ssh = std::env::var_os("SDE_SSH").filter(|ssh| !ssh.is_empty());
        let ssh = ssh.unwrap_or_else(|| OsString::from("ssh"));
        let shown = ssh.to_string_lossy().into_owned();
        let program = [program.to_owned()];
        let line = quoted(&[&program[..], words].concat());
        let child = Command::new(&ssh)
            .args([&self.host, &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::told(format!(
                "{shown} is not there to reach {}; install it, or name another by SDE_SSH",
                self.host
            )),
            _ => Failure::told(format!("{shown} can't be started: {error}")),
        })?;
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(Failure::told("the program that was started has no pipes"));
        };
        // It ends once the pipes are closed, which `talk` has done.
        let done = talk((output, input));
        let status = child.wait();
        done.map_err(|why| match (why, status) {
            (Failure::Told(why), Ok(status)) => self.failed(&why, status, (&shown, &program[0])),
            (why, _) => why,
        })
    }

    fn failed(&self, why: &str, status: ExitStatus, (ssh, program): (&str, &str)) -> Failure {
        let host = &self.host;
        Failure::told(match status.code() {
            Some(0) => why.to_owned(),
            Some(126 | 127) => format!(
                "{host} has no program {program} that can be run; name the one of this release by --remote-sde"
            ),
            Some(255) => format!(
                "{ssh} did not reach {host}, or lost it; `{ssh} {host} true` tells whether it can. What has arrived whole stays"
            ),
            Some(code) => format!("{why}; the sde on {host} ended with status {code}"),
            None => format!("{why}; {ssh} was ended by a signal"),
        })
    }
}

/// A line that a POSIX shell takes for these words, whatever is in them.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = words.iter().map(quote).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Option<String> {
        match Location::of(Path::new(text)) {
            Ok(Location::Local(path)) => Some(path.display().to_string()),
            Ok(Location::Remote(there)) => Some(format!("{} | {}", there.host, there.dir)),
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
            assert_eq!(location(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn no_word_ends_its_quotes() {
        let words = ["a b", "it's", "$(x)", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"'a b' 'it'\''s' '$(x)' ''");
    }
}
