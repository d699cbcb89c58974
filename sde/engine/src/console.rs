//! The console of an engine: it shows a person at the terminal warnings, and how far long work has come.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::error::{printable, told};
use crate::event::{Event, Observer};
use crate::sync::lock;
use crate::sync::locks::user_code;

/// The observer of [`Builder::for_program`](crate::Builder::for_program).
#[derive(Clone)]
pub(crate) struct Console {
    /// Whether to tell how far the program is.
    progress: bool,
    /// Whether bars can be shown.
    bars: bool,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    /// Lines to show once the engine is built.
    held_back: Option<Vec<String>>,
    warnings: HashSet<String>,
    work: Option<Work>,
    last: Option<Work>,
    /// How many works have begun.
    works: u64,
    /// Whether a thread is there that shows the bar of long work.
    has_timer: bool,
    /// Whether the process is about to end.
    has_ended: bool,
}

/// The consoles of the process. Stores have no engine to tell of trouble.
static CONSOLES: Mutex<Vec<Weak<Mutex<Shown>>>> = Mutex::new(Vec::new());

/// Warns of something: a `tracing` event, or if nobody wants that, a line on a console of the process. For stores.
#[doc(hidden)]
#[macro_export]
macro_rules! warning {
    ($($message:tt)+) => {
        if !$crate::__private::is_held_back(format_args!($($message)+)) {
            match $crate::__private::tracing::enabled!(target: "sde", $crate::__private::tracing::Level::WARN) {
                true => $crate::__private::tracing::warn!(target: "sde", $($message)+),
                false => $crate::__private::show_warning(format_args!($($message)+)),
            }
        }
    };
}

thread_local! {
    /// The warnings of a job of this thread that holds locks.
    static HELD_BACK: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Does a job that holds locks, and tells its warnings after it: a subscriber of `tracing` may use the store.
#[doc(hidden)]
pub fn warnings_after<T>(job: impl FnOnce() -> T) -> T {
    struct Tell;
    impl Drop for Tell {
        fn drop(&mut self) {
            let warnings = HELD_BACK.take();
            let warnings = warnings.into_iter().flatten();
            warnings.for_each(|warning| warning!("{warning}"));
        }
    }
    // A thread that is ending tells them at once.
    let is_first = HELD_BACK.try_with(|held_back| {
        let mut held_back = held_back.borrow_mut();
        let is_first = held_back.is_none();
        held_back.get_or_insert_default();
        is_first
    });
    let _tell = is_first.is_ok_and(|is_first| is_first).then(|| Tell);
    job()
}

/// Holds back a warning that is told [later](warnings_after), and says whether it is.
#[doc(hidden)]
pub fn is_held_back(message: std::fmt::Arguments<'_>) -> bool {
    let held_back = HELD_BACK.try_with(|held_back| {
        let is_held_back = held_back.borrow().is_some();
        let message = is_held_back.then(|| message.to_string());
        if let Some(warnings) = &mut *held_back.borrow_mut() {
            warnings.extend(message);
        }
        is_held_back
    });
    let is_held_back = held_back.unwrap_or(false);
    if !is_held_back {
        user_code("what hears of a warning");
    }
    is_held_back
}

/// Shows a warning on a console of the process: the first whose engine is built.
#[doc(hidden)]
pub fn show_warning(message: std::fmt::Arguments<'_>) {
    let consoles = lock(&CONSOLES);
    let mut all: Vec<_> = consoles.iter().filter_map(Weak::upgrade).collect();
    drop(consoles);
    all.sort_by_key(|shown| lock(shown).held_back.is_some());
    if let Some(shown) = all.first() {
        warn(shown, &message.to_string());
    }
}

/// Some long work, and its bar once it has taken a while.
struct Work {
    label: Arc<str>,
    total: u64,
    done: u64,
    /// How many of these have failed, which the bar looks up when it is drawn.
    failed: Arc<AtomicU64>,
    bar: Option<ProgressBar>,
}

/// After this many different warnings the rest is left to logs: a program that goes on in spite of them must not fill
/// the terminal.
const WARNINGS: usize = 100;

/// Work that is done by then shows no bar.
const SHORT: Duration = Duration::from_millis(500);

impl Console {
    /// Lines from before the engine is built are held back: a store is opened before.
    pub(crate) fn new() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let shown = Shown {
            held_back: Some(Vec::new()),
            ..Shown::default()
        };
        let shown = Arc::new(Mutex::new(shown));
        let mut consoles = lock(&CONSOLES);
        consoles.retain(|console| console.strong_count() > 0);
        consoles.push(Arc::downgrade(&shown));
        Self {
            progress: true,
            bars: !is_set("CI") && !is_dumb && std::io::stderr().is_terminal(),
            shown,
        }
    }

    pub(crate) fn without_progress(mut self) -> Self {
        self.progress = false;
        self
    }

    pub(crate) fn begin(&self) {
        let held_back = lock(&self.shown).held_back.take();
        for line in held_back.into_iter().flatten() {
            show(&self.shown, line);
        }
    }
}

