//! Many programs at once: asked of the store together, then loaded and built on several threads.
//!
//! A store that is a server or a database takes as long to answer for one program as for a hundred. So
//! one call asks for all programs that are not live, and its answers wait here until the programs are made. The
//! maker of a program checks its answer as any other that comes from a store.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use sde::{Handle, Value};

use super::{Context, Keeping};
use crate::Error;
use crate::capture::AT_ONCE;
use crate::identity::Descriptor;
use crate::live::Program;
use crate::lock::lock;

/// Answers of the user's store, by program id, that are not taken yet.
#[derive(Default)]
pub(crate) struct Brought(Mutex<HashMap<[u8; 32], Option<Vec<u8>>>>);

impl Brought {
    /// An answer is taken once: a second lookup must see later puts.
    pub(crate) fn take(&self, id: &[u8; 32]) -> Option<Option<Vec<u8>>> {
        lock(&self.0).remove(id)
    }
}

/// On drop, removes the answers that were not taken.
struct Leftovers<'a> {
    context: &'a Context,
    ids: Vec<[u8; 32]>,
}

impl Drop for Leftovers<'_> {
    fn drop(&mut self) {
        let mut there = lock(&self.context.0.brought.0);
        self.ids.iter().for_each(|id| drop(there.remove(id)));
    }
}

impl Context {
    /// Many live programs, in order. The store is asked for those that are not live, up to 64 in one call, and they are
    /// loaded or built on as many threads as the engine has. Call it at the start of a program that knows which
    /// kernels it will need; [`kernel`](Self::kernel) then finds them live.
    ///
    /// A program that fails does not keep the others from being made. Where a compiler takes one program at a time, as
    /// PoCL's does, building many takes as long as one by one.
    ///
    /// ```
    /// use sde::Sde;
    /// use sde_opencl::driver::simulated::Simulated;
    /// use sde_opencl::{Context, Error, ProgramSpec};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let context = Context::simulated(&Simulated::new()).build()?;
    /// let scale = ProgramSpec::source("kernel void scale(global T *x, T by) { x[get_global_id(0)] *= by; }");
    /// let all = ["float", "double", "half"].map(|number| context.describe(0, &scale.clone().define("T", number)));
    /// let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    ///
    /// let programs = context.programs(&Sde::new(), 0, &all).into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(programs[2].kernel_names(), ["scale"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// For each as [`program`](Self::program). If the store can't be asked, that is noted, and each program is made
    /// alone.
    ///
    /// # Panics
    /// If a build panics, after those that had begun have ended.
    pub fn programs(
        &self,
        sde: &Handle,
        device: usize,
        programs: &[Descriptor],
    ) -> Vec<Result<Value<Program>, Error>> {
        let have = |programs| {
            let _leftovers = self.bring(device, programs);
            sde.par_each(programs, |sde, program| self.program(sde, device, program))
        };
        programs.chunks(AT_ONCE).flat_map(have).collect()
    }

    /// Asks a store of the user's for those of these programs that are not live.
    fn bring(&self, device: usize, programs: &[Descriptor]) -> Option<Leftovers<'_>> {
        let Keeping::Store(store) = &self.0.keeping else {
            return None;
        };
        // The first device of equal identity makes the program for all of them.
        let device = self.first_like(device);
        let live = self.0.living.programs();
        let live = live.iter().filter(|program| program.device() == device);
        let mut seen: HashSet<_> = live.map(|program| program.descriptor().key()).collect();
        let identity = self.identity(device).ok()?;
        let wanted = programs.iter().filter(|program| {
            program.is_cacheable().is_ok()
                && program.full_key().device == *identity
                && seen.insert(program.key())
        });
        let ids: Vec<_> = wanted.map(Descriptor::blob_id).collect();
        if ids.len() < 2 {
            return None;
        }
        let found = self.get(&**store, &ids);
        lock(&self.0.brought.0).extend(ids.iter().copied().zip(found));
        Some(Leftovers { context: self, ids })
    }
}
