//! Lending borrowed work to other threads, for as long as the lender waits.
//!
//! Helper threads outlive any borrow, so the compiler can't see that they are
//! done with the work before it is gone. The lender sees to it: helpers may begin
//! only while the ticket is open and are counted; the lender closes the ticket and
//! waits for the count to be zero before it returns, by panic too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::Finally;
use crate::sync::{MutexGuard, lock, wait};

/// A piece of work that helpers may take part in.
pub(crate) struct Ticket {
    /// Valid for as long as the ticket is open, or a helper is counted in `active`.
    work: *const (dyn Fn() + Sync),
    state: Mutex<TicketState>,
    ended: Condvar,
}

struct TicketState {
    open: bool,
    active: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `work` points to something `Sync`, and is used only as its field says.
unsafe impl Send for Ticket {}
// SAFETY: as above; the rest is behind a mutex.
unsafe impl Sync for Ticket {}

/// Opens a ticket for `work`, has it offered, does the work on this thread too, and returns when nobody works on it any
/// more. Gives how long it waited for helpers.
pub(super) fn scope(work: &(dyn Fn() + Sync), offer: impl FnOnce(&Arc<Ticket>)) -> Duration {
    // SAFETY: the two types differ in a lifetime only. The pointer is not used
    // after this function returns or unwinds: `closing` waits for all helpers.
    let erased = unsafe {
        std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(
            work,
        )
    };
    let ticket = Arc::new(Ticket {
        work: erased,
        state: Mutex::new(TicketState {
            open: true,
            active: 0,
            panic: None,
        }),
        ended: Condvar::new(),
    });
    let closing = Finally(|| {
        let mut state = ticket.lock();
        state.open = false;
        while state.active > 0 {
            state = wait(&ticket.ended, state);
        }
    });
    offer(&ticket);
    work();
    let waits = Instant::now();
    drop(closing);
    let panic = ticket.lock().panic.take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    waits.elapsed()
}

impl Ticket {
    /// Takes part in the work, if it is still open.
    pub(crate) fn work(&self) {
        {
            let mut state = self.lock();
            if !state.open {
                return;
            }
            state.active += 1;
        }
        // SAFETY: the ticket was open and this thread is counted, so the lender is
        // in `scope` until the count goes down below.
        let work = unsafe { &*self.work };
        let panic = catch_unwind(AssertUnwindSafe(work)).err();
        let mut state = self.lock();
        state.active -= 1;
        if state.panic.is_none() {
            state.panic = panic;
        }
        drop(state);
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, TicketState> {
        lock(&self.state)
    }
}
