//! What `sde stop` tells this process through its store.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::Engine;
use super::background::Background;
use crate::checkpoint::{Archiver, SavePolicy, StopRequest};
use crate::event::Event;

impl Engine {
    /// Has the store tell this engine when people tell the process to stop. One of several ranks is not told: all of
    /// them would have to be at once.
    pub(super) fn heed(self: &Arc<Self>, archiver: &dyn Archiver) {
        if self.rank.is_some() {
            return;
        }
        let engine = Arc::downgrade(self);
        archiver.heed(Arc::new(move |told| {
            let engine = engine.upgrade();
            engine.is_some_and(|engine| {
                engine.is_told(told);
                true
            })
        }));
    }

    /// Makes this process known as one that is at work and can be told to stop.
    pub(super) fn attend(&self) -> Option<Box<dyn Send + Sync>> {
        let archiver = self.archiver().filter(|_| self.rank.is_none());
        archiver?.attend()
    }

    fn is_told(self: &Arc<Self>, told: Option<&StopRequest>) {
        let Some(told) = told else {
            // What has ended does not go on: its callers know that it is over.
            if self.job.time_left().is_some_and(|left| !left.is_zero()) {
                self.job.tell_end(None);
            }
            return;
        };
        let left = told.at.duration_since(SystemTime::now());
        let left = left.unwrap_or(Duration::ZERO);
        // A time that no clock reaches is no end.
        self.job.tell_end(Instant::now().checked_add(left));
        self.tell(|| Event::ToldToStop {
            by: Arc::from(&*told.by),
            host: Arc::from(&*told.host),
            left,
        });
        if self.policy != SavePolicy::Never && Background::start(self).is_ok() {
            self.background.want();
        }
    }
}
