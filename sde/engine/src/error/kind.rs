//! What can go wrong, and what to do next.

use std::sync::Arc;

use super::{AppError, ArchiveError, Error, advise, join_names, printable};
use crate::key::{FingerprintError, Key};
use crate::ranks::group::GroupError;

/// The kinds of [`Error`], one for each failure that a program may want to handle.
///
/// ```
/// use sde::{ErrorKind, Sde, inputs};
///
/// #[sde::app]
/// fn root(x: f64) -> Result<f64, String> {
///     if x < 0.0 { Err(format!("{x} has no root")) } else { Ok(x.sqrt()) }
/// }
///
/// let sde = Sde::new();
/// let failed = root.call(&sde, -1.0).unwrap_err();
/// assert!(matches!(failed.kind(), ErrorKind::App { .. }));
/// let missing = sde.run(&root, &inputs! {}).unwrap_err();
/// assert!(matches!(missing.kind(), ErrorKind::MissingInput { .. }));
/// let sweep = root.par_call(&sde, [4.0, -1.0]).unwrap_err();
/// assert!(matches!(sweep.kind(), ErrorKind::Item { item: 1, .. }));
/// assert!(matches!(sweep.root().kind(), ErrorKind::App { .. }));
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The app returned an error.
    #[error("{app} [{}] failed", key.short())]
    #[non_exhaustive]
    App {
        /// The app that failed.
        app: Arc<str>,
        /// The run that failed.
        key: Key,
        /// The error that it returned.
        cause: AppError,
    },
    /// The app panicked. The calling thread sees the panic itself; waiters get this error.
    #[error(
        "{app} [{}] panicked: {message}; nothing was remembered, the next run starts afresh",
        key.short()
    )]
    #[non_exhaustive]
    Panicked {
        /// The app that panicked.
        app: Arc<str>,
        /// The run that panicked.
        key: Key,
        /// The panic's message, if it was text.
        message: String,
    },
    /// One of many calls failed. Calls that had begun have ended, and no more began, except those dealt out to ranks.
    #[error("item {item} ({inputs}) failed")]
    #[non_exhaustive]
    Item {
        /// The index of the call, from 0.
        item: usize,
        /// The app's arguments, each cut short.
        inputs: String,
        /// The app's error.
        source: Error,
    },
    /// A sweep ended because the [time of the job](crate::Handle::time_left) is up, or the program was told to stop. What is done is
    /// remembered, and saved as always.
    #[error(
        "{} after {done} items{}; run the program again, which takes up the rest",
        if *stopped { "the program was told to stop" } else { "the job's time is up" },
        left.map(|left| format!(", with {left} left")).unwrap_or_default()
    )]
    #[non_exhaustive]
    OutOfTime {
        /// The number of items that have their result, remembered ones among them.
        done: usize,
        /// The number of all others, also those that nobody looked at any more; `None` if it is not known how many items
        /// there are.
        left: Option<usize>,
        /// Whether somebody told the program to stop (`sde stop`).
        stopped: bool,
    },
    /// This item of a sweep was not begun, because the [time of the job](crate::Handle::time_left) is up or too short for it, or the
    /// program was told to stop.
    #[error(
        "{app} was not begun: {}; run the program again, which takes up the rest",
        if *stopped { "the program was told to stop" } else { "the job has too little time left" }
    )]
    #[non_exhaustive]
    NotStarted {
        /// The app of the sweep.
        app: Arc<str>,
        /// Whether somebody told the program to stop (`sde stop`).
        stopped: bool,
    },
    /// The run would be computed or waited for, and the program is only [planned](crate::Sde::plan).
    #[error("{app} [{}] is not computed: this is a plan; run the program to have its value", key.short())]
    #[non_exhaustive]
    Planned {
        /// The app asked for.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
    },
    /// A run needs its own result, directly or through others.
    #[error("a run needs its own result: {}; give the inner run other inputs", path.join(" -> "))]
    #[non_exhaustive]
    Cycle {
        /// The runs of the cycle, each as `app [short key]`, from the run that
        /// was asked for back to itself.
        path: Vec<String>,
    },
    /// Runs are nested so deep that the thread's stack could overflow. The runs above fail with this same error, which
    /// names none of them.
    #[error(
        "{app} [{}] would be nested in {depth} others, more than a thread's stack is sure to hold; nest the apps less deeply, or raise `max_depth` and run them on a thread with a larger stack",
        key.short()
    )]
    #[non_exhaustive]
    TooDeep {
        /// The app asked for.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
        /// The number of runs in progress above it.
        depth: usize,
    },
    /// The caller cancelled its own call.
    #[error("the call of {app} [{}] was cancelled by its caller", key.short())]
    #[non_exhaustive]
    Cancelled {
        /// The app asked for.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
    },
    /// The policy forbade computing, and no result was remembered.
    #[error(
        "{app} [{}] is not remembered ({why}); allow computing, or run it once under an ordinary policy",
        key.short()
    )]
    #[non_exhaustive]
    NotRemembered {
        /// The app asked for.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
        /// The reason why it is not remembered.
        why: String,
    },
    /// No app of that name is registered.
    #[error(
        "no app is registered as \"{}\"; registered are: {}",
        printable(name),
        join_names(known)
    )]
    #[non_exhaustive]
    UnknownApp {
        /// The name asked for.
        name: String,
        /// The registered names.
        known: Vec<String>,
    },
    /// The configuration of an app can't be changed any more.
    #[error(
        "\"{}\" has run and its configuration is frozen; copy it under another name first (`apps().copy`)",
        printable(name)
    )]
    #[non_exhaustive]
    Frozen {
        /// The registered name.
        name: String,
    },
    /// The app lacks something it needs before it can run.
    #[error("{app} is not ready: {}", missing.join("; "))]
    #[non_exhaustive]
    NotReady {
        /// The app.
        app: Arc<str>,
        /// All that is missing, also in its sub-apps.
        missing: Vec<String>,
    },
    /// A value can't be fingerprinted, so there is no key.
    #[error("{app} can't be keyed")]
    #[non_exhaustive]
    Fingerprint {
        /// The app.
        app: Arc<str>,
        /// The part, and the reason.
        source: FingerprintError,
    },
    /// A result is no longer available.
    #[error(
        "result \"{}\" of {origin} is gone: {why}; `sde.request(&app, &inputs).names(&[\"{}\"]).run()?` computes it again",
        printable(name),
        printable(name)
    )]
    #[non_exhaustive]
    Gone {
        /// The run that the map is of.
        origin: String,
        /// The result.
        name: String,
        /// The reason why it is gone.
        why: String,
    },
    /// An app's results do not match its declaration.
    #[error("{app} returned a result map that does not match its `AppInfo`: {why}")]
    #[non_exhaustive]
    Undeclared {
        /// The app.
        app: Arc<str>,
        /// The difference, and how to fix it.
        why: String,
    },
    /// An app that is not thread-safe is running elsewhere, and waiting for it could never end: the caller is a rayon
    /// worker, which may be holding up that run, or a run that it waits for.
    #[error(
        "{app} [{}] is not thread-safe, another run of it is going on, and waiting for that might never end; run it with `par_map` in place of rayon, and do not have two such apps run each other",
        key.short()
    )]
    #[non_exhaustive]
    NotThreadSafe {
        /// The app.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
    },
    /// A handle was used after its run had ended.
    #[error(
        "the handle of {app} [{}] was used after that run ended; use the handle of the run that is going on",
        key.short()
    )]
    #[non_exhaustive]
    StaleHandle {
        /// The app whose run ended.
        app: Arc<str>,
        /// The run that ended.
        key: Key,
    },
    /// An input that an app declares was not given.
    #[error(
        "{app} needs the input \"{}\"; given are: {}",
        printable(name),
        join_names(given)
    )]
    #[non_exhaustive]
    MissingInput {
        /// The app.
        app: Arc<str>,
        /// The input.
        name: String,
        /// The names of the inputs that were given.
        given: Vec<String>,
    },
    /// A value has another type than it is asked for, or given, as.
    #[error("{what} is a {is}, not a {wanted}")]
    #[non_exhaustive]
    TypeMismatch {
        /// The value: an input, a parameter or a result, and of which app.
        what: String,
        /// The type that the value has.
        is: String,
        /// The other type.
        wanted: String,
    },
    /// There is no input, parameter, slot, result or app of that name.
    #[error("{of} has no {what} \"{}\"; {}", printable(name), advise(name, known))]
    #[non_exhaustive]
    UnknownName {
        /// The app or run that was asked.
        of: String,
        /// The kind of thing that was asked for, such as "input".
        what: &'static str,
        /// The name.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
    /// A name stands for something else already.
    #[error("the name \"{}\" is taken: {why}", printable(name))]
    #[non_exhaustive]
    NameTaken {
        /// The name.
        name: String,
        /// By what, and what to do instead.
        why: String,
    },
    /// A value or call is refused, until the program is changed.
    #[error("{what} was refused: {why}")]
    #[non_exhaustive]
    Refused {
        /// The value or call.
        what: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// The cache has no entry of this key.
    #[error("there is no entry [{}]; `peek` gives the key of a run", key.short())]
    #[non_exhaustive]
    NoEntry {
        /// The key.
        key: Key,
    },
    /// The store failed.
    #[error("{doing}")]
    #[non_exhaustive]
    Archive {
        /// The action that failed.
        doing: String,
        /// The archiver's error.
        source: ArchiveError,
    },
    /// A store was needed, and none is configured.
    #[error(
        "there is no store to {doing}; open one with `sde::open(dir)`, or give one to the builder with `.store(..)`"
    )]
    #[non_exhaustive]
    NoStore {
        /// The action that needs a store.
        doing: &'static str,
    },
    /// A collective operation failed. No other works on this process set afterwards. As in all errors of ranks, a rank
    /// is given by its number in the whole program, also within a subset.
    #[error("this rank {doing}, and the others can't be reached")]
    #[non_exhaustive]
    Ranks {
        /// The action that this rank was about to begin.
        doing: String,
        /// The error of the process group.
        source: GroupError,
    },
    /// The ranks of a process set made different calls. All get this error.
    #[error("the ranks of a process set make the same collective calls in the same order, but {}", ranks.join(", "))]
    #[non_exhaustive]
    Disagree {
        /// The different calls, each with its lowest rank.
        ranks: Vec<String>,
    },
    /// A distributed app returned different results on the ranks that ran it. All of them get this error, and nothing
    /// is remembered.
    #[error(
        "{app} [{}] returned other results on rank {rank} than on the first of its process set; results of a distributed app are the same on all ranks: combine them with `gather`, or declare them with `ResultSpec::distributed`",
        key.short()
    )]
    #[non_exhaustive]
    Replicas {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
        /// The lowest rank that differs from the first.
        rank: usize,
    },
    /// An operation failed on a rank. All ranks of the process set get this error.
    #[error("on rank {rank}: {message}")]
    #[non_exhaustive]
    OnRank {
        /// The lowest rank where it failed.
        rank: usize,
        /// The error's text, with all causes.
        message: String,
    },
    /// An app made a call that needs an app which all ranks run together.
    #[error(
        "{app} [{}] {doing}, and only an app that all ranks run together may do that: declare {app} `distributed`, with `#[sde::app(distributed)]` or `.distributed()` on its `AppInfo`",
        key.short()
    )]
    #[non_exhaustive]
    NotDistributed {
        /// The app that must be declared `distributed`.
        app: Arc<str>,
        /// The key of the run.
        key: Key,
        /// The call that it made.
        doing: String,
    },
    /// An app that all ranks run together was called with many inputs at once.
    #[error(
        "`par_map` and `par_call` give each item to one rank or thread, and {app} {why}, so that all ranks run it together: map it with `par_map_on_sets`, run it for one item after another, or with `split_for` on parts of the ranks, each with items of its own"
    )]
    #[non_exhaustive]
    RunTogether {
        /// The app.
        app: Arc<str>,
        /// The reason why all ranks run it together.
        why: String,
    },
    /// A collective operation was called where other ranks can't join in.
    #[error(
        "this rank {doing}, where other ranks can't join in: collective calls belong on the thread that built the engine, in no `par_map`, `join` or rayon job; to have ranks do different things at once, use `split_for`"
    )]
    #[non_exhaustive]
    NotCollective {
        /// The action that this rank was about to begin.
        doing: String,
    },
    /// A process set was used after it was released.
    #[error("the process set was released; use the `Sde` that it was split from")]
    Released,
    /// An array, or another value that lies on several ranks, was used on another process set.
    #[error(
        "the value lies on another process set, or on one that was released; run the app that made it on this one, which gives it as it lies here"
    )]
    OtherSet,
    /// A subset of the ranks asked for a value that is distributed over the process set that was split.
    #[error(
        "{app} [{}] lies on the larger process set, and the split did not move it: name it where the ranks are split (`Transfer::of_apps`), or ask for it after the release",
        key.short()
    )]
    #[non_exhaustive]
    LeftBehind {
        /// The app asked for.
        app: Arc<str>,
        /// The run asked for.
        key: Key,
    },
    /// A process set was used while it is split.
    #[error(
        "this rank {doing} on a process set that is split; use the subset, or release it first"
    )]
    #[non_exhaustive]
    IsSplit {
        /// The action that this rank was about to begin.
        doing: String,
    },
    /// A thread for checkpoints, or the handling of signals, could not be started.
    #[error("no thread could be had to make checkpoints: {why}; call `checkpoint` instead")]
    #[non_exhaustive]
    Threads {
        /// The system's error.
        why: String,
    },
}
