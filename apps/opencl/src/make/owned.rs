//! Programs that are being made.

use crate::driver::{Driver, RawProgram};

/// A program that is given back if it comes to nothing, by an error or by a panic.
pub(super) struct Owned<'a> {
    driver: &'a dyn Driver,
    raw: Option<RawProgram>,
}

impl<'a> Owned<'a> {
    pub(super) fn new(driver: &'a dyn Driver, raw: RawProgram) -> Self {
        let raw = Some(raw);
        Self { driver, raw }
    }

    pub(super) fn get(&self) -> &RawProgram {
        match &self.raw {
            Some(raw) => raw,
            None => unreachable!("it is there until it is taken, which ends this"),
        }
    }

    pub(super) fn take(mut self) -> RawProgram {
        match self.raw.take() {
            Some(raw) => raw,
            None => unreachable!("it is there until it is taken, which ends this"),
        }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.driver.release_program(raw);
        }
    }
}
