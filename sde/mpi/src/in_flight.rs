//! Buffers that MPI reads or writes while the program goes on.
//!
//! If a rank has left, an operation that needs it never completes, and MPI may write to its buffers until it is
//! finalized. So buffers are not on a stack, nor in a box that might be dropped: they are given up when the operation
//! starts, and taken back when it is complete.

#![allow(
    unsafe_code,
    reason = "rsmpi gives no way to take a buffer back from a request, or to give one up"
)]

use mpi::request::{Request, StaticScope};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination};
use mpi::{Rank, Tag};

/// An operation, and the buffers that MPI uses until it is complete.
pub(crate) struct InFlight {
    request: Option<Request<'static, [u8], StaticScope>>,
    send: *mut [u8],
    receive: *mut [u8],
}

impl InFlight {
    /// Starts an all-gather, to which each rank gives the same number of bytes.
    pub(crate) fn gather(communicator: &impl CommunicatorCollectives, mine: Vec<u8>) -> Self {
        let size = usize::try_from(communicator.size()).unwrap_or(1);
        let all = vec![0; mine.len() * size];
        let send = Box::into_raw(mine.into_boxed_slice());
        let receive = Box::into_raw(all.into_boxed_slice());
        // SAFETY: both pointers come from boxes that nobody else has, and they are turned into
        // boxes again only in `take`, after the request is complete and these references are gone.
        let (from, to) = unsafe { (&*send, &mut *receive) };
        let request = communicator.immediate_all_gather_into(StaticScope, from, to);
        Self {
            request: Some(request),
            send,
            receive,
        }
    }

    /// Starts to send bytes to a rank.
    pub(crate) fn send(
        communicator: &impl Communicator,
        to: Rank,
        tag: Tag,
        what: Vec<u8>,
    ) -> Self {
        let send = Box::into_raw(what.into_boxed_slice());
        let receive = Box::into_raw(Vec::new().into_boxed_slice());
        // SAFETY: as in `gather`.
        let from = unsafe { &*send };
        let process = communicator.process_at_rank(to);
        let request = process.immediate_send_with_tag(StaticScope, from, tag);
        Self {
            request: Some(request),
            send,
            receive,
        }
    }

    /// The received bytes, once, if the operation is complete.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        match self.request.take()?.test() {
            Ok(_) => {
                // SAFETY: both are from `Box::into_raw`; the request is gone, with the references
                // it had, and `take` comes here once, since the request is `None` from now on.
                let buffers = unsafe { (Box::from_raw(self.send), Box::from_raw(self.receive)) };
                Some(buffers.1.into_vec())
            }
            Err(request) => {
                self.request = Some(request);
                None
            }
        }
    }
}

/// Leaves an incomplete operation and its buffers to MPI for good. (Dropping an incomplete request panics.)
impl Drop for InFlight {
    fn drop(&mut self) {
        std::mem::forget(self.request.take());
    }
}
