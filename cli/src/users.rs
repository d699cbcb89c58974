//! Names of users and groups.
//!
//! A cluster keeps them in a directory service, so the system's own program is asked.

use std::process::{Command, Stdio};

/// A table of names.
#[derive(Clone, Copy)]
pub enum Names {
    Users,
    Groups,
}

impl Names {
    /// The number with this name, or the number itself.
    pub fn number(self, name: &str) -> Option<u32> {
        name.parse().ok().or_else(|| Some(self.ask(name)?.1))
    }

    /// The name and the number, for people.
    pub fn text(self, number: u32) -> String {
        match self.name(number) {
            Some(name) => format!("{name} ({number})"),
            None => number.to_string(),
        }
    }

    /// The name of a number, if it has one.
    pub fn name(self, number: u32) -> Option<String> {
        Some(self.ask(&number.to_string())?.0)
    }

    fn ask(self, key: &str) -> Option<(String, u32)> {
        let table = match self {
            Self::Users => "passwd",
            Self::Groups => "group",
        };
        let mut command = Command::new("getent");
        command.args(["--", table, key]).stdin(Stdio::null());
        let given = command.stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(given.stdout).ok()?;
        let mut fields = text.lines().next()?.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), fields.nth(1)?.parse().ok()?))
    }
}
