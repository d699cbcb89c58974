//! The results of a run, by which others find it in a store.

use std::collections::BTreeMap;

use sde_engine::{AppInfo, OutputFile, ResultSpec};

use crate::outputs::Files;

/// The exit status, an `i64`.
pub const STATUS: &str = "status";
/// The command line, as a text.
pub const COMMAND: &str = "command";
/// The [rules](crate::Rules) of the call that ran it, as a text.
pub const RULES: &str = "rules";
/// The names of the declared outputs, a list of texts.
pub const DECLARED: &str = "declared";
/// What it printed, an output file without a place.
pub const STDOUT: &str = "stdout";
/// What it printed as errors.
pub const STDERR: &str = "stderr";
/// Its outputs, a map of such files by name.
pub const FILES: &str = "files";
/// The digests of outputs that must not differ, by name.
pub const COMPARED: &str = "compared";
/// The app that keeps which rules were asked for last, of the app that its input `app` names: its result is [`RULES`].
pub const RULES_APP: &str = "sde.rules";

/// An app with the results of a run.
pub(crate) fn of_run(info: AppInfo) -> AppInfo {
    let file = |name| ResultSpec::new::<OutputFile>(name).not_compared();
    let text = |name| ResultSpec::new::<String>(name).not_compared();
    info.result(ResultSpec::new::<i64>(STATUS).about("the exit status"))
        .result(text(COMMAND).about("the command line"))
        .result(text(RULES).about("the rules of the call that ran it"))
        .result(
            ResultSpec::new::<Vec<String>>(DECLARED)
                .not_compared()
                .about("the declared outputs"),
        )
        .result(file(STDOUT).about("what it printed"))
        .result(file(STDERR).about("what it printed as errors"))
        .result(
            ResultSpec::new::<Files>(FILES)
                .not_compared()
                .about("its outputs"),
        )
        .result(
            ResultSpec::new::<BTreeMap<String, String>>(COMPARED)
                .about("digests of outputs that must not differ"),
        )
}
