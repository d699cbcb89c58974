//! The loop behind all calls for many items.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::panicking;
use std::time::Instant;

use super::Handle;
use crate::app::{ThreadContext, add_waiting};
use crate::parallel::{Finally, new_thread};
use crate::sync::turn;

/// A loop over items that threads take one by one.
pub(crate) struct Loop<'a, N> {
    /// What observers are told of.
    pub(crate) label: &'a str,
    /// How many threads can work on it.
    pub(crate) threads: usize,
    /// The number of items, when so many are done; `None` if it is not known.
    pub(crate) total: N,
    /// How many items are put off before some are waited for.
    pub(crate) most_deferred: usize,
}

impl<N: Fn(usize) -> Option<usize> + Sync> Loop<'_, N> {
    /// Does items, each with its number, until none is left, one panics, or `sink` gives `false`: then nothing more
    /// begins. `sink` gets the results one after another.
    ///
    /// An item for which `each` gives none is put off: another process is at it. It comes again after the others,
    /// with the word to wait for that process.
    pub(crate) fn run<T: Send, R>(
        &self,
        sde: &Handle,
        items: impl Iterator<Item = (usize, T)> + Send,
        each: impl Fn(&T, bool) -> Option<R> + Sync,
        sink: impl FnMut(usize, &T, R) -> bool + Send,
    ) {
        let nested = ThreadContext::here().is_beside();
        let progress = |done, total| sde.engine().progress(self.label, done, total, nested);
        let begun = Instant::now();
        if let Some(total) = (self.total)(0) {
            progress(0, total);
        }
        let items = Mutex::new(Items {
            new: items.fuse(),
            deferred: VecDeque::new(),
            most_deferred: self.most_deferred,
        });
        let sink = Mutex::new((sink, 0));
        let stopped = AtomicBool::new(false);
        sde.share(self.threads.saturating_sub(1), || {
            // The other threads take up nothing more when one panics.
            let _on_panic = Finally(|| _ = stopped.fetch_or(panicking(), Ordering::Relaxed));
            while !stopped.load(Ordering::Relaxed) {
                let Some(((at, item), waits)) = turn(&items).next() else {
                    return;
                };
                let Some(result) = each(&item, waits) else {
                    turn(&items).deferred.push_back((at, item));
                    continue;
                };
                let done = {
                    let mut turn = turn(&sink);
                    let (sink, done) = &mut *turn;
                    if !sink(at, &item, result) {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    *done += 1;
                    *done
                };
                if let Some(total) = (self.total)(done) {
                    progress(done, total);
                }
            }
        });
        let done = turn(&sink).1;
        let total = (self.total)(done);
        if stopped.into_inner() && total.is_some_and(|total| done < total) {
            // The items done are all there are.
            progress(done, done);
        }
        if !nested {
            let (items, took, label) = (total.unwrap_or(done), begun.elapsed(), self.label);
            tracing::info!(target: "sde", done, items, ?took, "went through {label}");
        }
    }
}

struct Items<I: Iterator> {
    new: Fuse<I>,
    /// Items that another process was at.
    deferred: VecDeque<I::Item>,
    most_deferred: usize,
}

impl<I: Iterator> Items<I> {
    /// The next item, and whether to wait for another process that is at it.
    fn next(&mut self) -> Option<(I::Item, bool)> {
        let may_defer = self.deferred.len() < self.most_deferred;
        let new = if may_defer { self.new.next() } else { None };
        match new {
            Some(new) => Some((new, false)),
            None => Some((self.deferred.pop_front()?, true)),
        }
    }
}

impl Handle {
    /// Does items of a list on several threads, from the `first` on and around; the results are in the order of the
    /// items. Nothing more begins once `goes_on` refuses a result: items not begun are `None`.
    pub(crate) fn in_order<T: Sync, R: Send>(
        &self,
        label: &str,
        items: &[T],
        first: usize,
        each: impl Fn(&T, bool) -> Option<R> + Sync,
        goes_on: impl Fn(&R) -> bool + Sync,
    ) -> Vec<Option<R>> {
        let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let work = Loop {
            label,
            threads: items.len(),
            total: |_| Some(items.len()),
            most_deferred: usize::MAX,
        };
        let first = first.checked_rem(items.len()).unwrap_or(0);
        let numbered = items.iter().enumerate();
        let around = numbered.clone().skip(first).chain(numbered.take(first));
        let keep = |at: usize, _: &&T, result| {
            let goes_on = goes_on(&result);
            results[at] = Some(result);
            goes_on
        };
        work.run(self, around, |item, waits| each(item, waits), keep);
        results
    }

    /// Does work on this thread and on up to so many helpers. On a rayon worker, and nested in a run on one, on this thread alone:
    /// it would have to wait for helpers, which may wait for that worker.
    pub(super) fn share(&self, helpers: usize, work: impl Fn() + Sync) {
        let place = ThreadContext::here();
        let helpers = if place.is_on_rayon(self.frame()) {
            0
        } else {
            helpers
        };
        let place = place.sharing();
        let waited = self.engine().helpers().share(helpers, &|| {
            let _on_thread = place.clone().enter();
            work();
        });
        add_waiting(waited);
    }
}

/// Does work on a thread of its own, while this one does something else meanwhile, which can ask whether the work still
/// goes on.
///
/// # Errors
/// If that thread can't be started: then nothing is done.
pub(crate) fn led<T: Send, R>(
    work: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(&dyn Fn() -> bool) -> R,
) -> std::io::Result<(T, R)> {
    let place = ThreadContext::here();
    std::thread::scope(|scope| {
        let worker = new_thread().spawn_scoped(scope, || {
            let _on_thread = place.enter();
            work()
        })?;
        let done = meanwhile(&|| !worker.is_finished());
        match worker.join() {
            Ok(worked) => Ok((worked, done)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
