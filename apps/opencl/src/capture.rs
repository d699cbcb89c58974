//! When the binary of a program is captured, and with which code.
//!
//! Many drivers finish code at the first launch, so a binary that is captured before has no code for the device in it, and each
//! new process compiles it again. So what was launched is noted, and the binary captured once more: when the program
//! is let go, or when a user says that his queues have finished. That costs a build with some drivers. So it is found out
//! first whether the kept binary lacks anything; of several processes that find so one captures it, and the others
//! leave it to that one.
//!
//! What a kept binary is said to have, nobody captures again. So that is said only of kernels whose launches are known to have
//! ended, and not where a driver puts no finished code into binaries.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sde::{Key, Policy};

use crate::Error;
use crate::context::{Context, Keeping};
use crate::driver::Capture;
use crate::kept::{Kept, KernelDir, KernelStore, NotKept, parse, seal};
use crate::live::Live;
use crate::lock::lock;
use crate::settings::Mode;
use crate::stats::Event;

/// Names of kernels.
type Names = BTreeSet<String>;

/// The code of a live program: what was finished, and what of it is in which binary.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// What was finished in the binary that it was made from.
    loaded: Names,
    launched: Mutex<Launched>,
    /// What is finished in the binary that its driver has put together for it; some do that once.
    frozen: Mutex<Option<Names>>,
    /// What is kept, if that is ours to keep. Programs of devices of equal identity have one of these.
    kept: Arc<Mutex<Option<KeptCode>>>,
}

/// What is kept of a program, as far as this process knows.
#[derive(Debug)]
struct KeptCode {
    /// The kernels that it has finished code for.
    names: Names,
    /// The entry of a directory.
    key: Option<Key>,
}

#[derive(Debug, Default)]
struct Launched {
    all: Names,
    /// Those that were given back to the driver while it still had a use of them.
    perhaps_queued: Names,
}

/// Whose launches are taken to have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Those of which the driver has let go.
    IfTheDriverSaysSo,
    /// All: a user says so.
    All,
}

impl Code {
    /// Of a program from a binary that has finished code for these kernels.
    pub(crate) fn loaded(names: &[String]) -> Self {
        let loaded: Names = names.iter().cloned().collect();
        Self {
            frozen: Mutex::new(Some(loaded.clone())),
            loaded,
            ..Self::default()
        }
    }

    /// Of a program from the binary of another one, that of a device of equal identity.
    pub(crate) fn shared(other: &Self) -> Self {
        Self {
            loaded: other.loaded.clone(),
            frozen: Mutex::new(Some(other.loaded.clone())),
            kept: Arc::clone(&other.kept),
            ..Self::default()
        }
    }

    pub(crate) fn note_launch(&self, kernel: &str) {
        let mut launched = lock(&self.launched);
        if !launched.all.contains(kernel) {
            launched.all.insert(kernel.to_owned());
        }
        launched.perhaps_queued.remove(kernel);
    }

    pub(crate) fn note_perhaps_queued(&self, kernel: &str) {
        let mut launched = lock(&self.launched);
        launched.perhaps_queued.insert(kernel.to_owned());
    }

    fn launched(&self, ended: Ended) -> Names {
        let launched = lock(&self.launched);
        match ended {
            Ended::All => launched.all.clone(),
            Ended::IfTheDriverSaysSo => {
                let at_rest = launched.all.difference(&launched.perhaps_queued);
                at_rest.cloned().collect()
            }
        }
    }

    /// Whether a binary with these is to be kept, and is not.
    fn lacks(&self, names: &Names) -> bool {
        let kept = lock(&self.kept);
        kept.as_ref()
            .is_some_and(|kept| !names.is_subset(&kept.names))
    }

    /// Says what is kept of it: what it was loaded from, or built for.
    pub(crate) fn note_kept(&self, key: Option<Key>) {
        self.note_kept_with(self.loaded.clone(), key);
    }

    fn note_kept_with(&self, names: Names, key: Option<Key>) {
        let mut kept = lock(&self.kept);
        let key = key.or_else(|| kept.as_ref()?.key);
        *kept = Some(KeptCode { names, key });
    }

