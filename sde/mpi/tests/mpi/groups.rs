//! What groups on MPI do.

use crate::{SIZES, job};

fn succeed(sizes: &[usize], case: &str) {
    sizes.iter().for_each(|size| job(*size, case).succeeded());
}

#[test]
fn a_group_does_what_every_process_group_must() {
    succeed(&SIZES, "contract");
}

#[test]
fn in_pieces_too() {
    succeed(&SIZES, "pieces");
}

#[test]
fn who_is_late_is_named() {
    succeed(&[2, 4, 8], "late");
}

#[test]
fn who_leaves_holds_up_nobody() {
    succeed(&[2, 3, 4, 8, 20], "leave");
}

#[test]
fn ranks_in_different_operations_are_told() {
    succeed(&[2, 3, 8], "mixed");
}

#[test]
fn a_communicator_of_the_users_is_duplicated() {
    succeed(&SIZES, "communicator");
}

#[test]
fn off_its_thread_and_after_its_session_a_group_says_so() {
    succeed(&[1, 3], "elsewhere");
}

#[test]
fn communicators_do_not_run_out() {
    job(2, "many").succeeded();
}

/// Found by sets of ranks that were split after a round had failed: Open MPI took what had come of that for a message to the
/// new group, from a rank that is not in it, and crashed.
#[test]
fn what_comes_of_a_round_that_was_left_out_is_no_message_to_a_later_group() {
    job(3, "left out").succeeded();
}

#[test]
#[ignore = "long: two ranks that fill 6 GiB each"]
fn more_than_two_gib_are_gathered_and_exchanged() {
    job(2, "large").succeeded();
}
