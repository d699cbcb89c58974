//! How a process learns that it is told to stop.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sde::archiver::{StopListener, StopRequest};

use super::request::{self, Version};
use crate::format::id::UniqueId;
use crate::locks::lock;

/// What a store's processes are asked to do.
pub(super) struct Heed {
    store: PathBuf,
    file: PathBuf,
    state: Mutex<HeedState>,
}

#[derive(Default)]
struct HeedState {
    /// The file that was read last, whether or not it could be followed.
    seen: Option<Version>,
    told: Option<StopRequest>,
    listeners: Vec<StopListener>,
}

impl Heed {
    pub(super) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            file: request::path(store),
            state: Mutex::default(),
        }
    }

    /// Tells this function from now on what is asked of this process, and what was asked of it before.
    pub(super) fn listen(&self, listener: StopListener) {
        let told = {
            let mut state = lock(&self.state);
            state.listeners.push(Arc::clone(&listener));
            state.told.clone()
        };
        if let Some(told) = told {
            listener(Some(&told));
        }
    }

    /// Looks whether anything is asked of the process with this lease. Where nothing is, this takes one call of the system.
    pub(super) fn look(&self, id: &UniqueId) {
        let Ok(now) = request::version(&self.file) else {
            return;
        };
        if std::mem::replace(&mut lock(&self.state).seen, now) == now {
            return;
        }
        let request = request::read(&self.store).unwrap_or_else(|why| {
            sde::warning!(
                "{} is not followed: {why}; `sde stop` writes a new one",
                self.file.display()
            );
            None
        });
        let told = request.and_then(|(_, request)| request.to(id));
        let listeners = {
            let mut state = lock(&self.state);
            if state.told == told {
                return;
            }
            state.told = told.clone();
            state.listeners.clone()
        };
        let mut gone = listeners;
        gone.retain(|listener| !listener(told.as_ref()));
        let is_gone = |of: &StopListener| gone.iter().any(|gone| Arc::ptr_eq(of, gone));
        lock(&self.state)
            .listeners
            .retain(|listener| !is_gone(listener));
    }
}
