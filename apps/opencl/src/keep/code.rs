//! What is known of the code of a live program, and what of it is in which binary.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Names of kernels.
pub(crate) type Names = BTreeSet<String>;

/// What the store has of a program, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) enum Kept {
    /// It is not for us to keep: there is no store, or it does not want it.
    #[default]
    NotOurs,
    /// It is to be kept, and could not be so far.
    NotYet,
    /// It is kept, with finished code for these kernels.
    With(Names),
}

/// The code of a live program: what was finished, and what of it is in which binary.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// What was finished in the binary that it was made from.
    pub(super) loaded: Names,
    launched: Mutex<Launched>,
    /// What is finished in the binary that its driver has put together for it; some do that once.
    pub(super) frozen: Mutex<Option<Names>>,
    /// Programs of devices of equal identity have one of these.
    pub(super) kept: Arc<Mutex<Kept>>,
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
    /// Of a program that was built.
    pub(crate) fn built() -> Self {
        Self::default()
    }

    /// Of a program from a binary that has finished code for these kernels.
    pub(crate) fn loaded(names: &[String]) -> Self {
        let loaded: Names = names.iter().cloned().collect();
        Self {
            frozen: Mutex::new(Some(loaded.clone())),
            loaded,
            ..Self::default()
        }
    }

    /// The same, of which the store has the binary.
    pub(crate) fn from_store(names: &[String]) -> Self {
        let code = Self::loaded(names);
        *lock(&code.kept) = Kept::With(code.loaded.clone());
        code
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

    pub(super) fn launched(&self, ended: Ended) -> Names {
        let launched = lock(&self.launched);
        match ended {
            Ended::All => launched.all.clone(),
            Ended::IfTheDriverSaysSo => {
                let at_rest = launched.all.difference(&launched.perhaps_queued);
                at_rest.cloned().collect()
            }
        }
    }

    /// Whether something is to be done so that a binary with these is kept.
    pub(super) fn lacks(&self, names: &Names) -> bool {
        match &*lock(&self.kept) {
            Kept::NotOurs => false,
            Kept::NotYet => true,
            Kept::With(kept) => !names.is_subset(kept),
        }
    }

    pub(super) fn set_kept(&self, kept: Kept) {
        *lock(&self.kept) = kept;
    }
}