    /// Whether what is kept by others will do where this program has finished these. It stays where this one would
    /// lack something of it: whoever loads that, and launches what it lacks, has both.
    fn will_do(&self, names: &Names, launched: Vec<String>) -> bool {
        let has: Names = launched.into_iter().collect();
        let will_do = names.is_subset(&has) || !has.is_subset(names);
        if will_do {
            self.note_kept_with(&has | names, None);
        }
        will_do
    }
}

impl Live {
    /// The binary with all that was finished, and what is known of it.
    pub(crate) fn captured(&self, ended: Ended) -> Result<Kept, Error> {
        let names = self.finished(ended);
        let is_new_program_better = self.driver().captures(self.device()) == Capture::NewProgram
            && lock(&self.code.frozen)
                .as_ref()
                .is_some_and(|frozen| !names.is_subset(frozen));
        let binary = match is_new_program_better {
            false => self.binary(&names)?,
            true => {
                let begun = Instant::now();
                let binary = self.making.binary_anew()?;
                let (key, took) = (self.descriptor().key(), begun.elapsed());
                self.note(&Event::Recompiled { key, took });
                binary
            }
        };
        Ok(self.kept(binary, names))
    }

    fn kept(&self, binary: Vec<u8>, names: Names) -> Kept {
        Kept {
            full: self.descriptor().full_key().clone(),
            binary,
            facts: self.facts.clone(),
            launched: names.into_iter().collect(),
        }
    }

    /// The same of a program that was just built. It has no binary if the driver gives none.
    pub(crate) fn as_built(&self) -> Kept {
        self.captured(Ended::IfTheDriverSaysSo)
            .unwrap_or_else(|error| {
                sde::warning!("a program is not kept, its driver gives no binary: {error}");
                self.kept(Vec::new(), Names::new())
            })
    }

    /// The binary as it is, whatever was launched since it was put together.
    pub(crate) fn binary_as_it_is(&self) -> Result<Vec<u8>, Error> {
        self.binary(&self.finished(Ended::IfTheDriverSaysSo))
    }

    /// The binary of the program itself. If it is put together now, it has code for what was launched before.
    fn binary(&self, finished: &Names) -> Result<Vec<u8>, Error> {
        lock(&self.code.frozen).get_or_insert_with(|| finished.clone());
        let binary = self.driver().binary(self.raw(), self.device());
        binary.map_err(|refusal| self.refused("reading a binary", refusal))
    }

    /// For which kernels a binary that is captured now has finished code.
    fn finished(&self, ended: Ended) -> Names {
        let mut names = self.code.loaded.clone();
        if self.driver().captures(self.device()) != Capture::Never {
            names.extend(self.code.launched(ended));
        }
        names
    }

    /// Puts the binary of a program that was just built into a store.
    pub(crate) fn put_built(&self, store: &dyn KernelStore) {
        let kept = self.as_built();
        if kept.binary.is_empty() {
            self.making.note_not_kept(NotKept);
        } else {
            self.code.note_kept(None);
            put(self.context(), store, vec![(self, kept)]);
        }
    }

    /// Keeps the binary of a program that this crate did not build. Gives whether it is kept.
    pub(crate) fn keep_foreign(&self) -> bool {
        let is_known = self.descriptor().is_cacheable().is_ok();
        is_known && keep(self.context(), vec![self], Ended::IfTheDriverSaysSo) > 0
            || lock(&self.code.kept).is_some()
    }

    /// When the program is let go.
    pub(crate) fn keep_at_the_end(&self) {
        if !LETTING_GO.get() {
            keep_launched(self.context(), [self], Ended::IfTheDriverSaysSo);
        }
    }

    /// Keeps what was finished in a directory, unless what is there will do, or another process is at it.
    fn keep_in(&self, dir: &KernelDir, ended: Ended) -> Result<bool, Error> {
        if dir.settings().mode_of(self.making.kind()) != Mode::ReadWrite {
            return Ok(false);
        }
        let key = lock(&self.code.kept).as_ref().and_then(|kept| kept.key);
        let (policy, _announced) = match key {
            None => (Policy::Use, None),
            Some(key) => match dir.announce(&key) {
                None => return Ok(false),
                announced => (Policy::Refresh, announced),
            },
        };
        if let Some(there) = key.and_then(|key| dir.launched(&key))
            && self.code.will_do(&self.finished(ended), there)
        {
            return Ok(false);
        }
        let kept = self.captured(ended)?;
        let names = kept.launched.iter().cloned().collect();
        let run = dir.run(self.descriptor(), policy, move || Ok(kept.clone()));
        let (kept, key) = match run {
            // Nor will be what is captured later.
            Err(error) if error.app_error::<NotKept>().is_some() => {
                self.code.note_kept_with(names, key);
                return Ok(false);
            }
            run => match run? {
                Some(run) => run,
                None => return Ok(false),
            },
        };
        self.code
            .note_kept_with(kept.launched.iter().cloned().collect(), Some(key));
        // The store may have had no room for it.
        Ok(dir.launched(&key) == Some(kept.launched))
    }

