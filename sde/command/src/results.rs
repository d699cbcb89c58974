//! The results of a run, by which others find it in a store.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use sde_engine::{__private, AppInfo, OutputFile, ResultSpec};

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
/// Why attempts failed that were made before the run, in its call: a list of texts. Runs of older programs have none.
pub const ATTEMPTS: &str = "attempts";
/// Whether it went on from files that an attempt before it had left, a `bool`.
pub const RESUMED: &str = "resumed";
/// When it ended, in nanoseconds since 1970, and the array of jobs that it ran in; none is an empty text.
pub const ENDED: &str = "ended";
/// What the trace of the run found, as a text that [`Traced::read`](crate::Traced::read) reads. Only runs that were traced have it.
pub const TRACED: &str = "traced";
/// The app that keeps which rules were asked for last, of the app that its input `app` names: its result is [`RULES`].
pub const RULES_APP: &str = "sde.rules";

/// Those without which a run can't be given.
pub(crate) const NEEDED: &[&str] = &[
    STATUS, COMMAND, RULES, DECLARED, STDOUT, STDERR, FILES, COMPARED,
];

/// What [`ENDED`] tells of a run that ends now.
pub(crate) fn ended_now() -> (u64, String) {
    (
        nanos(SystemTime::now()),
        String::from(&*__private::array_of_jobs()),
    )
}

pub(crate) fn nanos(at: SystemTime) -> u64 {
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

/// An app with the results of a run.
pub(crate) fn of_run(info: AppInfo, is_traced: bool) -> AppInfo {
    let file = |name| ResultSpec::new::<OutputFile>(name).not_compared();
    let text = |name| ResultSpec::new::<String>(name).not_compared();
    let info = match is_traced {
        true => info.result(text(TRACED).about("what its trace found")),
        false => info,
    };
    let status = ResultSpec::new::<i64>(STATUS).not_compared();
    info.result(status.about("the exit status"))
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
            ResultSpec::new::<Vec<String>>(ATTEMPTS)
                .not_compared()
                .about("why attempts before it failed"),
        )
        .result(
            ResultSpec::new::<(u64, String)>(ENDED)
                .not_compared()
                .about("when it ended, and in which job"),
        )
        .result(
            ResultSpec::new::<bool>(RESUMED)
                .not_compared()
                .about("whether it went on from what an attempt before it left"),
        )
        .result(
            ResultSpec::new::<BTreeMap<String, String>>(COMPARED)
                .about("digests of outputs that must not differ"),
        )
}
