//! What groups on MPI do.

use crate::{SIZES, job};

#[test]
fn a_group_does_what_every_process_group_must() {
    for size in SIZES {
        job(size, "contract").succeeded();
    }
}

#[test]
fn in_pieces_too() {
    for size in SIZES {
        job(size, "pieces").succeeded();
    }
}

#[test]
fn who_is_late_is_named() {
    for size in [2, 4, 8] {
        job(size, "late").succeeded();
    }
}

#[test]
fn who_leaves_holds_up_nobody() {
    for size in [2, 3, 4, 8, 20] {
        job(size, "leave").succeeded();
    }
}

#[test]
fn ranks_in_different_operations_are_told() {
    for size in [2, 3, 8] {
        job(size, "mixed").succeeded();
    }
}

#[test]
fn a_communicator_of_the_users_is_duplicated() {
    for size in SIZES {
        job(size, "communicator").succeeded();
    }
}

#[test]
fn off_its_thread_and_after_its_session_a_group_says_so() {
    for size in [1, 3] {
        job(size, "elsewhere").succeeded();
    }
}

#[test]
fn communicators_do_not_run_out() {
    job(2, "many").succeeded();
}

#[test]
#[ignore = "long: two ranks that fill 6 GiB each"]
fn more_than_two_gib_are_gathered_and_exchanged() {
    job(2, "large").succeeded();
}
