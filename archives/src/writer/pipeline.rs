//! Writing a large save while the rest of it is still being encoded.
//!
//! Encoding and hashing keep a processor busy and the disk idle, writing the other way round. So
//! once a save has more than one piece, a thread writes them, and the next one is encoded
//! meanwhile. It is a thread of its own and not one of rayon's, which may be busy with the computation
//! for hours. A save of one piece is written where it is asked for.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use sde::ArchiveError;

use crate::writer::frame::NewFrame;
use crate::writer::group_commit::Save;

/// One save, whose pieces are written as they come.
pub(crate) struct PipelinedWriter<'scope, 'env: 'scope> {
    save: Save<'env>,
    scope: &'scope Scope<'scope, 'env>,
    /// Nobody before the first piece.
    writer: Option<Writer<'scope, 'env>>,
}

enum Writer<'scope, 'env> {
    Thread {
        /// Takes a piece when the one before it is written: no more than two are in memory.
        pieces: SyncSender<Vec<NewFrame>>,
        thread: ScopedJoinHandle<'scope, Result<Save<'env>, ArchiveError>>,
    },
    /// The system had no thread to give.
    Here(Save<'env>),
    /// The save has failed.
    Failed(ArchiveError),
}

impl<'scope, 'env> PipelinedWriter<'scope, 'env> {
    pub(crate) fn new(save: Save<'env>, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self {
            save,
            scope,
            writer: None,
        }
    }

    /// Hands on a piece. It may fail later, and then the next call or the last says so.
    pub(crate) fn piece(&mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        let (save, scope) = (self.save, self.scope);
        match self.writer.get_or_insert_with(|| start(save, scope)) {
            Writer::Here(save) => save.piece(frames),
            Writer::Thread { pieces, .. } => match pieces.send(frames) {
                Ok(()) => Ok(()),
                Err(_) => self.stop().map(drop),
            },
            Writer::Failed(error) => Err(error.clone()),
        }
    }

    /// Writes the last piece; then all are durable, or only readable if the save goes no further.
    pub(crate) fn finish(mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        self.stop()?.finish(frames)
    }

    /// Waits until all pieces are written.
    fn stop(&mut self) -> Result<Save<'env>, ArchiveError> {
        let ended = match self.writer.take() {
            None => Ok(self.save),
            Some(Writer::Here(save)) => Ok(save),
            Some(Writer::Thread { pieces, thread }) => {
                drop(pieces);
                match thread.join() {
                    Ok(ended) => ended,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Some(Writer::Failed(error)) => Err(error),
        };
        if let Err(error) = &ended {
            self.writer = Some(Writer::Failed(error.clone()));
        }
        ended
    }
}

/// Has a thread write from the first piece on, if there is one.
fn start<'scope, 'env>(
    save: Save<'env>,
    scope: &'scope Scope<'scope, 'env>,
) -> Writer<'scope, 'env> {
    let (pieces, next) = sync_channel::<Vec<NewFrame>>(0);
    let mut written = save;
    let write = move || {
        next.iter().try_for_each(|frames| written.piece(frames))?;
        Ok(written)
    };
    let thread = Builder::new().name("sde-save".to_owned());
    match thread.spawn_scoped(scope, write) {
        Ok(thread) => Writer::Thread { pieces, thread },
        Err(_) => Writer::Here(save),
    }
}
