//! A user's own store, that may lie, fail, or be full.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sde_opencl::{KernelStore, ProgramKey, StoreError, StoredProgram, Wanted};

/// A clone is the same one.
#[derive(Clone, Default)]
pub struct Own {
    pub kept: Arc<Mutex<HashMap<ProgramKey, StoredProgram>>>,
    pub fails: Arc<Mutex<bool>>,
    /// Only puts of one program.
    pub fails_alone: Arc<Mutex<bool>>,
    /// How many programs it has room for; no limit if nothing is said.
    pub room: Arc<Mutex<Option<usize>>>,
    /// Of how many programs each call was.
    pub gets: Arc<Mutex<Vec<usize>>>,
    pub puts: Arc<Mutex<Vec<usize>>>,
}

impl Own {
    /// What it was asked since the last time this was called.
    pub fn calls(&self) -> (Vec<usize>, Vec<usize>) {
        let take = |calls: &Mutex<Vec<usize>>| std::mem::take(&mut *calls.lock().unwrap());
        (take(&self.gets), take(&self.puts))
    }
}

impl KernelStore for Own {
    fn get(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
        self.gets.lock().unwrap().push(wanted.len());
        self.look(wanted)
    }

    fn look(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
        if *self.fails.lock().unwrap() {
            return Err(StoreError::new("asking the database", "it is down"));
        }
        let kept = self.kept.lock().unwrap();
        let found = wanted.iter().map(|one| kept.get(&one.key).cloned());
        Ok(found.collect())
    }

    fn put(&self, programs: &[StoredProgram]) -> Result<usize, StoreError> {
        self.puts.lock().unwrap().push(programs.len());
        let fails_alone = programs.len() == 1 && *self.fails_alone.lock().unwrap();
        if fails_alone || *self.fails.lock().unwrap() {
            return Err(StoreError::new("writing to the database", "it is down"));
        }
        let mut kept = self.kept.lock().unwrap();
        let room = self.room.lock().unwrap().unwrap_or(usize::MAX);
        let mut count = 0;
        for program in programs {
            if kept.len() < room || kept.contains_key(&program.key) {
                kept.insert(program.key, program.clone());
                count += 1;
            }
        }
        Ok(count)
    }

    fn describe(&self) -> String {
        "a map".to_owned()
    }
}
