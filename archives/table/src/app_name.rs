//! Names of apps as users write them.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;

/// The name of an app as a user writes it.
#[derive(Debug, Clone)]
pub struct App(String);

impl FromStr for App {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl App {
    /// Whether it is the name of this app, and no pattern.
    pub fn names(&self, app: &str) -> bool {
        app == self.0
    }

    /// Whether an app has this name, or one that the pattern fits.
    pub fn is(&self, app: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => app.starts_with(beginning),
            None => app == self.0,
        }
    }

    /// Refuses a name that matches no app of a store that has apps.
    pub fn known(&self, apps: &BTreeSet<Arc<str>>) -> Result<(), Error> {
        if apps.is_empty() || apps.iter().any(|app| self.is(app)) {
            return Ok(());
        }
        let apps: Vec<&str> = apps.iter().map(|app| &**app).collect();
        Err(Error::told(format!(
            "no app here is called {:?}; there are: {}",
            self.0,
            apps.join(", ")
        )))
    }
}
