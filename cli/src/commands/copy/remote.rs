//! The other machine: its `sde`, started by `ssh`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::place::{Remote, quoted};
use crate::failure::Failure;

impl Remote {
    /// Runs `PROGRAM WORDS` there, and talks to it. What it says on standard error, a person sees.
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