impl Observer for Console {
    fn observe(&self, event: &Event) {
        match event {
            Event::Warning { message } => warn(&self.shown, message),
            Event::Signal { signal, ends } => {
                let then = match ends {
                    true => ", then ending; once more ends at once",
                    false => "",
                };
                if *ends {
                    // A bar would stay on the terminal.
                    let mut shown = lock(&self.shown);
                    shown.has_ended = true;
                    let ended = shown.end_work();
                    drop(shown);
                    ended.iter().for_each(ProgressBar::finish_and_clear);
                }
                show(&self.shown, format!("{signal}: saving what is new{then}"));
            }
            Event::ToldToStop { by, host, left } => {
                let line = match left.as_secs() {
                    0 => format!("told to stop by {by} on {host}: nothing new begins"),
                    left => format!(
                        "told to stop in {left} s by {by} on {host}: nothing begins that takes longer"
                    ),
                };
                show(&self.shown, line);
            }
            Event::Repeated { runs, took, ended } if self.progress => {
                show(&self.shown, repeated(*runs, *took, *ended));
            }
            Event::Progress {
                label,
                done,
                failed,
                total,
                nested: false,
            } if self.progress && self.bars => {
                self.progress(label, [*done as u64, *failed as u64], *total as u64);
            }
            _ => {}
        }
    }

    fn hears_hits(&self) -> bool {
        false
    }
}