    /// What was finished, if it is to be put in a store in place of this.
    fn better_than(&self, there: Option<Vec<u8>>, ended: Ended) -> Result<Option<Kept>, Error> {
        let there = there.and_then(|blob| parse(self.descriptor(), &blob).ok());
        if let Some(there) = there
            && self.code.will_do(&self.finished(ended), there.launched)
        {
            return Ok(None);
        }
        let kept = self.captured(ended)?;
        Ok(Some(kept).filter(|kept| !kept.binary.is_empty()))
    }

    fn note(&self, event: &Event) {
        self.context().0.notes.note(event);
    }
}

/// How many programs a store is asked of, or given, in one call.
pub(crate) const AT_ONCE: usize = 64;

/// Keeps what was launched since it was last kept, of all these programs. Gives how many.
pub(crate) fn keep_launched<'a>(
    context: &Context,
    programs: impl IntoIterator<Item = &'a Live>,
    ended: Ended,
) -> usize {
    let (mut count, mut batch) = (0, Vec::<&Live>::new());
    for program in programs {
        // Programs of devices of equal identity have one key, and one knows what the other kept.
        let key = program.descriptor().key();
        if batch.len() == AT_ONCE || batch.iter().any(|one| one.descriptor().key() == key) {
            count += keep(context, std::mem::take(&mut batch), ended);
        }
        if program.code.lacks(&program.finished(ended)) {
            batch.push(program);
        }
    }
    count + keep(context, batch, ended)
}

fn keep(context: &Context, batch: Vec<&Live>, ended: Ended) -> usize {
    let warned =
        |error: Error| sde::warning!("a binary could not be captured after a launch: {error}");
    match &context.0.keeping {
        _ if batch.is_empty() => 0,
        Keeping::Nowhere(_) => 0,
        Keeping::Dir(dir) => {
            let keep = |program: &&Live| program.keep_in(dir, ended).map_err(warned);
            batch
                .iter()
                .filter(|program| keep(program) == Ok(true))
                .count()
        }
        Keeping::Store(store) => {
            let ids = batch.iter().map(|one| one.descriptor().blob_id());
            let there = context.get(&**store, &ids.collect::<Vec<_>>());
            let better = batch.into_iter().zip(there).filter_map(|(program, there)| {
                let better = program.better_than(there, ended).map_err(warned);
                Some((program, better.ok()??))
            });
            put(context, &**store, better.collect())
        }
    }
}

/// Puts these into a store of the user's. Gives how many.
fn put(context: &Context, store: &dyn KernelStore, batch: Vec<(&Live, Kept)>) -> usize {
    if batch.is_empty() {
        return 0;
    }
    let sealed = batch.iter().map(|(program, kept)| {
        let descriptor = program.descriptor();
        (descriptor.blob_id(), seal(descriptor, kept))
    });
    if let Err(error) = store.put(&sealed.collect::<Vec<_>>()) {
        context.store_failed(store, &error);
        return 0;
    }
    let count = batch.len();
    for (program, kept) in batch {
        program.note_bytes(&kept.binary);
        program
            .code
            .note_kept_with(kept.launched.into_iter().collect(), None);
        context.0.notes.note(&Event::Kept {
            key: program.descriptor().key(),
            bytes: kept.binary.len(),
        });
    }
    count
}

thread_local! {
    static LETTING_GO: Cell<bool> = const { Cell::new(false) };
}

/// Lets go of programs without capturing them: where resources are lacking is no place to build.
pub(crate) fn let_go(what: impl FnOnce()) {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            LETTING_GO.set(self.0);
        }
    }
    let _before = Before(LETTING_GO.replace(true));
    what();
}
