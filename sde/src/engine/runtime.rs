//! The engine as its handles see it.

use std::sync::Arc;

use super::Engine;
use crate::app::{
    App, Facts, Frame, Handle, Instance, Options, Outcome, Peek, Prepared, RestsOn, Runtime,
    ScratchState, Subject,
};
use crate::error::Error;
use crate::event::Event;
use crate::inputs::{Call, Inputs};
use crate::parallel::Helpers;
use crate::result_map::{Codec, ErasedValue};

#[allow(private_interfaces, reason = "the trait is a seam inside this crate")]
impl Runtime for Engine {
    fn call(
        &self,
        from: &Handle,
        subject: &Subject<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Option<Outcome>, Error> {
        self.enter(from, subject, call, options)
    }

    fn peek(&self, subject: &Subject<'_>, inputs: &Inputs) -> Result<Peek, Error> {
        self.look_only(subject, inputs)
    }

    fn named(&self, name: &str) -> Result<Prepared, Error> {
        self.named(name)
    }

    fn prepare(&self, instance: &Instance) -> Result<Prepared, Error> {
        self.prepare_instance(instance)
    }

    fn identify(&self, app: &dyn App) -> Result<Arc<Facts>, Error> {
        self.facts_of(app)
    }

    fn load_scratch(&self, frame: &Arc<Frame>, codec: &Codec) -> Option<ErasedValue> {
        self.scratch_of(frame, codec)
    }

    fn save_scratch(&self, frame: &Arc<Frame>, state: ScratchState) {
        self.keep_scratch(frame, state);
    }

    fn may_go_on(&self, frame: &Frame, from: &RestsOn) -> bool {
        self.still_rests_on(frame, from)
    }

    fn progress(&self, label: &str, done: usize, total: usize) {
        self.tell(|| Event::Progress {
            label: Arc::from(label),
            done,
            total,
        });
    }

    fn parallel(&self) -> &Helpers {
        &self.helpers
    }
}
