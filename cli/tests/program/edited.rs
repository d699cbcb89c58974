//! A program that is edited, with a helper that is.

use std::path::Path;

use sde::{App, AppError, AppInfo, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, inputs};

use super::kit::engine;

/// What an edited program is another version of. It calls another app where `x` is odd.
#[derive(Clone, Fingerprint)]
struct Step {
    #[fingerprint(skip)]
    version: &'static str,
    #[fingerprint(skip)]
    helper: &'static str,
}

#[derive(Clone, Fingerprint)]
pub struct Helper {
    #[fingerprint(skip)]
    pub version: &'static str,
}

impl App for Step {
    fn info(&self) -> AppInfo {
        AppInfo::new("code.step", self.version).result(ResultSpec::new::<String>("by"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<i64>("x")?;
        if x < 0 {
            return Err(AppError::message("it is negative"));
        }
        let helper = Helper {
            version: self.helper,
        };
        let by = match x % 2 {
            1 => sde
                .run(&helper, &inputs! {})?
                .get::<String>("by")?
                .to_string(),
            _ => String::new(),
        };
        Ok(ResultMap::new().with("by", format!("{} {by}", self.version)))
    }
}

impl App for Helper {
    fn info(&self) -> AppInfo {
        AppInfo::new("code.helper", self.version).result(ResultSpec::new::<String>("by"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("by", self.version.to_owned()))
    }
}

/// A program of this code that asks for these points.
pub fn program(
    path: &Path,
    [version, helper]: [&'static str; 2],
    points: impl IntoIterator<Item = i64>,
) {
    let sde = engine(path);
    // The code that a process has of an app is that of the app that it was given.
    sde.run(&Helper { version: helper }, &inputs! {}).unwrap();
    for x in points {
        let done = sde.run(&Step { version, helper }, &inputs! { x: x });
        assert_eq!(done.is_err(), x < 0);
    }
    sde.finish().unwrap();
}
