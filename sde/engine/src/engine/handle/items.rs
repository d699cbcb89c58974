//! The loop behind all calls for many items.

use std::any::Any;
use std::collections::VecDeque;
use std::iter::Fuse;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::panicking;
use std::time::Instant;

use super::super::SoFar;
use super::Handle;
use crate::app::{ThreadContext, add_waiting};
use crate::error::{Error, panic_text};
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

/// How an item of a loop has ended.
pub(crate) enum Ended<R> {
    Done(R),
    Failed(R),
    /// There is too little time for it.
    NotStarted(R),
    /// Another process is at it. It comes again after the others, with the word to wait for that process.
    Elsewhere,
}

impl<T> Ended<Result<T, Error>> {
    pub(crate) fn of(result: Result<T, Error>) -> Self {
        match &result {
            Ok(_) => Self::Done(result),
            Err(error) if error.is_not_started() => Self::NotStarted(result),
            Err(_) => Self::Failed(result),
        }
    }

    pub(crate) fn and_then<U>(
        self,
        then: impl FnOnce(T) -> Result<U, Error>,
    ) -> Ended<Result<U, Error>> {
        match self {
            Self::Done(result) | Self::Failed(result) | Self::NotStarted(result) => {
                Ended::of(result.and_then(then))
            }
            Self::Elsewhere => Ended::Elsewhere,
        }
    }
}

impl<N: Fn(usize) -> Option<usize> + Sync> Loop<'_, N> {
    /// Does items, each with its number, until none is left, one panics, or `sink` gives `false`: then nothing more
    /// begins. `sink` gets the results one after another. A panic has the item's name before its text.
    pub(crate) fn run<T: Send, R>(
        &self,
        sde: &Handle,
        items: impl Iterator<Item = (usize, T)> + Send,
        name: impl Fn(usize, &T) -> String + Sync,
        each: impl Fn(&T, bool) -> Ended<R> + Sync,
        sink: impl FnMut(usize, &T, R) -> bool + Send,
    ) {
        let nested = ThreadContext::here().is_beside();
        let is_planned = sde.planning().is_some();
        let progress = |so_far, total| {
            if !is_planned {
                sde.engine().progress(self.label, so_far, total, nested);
            }
        };
        let begun = Instant::now();
        if let Some(total) = (self.total)(0) {
            progress(SoFar::default(), total);
        }
        let items = Mutex::new(Items {
            new: items.fuse(),
            deferred: VecDeque::new(),
            most_deferred: self.most_deferred,
        });
        let sink = Mutex::new((sink, SoFar::default()));
        let stopped = AtomicBool::new(false);
        sde.share(self.threads.saturating_sub(1), || {
            // The other threads take up nothing more when one panics.
            let _on_panic = Finally(|| _ = stopped.fetch_or(panicking(), Ordering::Relaxed));
            while !stopped.load(Ordering::Relaxed) {
                let Some(((at, item), waits)) = turn(&items).next() else {
                    return;
                };
                let ended = catch_unwind(AssertUnwindSafe(|| each(&item, waits)))
                    .unwrap_or_else(|panic| go_on(panic, || name(at, &item)));
                let (result, done, failed) = match ended {
                    Ended::Done(result) => (result, 1, 0),
                    Ended::Failed(result) => (result, 1, 1),
                    Ended::NotStarted(result) => (result, 0, 0),
                    Ended::Elsewhere => {
                        turn(&items).deferred.push_back((at, item));
                        continue;
                    }
                };
                let so_far = {
                    let mut turn = turn(&sink);
                    let (sink, so_far) = &mut *turn;
                    if !sink(at, &item, result) {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    so_far.done += done;
                    so_far.failed += failed;
                    *so_far
                };
                if done > 0
                    && let Some(total) = (self.total)(so_far.done)
                {
                    progress(so_far, total);
                }
            }
        });
        let so_far = turn(&sink).1;
        let (done, failed) = (so_far.done, so_far.failed);
        let total = (self.total)(done);
        if total.is_some_and(|total| done < total) {
            // The items done are all there are.
            progress(so_far, done);
        }
        if !nested && !is_planned {
            let (items, took, label) = (total.unwrap_or(done), begun.elapsed(), self.label);
            tracing::info!(target: "sde", done, failed, items, ?took, "went through {label}");
        }
    }
}

/// Lets the panic of an item go on with the item's name. A panic that is no text goes on as it is: the program knows what it means.
#[allow(clippy::panic, reason = "the panic is the item's")]
fn go_on(panic: Box<dyn Any + Send>, name: impl FnOnce() -> String) -> ! {
    match panic_text(&*panic) {
        // Its message is shown once more, this time with the item.
        Some(text) => panic_any(format!("{}: {text}", name())),
        None => resume_unwind(panic),
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

/// The order in which this process goes through a list. Where other processes go through it too, each has an order of
/// its own: they rarely come to the same item at once.
fn order(items: usize, shared_by: Option<u64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items).collect();
    let Some(mut state) = shared_by else {
        return order;
    };
    for at in (1..items).rev() {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        order.swap(at, (mixed ^ (mixed >> 31)) as usize % (at + 1));
    }
    order
}

impl Handle {
    /// Does items of a list on several threads; the results are in the order of the items. Where they are shared with
    /// other processes, this one goes through them in an order of its own. Nothing more begins once `goes_on` refuses a
    /// result: items not begun are `None`.
    pub(crate) fn in_order<T: Sync, R: Send>(
        &self,
        (label, items, is_shared): (&str, &[T], bool),
        name: impl Fn(usize, &T) -> String + Sync,
        each: impl Fn(&T, bool) -> Ended<R> + Sync,
        goes_on: impl Fn(&R) -> bool + Sync,
    ) -> Vec<Option<R>> {
        let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let work = Loop {
            label,
            threads: items.len(),
            total: |_| Some(items.len()),
            most_deferred: usize::MAX,
        };
        let order = order(items.len(), is_shared.then(|| self.engine().number()));
        let numbered = order.into_iter().map(|at| (at, &items[at]));
        let keep = |at: usize, _: &&T, result| {
            let goes_on = goes_on(&result);
            results[at] = Some(result);
            goes_on
        };
        let each = |item: &&T, waits| each(item, waits);
        work.run(self, numbered, |at, item| name(at, item), each, keep);
        results
    }

    /// Does work on this thread and on up to so many helpers. On a rayon worker, and nested in a run on one, on this thread alone:
    /// it would have to wait for helpers, which may wait for that worker. So it is in a plan: it goes on in order until a call fails.
    pub(super) fn share(&self, helpers: usize, work: impl Fn() + Sync) {
        let place = ThreadContext::here();
        let helpers = if place.is_on_rayon(self.frame()) || self.planning().is_some() {
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

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn each_process_has_an_order_of_its_own() {
        assert_eq!(order(4, None), [0, 1, 2, 3]);
        let orders = [1, 2, 3].map(|number| order(100, Some(number)));
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..100));
            let others = orders.iter().filter(|other| *other != order);
            let same = |other: &Vec<usize>| other.iter().zip(order).filter(|(a, b)| a == b).count();
            assert!(others.map(same).sum::<usize>() < 20);
        }
        assert!(order(0, Some(7)).is_empty());
        assert_eq!(order(1, Some(7)), [0]);
    }
}
