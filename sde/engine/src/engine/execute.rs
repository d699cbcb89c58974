//! Running the body, with no lock, guard or shard held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Engine;
use super::handle::Handle;
use super::run_state::Run;
use crate::app::{BodyTime, Frame, OnThread, ThreadContext};
use crate::cache::RunFlight;
use crate::entry::{Record, RecordHead};
use crate::error::AppError;
use crate::event::{Event, RunId};
use crate::inputs::Call;
use crate::key::EncodedCursor;
use crate::machine;
use crate::result_map::ResultMap;
use crate::sync::user_code;

/// A body that has ended.
pub(crate) struct Ran {
    pub(super) returned: thread::Result<Result<ResultMap, AppError>>,
    pub(super) record: Record,
    /// How long the body took without the runs that were nested in it.
    pub(super) own: Duration,
    /// The body was told that nobody wants the result any more.
    pub(super) told_unwanted: bool,
    /// The body was told so, or nobody wants the result now: it may have failed for that only, and a caller may want it
    /// by now.
    pub(super) unwanted: bool,
    /// A nested run failed that may go well in another process.
    pub(super) rests_on_failure: bool,
    pub(super) epoch: u64,
}

/// The computation that a call has made: its number, the epoch in which it began, and its own time.
pub(crate) type Computation = (RunId, u64, Duration);

impl Ran {
    pub(crate) fn computation(&self) -> Computation {
        (self.record.run, self.epoch, self.own)
    }
}

/// A run on top of this thread's stack.
pub(crate) struct Begun {
    frame: Arc<Frame>,
    _on_thread: OnThread,
}

impl Engine {
    /// Puts a run on top of this thread's stack: it is known to be going on here before anybody is told of it.
    pub(crate) fn begin(&self, run: &Run<'_>, flight: Option<&Arc<RunFlight>>) -> Begun {
        let frame = Arc::new(Frame::new(
            Arc::clone(&run.app.resolved),
            run.key,
            self.id(),
            run.parent.clone(),
            run.above.clone(),
            run.from.cancel_tokens().to_vec(),
            flight.map(|flight| Arc::clone(flight) as _),
        ));
        if flight.is_none() {
            run.cache.unclaimed.store(true, Ordering::Release);
        }
        Begun {
            _on_thread: ThreadContext::on_top(Arc::clone(&frame)).enter(),
            frame,
        }
    }

    pub(crate) fn execute(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        begun: &Begun,
        number: RunId,
    ) -> Ran {
        let (resolved, frame) = (&run.app.resolved, &begun.frame);
        let epoch = self.epoch();
        let set = run.from.shared_ranks().map(|ranks| ranks.id());
        frame.states.begin(number, set);
        self.tell(|| Event::Started {
            app: Arc::clone(&resolved.name),
            key: run.key,
            run: number,
        });
        let handle = Handle::new(
            Arc::clone(run.from.engine()),
            Some(Arc::clone(frame)),
            run.from.shared_ranks().cloned(),
        );
        user_code("a body");
        let inputs = call.summaries(&mut EncodedCursor::new(&run.encoded));
        let made_at = machine::now();
        let time = BodyTime::begin();
        let stretch = crate::stretch!("execute", app = &*resolved.name, key = %run.key.short());
        let returned = catch_unwind(AssertUnwindSafe(|| call.compute(&*run.app.app, &handle)));
        match &returned {
            Ok(Ok(_)) => stretch.end("returned"),
            Ok(Err(_)) => stretch.end("failed"),
            Err(_) => stretch.end("panicked"),
        }
        let (took, own) = time.end();
        run.cache.counters.spent(own);
        let said = Duration::from_nanos(frame.said.load(Ordering::Relaxed));
        if self.sharing.is_some() && matches!(returned, Ok(Ok(_))) {
            run.cache.cost.note(own);
        }
        let told_unwanted = frame.was_told_unwanted();
        let unwanted = told_unwanted || frame.is_unwanted();
        frame.end();
        let saw = &frame.dependencies;
        let (calls, dependencies) = saw.take();
        // A caller that goes on after a failure depends on everything that the failed run depended on.
        if let (false, Some(parent)) = (matches!(returned, Ok(Ok(_))), &run.parent) {
            let more = dependencies.iter().cloned();
            parent.dependencies.add(more, saw.saw_nondeterminism());
            parent.dependencies.note_anew(saw.is_anew());
            if saw.saw_failure() {
                parent.dependencies.note_failure();
            }
        }
        // A result that was made without another's may come out otherwise. A failure does not, as long as that one fails.
        let without = saw.saw_failure() && matches!(returned, Ok(Ok(_)));
        let head = RecordHead {
            calls: calls.into(),
            nondeterministic: saw.saw_nondeterminism() || without || resolved.nondeterministic,
            anew: saw.is_anew(),
            took: took.max(said),
            ..run.head(number, made_at, dependencies)
        };
        let record = Record::new(head, inputs);
        Ran {
            returned,
            record,
            own: own.max(said),
            told_unwanted,
            unwanted,
            rests_on_failure: saw.saw_failure(),
            epoch,
        }
    }
}