impl Console {
    fn progress(&self, label: &Arc<str>, [done, failed]: [u64; 2], total: u64) {
        let mut shown = lock(&self.shown);
        let is_same = |work: &Work| work.label == *label && work.total == total;
        let mut ended = None;
        if !shown.work.as_ref().is_some_and(is_same) {
            // Threads tell of their progress in any order: this one may be late. New work begins below half.
            if shown.last.as_ref().is_some_and(is_same) && 2 * done >= total {
                return;
            }
            ended = shown.end_work();
            if done < total && !shown.has_ended {
                let work = Work {
                    label: Arc::clone(label),
                    total,
                    done,
                    failed: Arc::default(),
                    bar: None,
                };
                shown.begin_work(work, &self.shown);
            }
        }
        if let Some(work) = &mut shown.work {
            work.done = work.done.max(done);
            work.failed.fetch_max(failed, Ordering::Relaxed);
            let (bar, done) = (work.bar.clone(), work.done);
            if done >= total {
                ended = shown.end_work();
            }
            drop(shown);
            bar.iter().for_each(|bar| bar.set_position(done));
        }
        ended.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// What is told of runs that are made again though they failed before.
fn repeated(runs: u64, took: Duration, ended: bool) -> String {
    let took = match took < Duration::from_secs(1) {
        true => "less than a second".to_owned(),
        false => HumanDuration(took).to_string(),
    };
    match ended {
        false => format!(
            "a run that failed before ({took}) is computed again, and so are others: `keep_failures` leaves them"
        ),
        true => format!(
            "{runs} runs had failed before ({took} in all) and were computed again: `keep_failures` leaves them"
        ),
    }
}

/// Shows the bar of long work.
fn show_bars(weak: &Weak<Mutex<Shown>>, mut number: u64) {
    loop {
        std::thread::sleep(SHORT);
        let Some(shown) = weak.upgrade() else {
            return;
        };
        let mut shown = lock(&shown);
        let (is_new, works) = (shown.works != number, shown.works);
        match &mut shown.work {
            Some(_) if is_new => number = works,
            work => {
                if let Some(work) = work {
                    work.bar.get_or_insert(work.new_bar());
                }
                shown.has_timer = false;
                return;
            }
        }
    }
}

fn warn(shown: &Mutex<Shown>, message: &str) {
    if tracing::enabled!(target: "sde", tracing::Level::WARN) {
        return;
    }
    let warnings = {
        let mut shown = lock(shown);
        if shown.warnings.len() >= WARNINGS || !shown.warnings.insert(message.to_owned()) {
            return;
        }
        shown.warnings.len()
    };
    show(shown, format!("warning: {}", told(message)));
    if warnings == WARNINGS {
        let more = "warning: no more warnings are shown; a `tracing` subscriber gets them all";
        show(shown, more.to_owned());
    }
}

/// Writes a line, above the bar if there is one. Nothing is locked meanwhile: a thread that holds standard error must
/// not hold up the engine. A failed write does not end the program.
fn show(shown: &Mutex<Shown>, text: String) {
    let mut shown = lock(shown);
    if let Some(held_back) = &mut shown.held_back {
        held_back.push(text);
        return;
    }
    let bar = shown.work.as_ref().and_then(|work| work.bar.clone());
    drop(shown);
    let write = || {
        let _ = writeln!(std::io::stderr(), "sde: {text}");
    };
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl Shown {
    fn begin_work(&mut self, work: Work, own: &Arc<Mutex<Self>>) {
        self.works += 1;
        self.work = Some(work);
        if self.has_timer {
            return;
        }
        let (weak, number) = (Arc::downgrade(own), self.works);
        let timer = std::thread::Builder::new().name("sde-console".to_owned());
        // Without a thread there is no bar.
        self.has_timer = timer.spawn(move || show_bars(&weak, number)).is_ok();
    }

    /// Gives the bar, which is to be cleared with nothing locked.
    fn end_work(&mut self) -> Option<ProgressBar> {
        self.last = self.work.take();
        self.last.as_mut()?.bar.take()
    }
}

impl Work {
    /// A bar with an estimate of the time left. Its rate is that since the bar is there: quick steps before it, as
    /// loading is, say nothing of the rest.
    fn new_bar(&self) -> ProgressBar {
        let (at_first, since) = (self.done, Instant::now());
        let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let done = state.pos().saturating_sub(at_first);
            let left = state.len().unwrap_or_default().saturating_sub(state.pos());
            if done > 0 {
                let seconds = since.elapsed().as_secs_f64() / done as f64 * left as f64;
                // A failed write shows nothing.
                let _ = write!(
                    out,
                    "{} left",
                    HumanDuration(Duration::from_secs_f64(seconds))
                );
            }
        };
        let failures = Arc::clone(&self.failed);
        let failed = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let failed = failures.load(Ordering::Relaxed);
            if failed > 0 {
                let _ = write!(out, ", {failed} failed");
            }
        };
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
        // The template is a constant; without it the bar has indicatif's own look.
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}{failed}  {left}")
        {
            bar.set_style(style.with_key("left", left).with_key("failed", failed));
        }
        bar.set_message(printable(&self.label));
        bar.set_position(self.done);
        bar.enable_steady_tick(SHORT);
        bar
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use crate::sync::lock;

    #[test]
    fn a_warning_is_told_with_no_lock_held() {
        struct Guarded;
        let mutex = Mutex::new(Guarded);
        let told = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock(&mutex);
            warning!("a subscriber may use the engine");
        }));
        assert!(told.is_err());
    }
}
