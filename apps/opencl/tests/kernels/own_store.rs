//! A user's own store, that may lie or fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sde_opencl::{KernelStore, StoreError};

type Id = [u8; 32];

/// A clone is the same one.
#[derive(Clone, Default)]
pub struct Own {
    pub kept: Arc<Mutex<HashMap<Id, Vec<u8>>>>,
    pub fails: Arc<Mutex<bool>>,
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

    fn asked(&self, calls: &Mutex<Vec<usize>>, count: usize) -> Result<(), StoreError> {
        calls.lock().unwrap().push(count);
        match *self.fails.lock().unwrap() {
            true => Err(StoreError::new("asking the database", "it is down")),
            false => Ok(()),
        }
    }
}

impl KernelStore for Own {
    fn get(&self, ids: &[Id]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.asked(&self.gets, ids.len())?;
        let kept = self.kept.lock().unwrap();
        Ok(ids.iter().map(|id| kept.get(id).cloned()).collect())
    }

    fn put(&self, blobs: &[(Id, Vec<u8>)]) -> Result<(), StoreError> {
        self.asked(&self.puts, blobs.len())?;
        self.kept.lock().unwrap().extend(blobs.iter().cloned());
        Ok(())
    }

    fn describe(&self) -> String {
        "a map".to_owned()
    }
}
