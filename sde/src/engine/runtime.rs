//! The engine as its handles see it.

use std::sync::Arc;

use super::Engine;
use crate::app::{
    App, Facts, Frame, Handle, Instance, Options, Outcome, Peek, Prepared, RestsOn, Runtime,
    ScratchState, Subject, Transfer,
};
use crate::error::Error;
use crate::event::Event;
use crate::inputs::{Call, Inputs};
use crate::key::Key;
use crate::parallel::Helpers;
use crate::ranks::Ranks;
use crate::result_map::{Codec, ErasedValue, ResultMap, Wire};

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

    fn progress(&self, label: &str, done: usize, total: usize, nested: bool) {
        self.tell(|| Event::Progress {
            label: Arc::from(label),
            done,
            total,
            nested,
        });
    }

    fn make_room(&self, app: &str, keep: usize) -> usize {
        self.make_room_for(app, keep)
    }

    fn parallel(&self) -> &Helpers {
        &self.helpers
    }

    fn wire(&self) -> Option<Arc<dyn Wire>> {
        self.wire.clone()
    }

    fn split(
        &self,
        whole: &Arc<Ranks>,
        color: u32,
        key: i64,
        transfer: &Transfer,
    ) -> Result<Arc<Ranks>, Error> {
        self.split_ranks(whole, color, key, transfer)
    }

    fn release(
        &self,
        whole: &Arc<Ranks>,
        part: &Arc<Ranks>,
        transfer: &Transfer,
    ) -> Result<(), Error> {
        self.release_ranks(whole, part, transfer)
    }

    fn rank_map(
        &self,
        from: &Handle,
        ranks: &Ranks,
        subject: &Subject<'_>,
        list: &[&Inputs],
        transfer: &Transfer,
    ) -> Result<Vec<Result<ResultMap, Error>>, Error> {
        self.rank_map(from, ranks, subject, list, transfer)
    }

    fn elsewhere(&self) -> Vec<Key> {
        self.left_elsewhere()
    }

    fn fetch(&self, ranks: &Ranks, keys: &[Key], transfer: &Transfer) -> Result<Vec<Key>, Error> {
        self.fetch_keys(ranks, keys, transfer)
    }

    fn abandon(&self, whole: &Ranks, part: &Ranks) {
        self.abandon_ranks(whole, part);
    }
}
