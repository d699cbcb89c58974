//! The groups of `sde` do what every process group must. That of `sde-mpi` has its own test.

#![allow(missing_docs, reason = "a test program")]

use sde::ranks::{OneProcess, ThreadGroup};
use sde_tests::{check_contract, check_late, check_leave};

#[test]
fn one_process() {
    check_contract(&OneProcess);
}

#[test]
fn threads() {
    for size in [1, 2, 3, 4, 8] {
        ThreadGroup::run(size, |group| check_contract(&group));
    }
}

#[test]
fn threads_that_are_late_and_that_leave() {
    for size in [2, 3, 8] {
        ThreadGroup::run(size, |group| check_late(&group));
        ThreadGroup::run(size, |group| check_leave(&group));
    }
}
