//! Writing a large save while the rest of it is still being encoded.
//!
//! Encoding and hashing keep a processor busy and the disk idle, writing the other way round. So
//! once a save has more than one part, a thread writes the parts, and the next one is encoded
//! meanwhile. It is a thread of its own and not one of rayon's, which may be busy with the computation
//! for hours. A save of one part is written where it is asked for.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use sde::ArchiveError;

use crate::committer::{Committer, Save};
use crate::frame::{NewFrame, Written};

/// One save, whose parts are written as they come.
pub(crate) struct Ahead<'scope, 'env: 'scope> {
    to: &'env Committer,
    scope: &'scope Scope<'scope, 'env>,
    writer: Writer<'scope, 'env>,
}

enum Writer<'scope, 'env> {
    Here(Save<'env>),
    Thread {
        /// Takes a part when the one before it is written: no more than two are in memory.
        parts: SyncSender<Vec<NewFrame>>,
        thread: ScopedJoinHandle<'scope, Result<Save<'env>, ArchiveError>>,
    },
    /// The save has failed.
    Failed(ArchiveError),
}

impl<'scope, 'env> Ahead<'scope, 'env> {
    pub(crate) fn new(to: &'env Committer, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self {
            to,
            scope,
            writer: Writer::Here(to.begin()),
        }
    }

    /// Hands on a part. It may fail later, and then the next call or the last says so.
    pub(crate) fn part(&mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        if matches!(self.writer, Writer::Here(_)) {
            self.start();
        }
        match &mut self.writer {
            // The system has no thread to give.
            Writer::Here(save) => save.part(frames),
            Writer::Thread { parts, .. } => match parts.send(frames) {
                Ok(()) => Ok(()),
                Err(_) => self.stop().map(drop),
            },
            Writer::Failed(error) => Err(error.clone()),
        }
    }

    /// Writes the last part and makes all of them durable; gives what was written.
    pub(crate) fn finish(mut self, frames: Vec<NewFrame>) -> Result<Vec<Written>, ArchiveError> {
        self.stop()?.finish(frames)
    }

    /// Has a thread write from now on, if there is one. Nothing has been written before.
    fn start(&mut self) {
        let (parts, next) = sync_channel::<Vec<NewFrame>>(0);
        let mut save = self.to.begin();
        let write = move || {
            next.iter().try_for_each(|frames| save.part(frames))?;
            Ok(save)
        };
        let thread = Builder::new().name("sde-save".to_owned());
        if let Ok(thread) = thread.spawn_scoped(self.scope, write) {
            self.writer = Writer::Thread { parts, thread };
        }
    }

    /// Waits until all parts are written.
    fn stop(&mut self) -> Result<Save<'env>, ArchiveError> {
        let gone = ArchiveError::Other("this save has ended already".to_owned());
        let ended = match std::mem::replace(&mut self.writer, Writer::Failed(gone)) {
            Writer::Here(save) => Ok(save),
            Writer::Thread { parts, thread } => {
                drop(parts);
                match thread.join() {
                    Ok(ended) => ended,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Writer::Failed(error) => Err(error),
        };
        if let Err(error) = &ended {
            self.writer = Writer::Failed(error.clone());
        }
        ended
    }
}
