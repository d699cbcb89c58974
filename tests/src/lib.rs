//! The test kit, and the tests that cross crates

#![forbid(unsafe_code)]

mod before;
mod contract;
#[cfg(doctest)]
mod docs;
mod lying;
mod made;
pub mod mpirun;
pub mod ranks;
mod says;
pub mod signal;
mod watch;
mod watchdog;

pub use before::Before;
pub use contract::{check_contract, check_late, check_leave};
pub use lying::{Lie, Lying};
pub use made::{Made, a_linked_helper, made, number, number_info, x, y};
pub use says::{one_says, says};
pub use sde::ErrorKind;
pub use signal::{Counter, Gate, LIMIT, until};
pub use watch::Watch;
pub use watchdog::Watchdog;

/// The records of an engine, in the order they were made.
pub fn records(sde: &sde::Sde) -> Vec<sde::record::Record> {
    let mut all = Vec::new();
    sde.records(|record| all.push(record.clone()));
    all
}

/// Says of which kind an error is.
#[macro_export]
macro_rules! assert_kind {
    ($error:expr, $($kind:ident)|+) => {{
        let error = &$error;
        let is_it = matches!(error.kind(), $($crate::ErrorKind::$kind { .. })|+);
        assert!(is_it, "{error}");
    }};
}
