//! When the binary of a program is captured, and with which code.
//!
//! Many drivers finish code at the first launch. A binary captured earlier lacks the device's code, and each new
//! process compiles it again. So launches are noted and the binary is captured once more: when the program is
//! dropped, or when the user says that the queues have finished. With some drivers a capture costs a build. So it
//! is first checked whether the kept binary lacks anything; of several processes that find so, one captures it.
//!
//! A kernel that is recorded as finished in a kept binary is never captured again. So only kernels whose launches
//! are known to have ended are recorded, and none where a driver puts no finished code into binaries.

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

/// The kernels of a live program that have finished code, and the binaries that hold it.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The kernels with finished code in the binary that the program was loaded from.
    loaded: Names,
    launched: Mutex<Launched>,
    /// The kernels with finished code in the binary that the driver has put together; some drivers do that once.
    frozen: Mutex<Option<Names>>,
    /// The state of the kept binary, if this crate may keep one. Devices of equal identity share it.
    kept: Arc<Mutex<Option<KeptCode>>>,
}

/// The state of a program's kept binary, as far as this process knows.
#[derive(Debug)]
struct KeptCode {
    /// The kernels with finished code in it.
    names: Names,
    /// The key of its entry in a directory store.
    key: Option<Key>,
}

#[derive(Debug, Default)]
struct Launched {
    all: Names,
    /// The kernels that were released while the driver still had a use of them.
    perhaps_queued: Names,
}

/// Which launches are taken to have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Launches whose kernels the driver no longer references.
    IfTheDriverSaysSo,
    /// All launches: the user says so.
    All,
}

impl Code {
    /// For a program from a binary that has finished code for these kernels.
    pub(crate) fn loaded(names: &[String]) -> Self {
        let loaded: Names = names.iter().cloned().collect();
        Self {
            frozen: Mutex::new(Some(loaded.clone())),
            loaded,
            ..Self::default()
        }
    }

    /// For a program made from the binary of another program, of a device of equal identity.
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

    /// Whether a binary is to be kept and the kept one lacks finished code of these kernels.
    fn lacks(&self, names: &Names) -> bool {
        let kept = lock(&self.kept);
        kept.as_ref()
            .is_some_and(|kept| !names.is_subset(&kept.names))
    }

    /// Records that the binary this program was loaded from, or built for, is kept.
    pub(crate) fn note_kept(&self, key: Option<Key>) {
        self.note_kept_with(self.loaded.clone(), key);
    }

    fn note_kept_with(&self, names: Names, key: Option<Key>) {
        let mut kept = lock(&self.kept);
        let key = key.or_else(|| kept.as_ref()?.key);
        *kept = Some(KeptCode { names, key });
    }

    /// Whether the binary that another process kept is good enough, given the kernels that this program has
    /// finished. It is also left alone if it has kernels that this one lacks: a process that loads it and launches
    /// the rest has both.
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
    /// The binary with all code that was finished, and the facts to keep with it.
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

    /// The binary of a program that was just built; empty if the driver gives none.
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

    /// The binary of the program itself. If the driver puts it together now, it has the code of all launches before.
    fn binary(&self, finished: &Names) -> Result<Vec<u8>, Error> {
        lock(&self.code.frozen).get_or_insert_with(|| finished.clone());
        let binary = self.driver().binary(self.raw(), self.device());
        binary.map_err(|refusal| self.refused("reading a binary", refusal))
    }

    /// The kernels with finished code in a binary that is captured now.
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

    /// Keeps finished code when the program is dropped.
    pub(crate) fn keep_at_the_end(&self) {
        if !LETTING_GO.get() {
            keep_launched(self.context(), [self], Ended::IfTheDriverSaysSo);
        }
    }

    /// Captures finished code into a directory, unless the kept binary is good enough or another process is
    /// capturing it.
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
            // A later capture would not be kept either.
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

    /// The finished binary, if a store should put it in place of this blob.
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

/// The number of programs that one call asks a store for, or gives it.
pub(crate) const AT_ONCE: usize = 64;

/// Keeps the binaries of all these programs that were launched since they were last kept. Gives their number.
pub(crate) fn keep_launched<'a>(
    context: &Context,
    programs: impl IntoIterator<Item = &'a Live>,
    ended: Ended,
) -> usize {
    let (mut count, mut batch) = (0, Vec::<&Live>::new());
    for program in programs {
        // Programs of devices of equal identity have one key: the second must see what the first one kept.
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

/// Puts these into the user's store. Gives the number kept.
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

/// Drops programs without capturing them: a capture may build, and here resources are lacking.
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
