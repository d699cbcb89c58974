//! All tests of ranks.

use super::{
    Ranks, Threads, World, arrays, errors, exchanged, fields, memory, origins, rank_map,
    redistribution, restart, runs, scratch, set_map, sets, slots, state_parts, together,
};

/// How many ranks a test is for.
#[derive(Clone, Copy, Debug)]
pub enum Sizes {
    /// It is run on each of these numbers of ranks.
    Each(&'static [usize]),
    /// It is run once, and takes other numbers of ranks one after another, up to this one.
    UpTo(usize),
}

/// A test.
#[derive(Clone, Copy)]
pub struct Test {
    /// Its module and its name.
    pub name: &'static str,
    /// The numbers of ranks that it is for.
    pub sizes: Sizes,
    body: fn(Ranks<'_>),
}

/// Calls a macro with the tests of each module, and the numbers of ranks that they are for.
#[macro_export]
macro_rules! for_each_test_of_ranks {
    ($call:ident) => {
        $call! {
            arrays {
                arrays_move_from_each_layout_to_each_other: Each(&[1, 2, 3, 4, 8]),
                a_large_array_moves_in_turns: Each(&[2, 3, 4]),
                an_array_goes_with_the_ranks_when_they_are_split_and_released: Each(&[2, 3, 4, 8]),
                arrays_go_through_nested_sets: Each(&[4]),
                an_ordinary_app_can_not_be_given_an_array: Each(&[2]),
                an_array_that_no_app_returned_is_known_by_its_content: UpTo(5),
                layouts_that_do_not_fit_are_errors: Each(&[2]),
                what_lies_around_a_block_is_there: Each(&[1, 2, 3, 4, 8]),
                what_is_made_of_all_elements_is_the_same_on_any_number_of_ranks: UpTo(6),
                arrays_that_lie_otherwise_are_not_zipped: Each(&[2]),
                an_array_that_one_process_saved_is_not_fetched: Each(&[2]),
                an_array_is_filled_by_runs_of_an_ordinary_app: Each(&[1, 2, 3, 4]),
                an_element_that_fails_on_one_rank_is_the_error_of_all: Each(&[1, 2, 3, 4]),
            }
            errors {
                ranks_that_call_different_things_get_the_same_error: Each(&[3, 8]),
                ranks_that_gather_different_things_get_the_same_error: Each(&[2]),
                ranks_that_give_different_inputs_get_the_same_error: Each(&[2]),
                an_input_that_one_rank_can_not_read_is_that_error_on_all: Each(&[2]),
                inputs_are_held_against_the_app_before_ranks_meet: Each(&[1, 2, 3]),
                a_rank_of_a_part_is_named_as_in_the_whole_program: Each(&[3]),
                a_rank_that_leaves_is_named_and_waited_for_by_nobody: Each(&[3, 8]),
                a_rank_that_is_late_is_named_by_those_who_wait: Each(&[2]),
            }
            exchanged {
                values_of_all_sizes_come_as_they_were: Each(&[2, 3]),
            }
            fields {
                each_array_of_a_value_is_known_for_itself: Each(&[1, 2, 3]),
                a_derived_value_is_split_released_and_put_together: UpTo(5),
                what_is_not_the_same_on_all_ranks_is_an_error: Each(&[3]),
            }
            redistribution {
                what_can_not_be_sent_stays_and_is_no_error: Each(&[2, 4]),
                a_hand_over_that_fails_on_one_rank_is_the_same_error_on_all: Each(&[2, 3]),
                an_app_moves_its_results_itself: Each(&[2, 3, 4, 8]),
                an_app_that_expects_answers_gets_them: Each(&[1, 2, 3]),
                a_panic_on_one_rank_is_the_same_error_on_all: Each(&[2, 3]),
                what_was_cleaned_does_not_move: Each(&[2, 3]),
                a_part_of_the_old_set_is_none_of_the_new_one: Each(&[2]),
                what_the_larger_set_has_is_not_moved_to_it: Each(&[2, 3]),
                what_is_too_large_does_not_move_in_either_direction: Each(&[2, 3]),
            }
            memory {
                what_passes_a_limit_leaves_and_is_made_again: Each(&[1, 2, 3]),
                who_is_over_a_budget_takes_nothing_from_another: Each(&[1, 2, 3]),
                what_leaves_one_rank_leaves_all: Each(&[2, 3]),
                what_left_is_not_to_be_saved: Each(&[1, 2, 3]),
                what_has_left_is_loaded: Each(&[1, 2, 3]),
                what_was_cleaned_is_loaded: Each(&[2, 3]),
                of_what_came_that_goes_which_is_cleaned: Each(&[2, 3]),
                who_looks_finds_what_ranks_made: Each(&[1, 2]),
                a_run_that_needs_itself_on_a_part_is_told_so: Each(&[1, 2]),
            }
            origins {
                an_edit_beneath_the_maker_has_what_was_made_of_it_made_anew: Each(&[1, 2, 3]),
                a_refreshed_array_is_another: Each(&[1, 2, 3]),
                an_array_that_was_refreshed_and_is_gone_is_not_the_first_again: Each(&[1, 2, 3]),
                an_array_made_of_what_was_refreshed_is_another: Each(&[1, 2]),
                an_array_made_in_place_of_a_wrong_one_is_another: Each(&[1, 2, 3]),
                each_array_that_is_drawn_is_another: Each(&[1, 2]),
                an_array_that_is_made_again_is_the_same: UpTo(4),
            }
            restart {
                any_number_of_ranks_goes_on_from_what_any_other_saved: UpTo(8),
                a_program_without_ranks_goes_on_too: UpTo(3),
                a_type_of_the_user_s_own_is_split_and_put_together: UpTo(5),
                a_type_that_can_not_be_put_together_is_refused: Each(&[1, 3]),
                without_one_of_its_parts_a_value_is_computed_again_by_all: UpTo(3),
                what_one_rank_computes_another_program_s_ranks_load: UpTo(3),
                all_ranks_archive_to_one_directory: Each(&[1, 2, 3]),
                a_store_that_one_rank_can_not_load_is_loaded_by_none: Each(&[2, 3]),
            }
            runs {
                all_ranks_run_it_and_all_remember_it: Each(&[3]),
                it_is_a_hit_only_where_all_hit: Each(&[3]),
                two_computations_of_a_run_are_compared: Each(&[1, 3]),
                all_ranks_have_one_computation: Each(&[2]),
                only_if_remembered_fails_alike_where_one_rank_has_nothing: Each(&[2]),
                ranks_that_ask_otherwise_get_the_same_error: Each(&[2, 3]),
                an_ordinary_app_can_not_run_a_distributed_one_or_ask_for_its_rank: Each(&[1, 2]),
                a_collective_run_off_the_main_order_is_an_error_at_once: Each(&[2]),
                ranks_that_miss_different_keys_never_hang: Each(&[2, 3, 4, 8]),
                what_fails_on_one_rank_fails_on_all: Each(&[3]),
                what_would_fail_again_on_all_ranks_is_not_run_again: Each(&[1, 2, 3]),
                a_rank_that_goes_on_after_a_failure_holds_up_nobody: Each(&[3]),
                a_panic_on_one_rank_is_an_error_on_the_others: Each(&[3]),
                results_that_differ_between_ranks_are_an_error_and_not_remembered: Each(&[3]),
                a_save_that_fails_on_one_rank_is_the_same_error_on_all: Each(&[1, 2, 3, 4, 8]),
                what_ranks_made_together_can_be_said_to_be_wrong: Each(&[1, 2, 3]),
                what_ranks_made_together_is_said_to_be_wrong_by_all_or_none: Each(&[2]),
            }
            scratch {
                any_number_of_ranks_goes_on_from_a_state_that_all_have: UpTo(4),
                a_program_without_ranks_goes_on_from_a_state_that_all_have: UpTo(3),
                each_rank_goes_on_from_its_own_state_on_as_many_ranks: UpTo(3),
                states_that_are_said_to_be_the_same_and_are_not_are_left: UpTo(3),
                a_state_that_one_rank_has_not_saved_is_not_gone_on_from: Each(&[2, 3]),
                without_a_state_in_common_all_begin_again: Each(&[2, 3]),
                ranks_that_checkpoint_at_different_times_save_one_state: Each(&[2, 3]),
                a_state_that_a_failed_run_owes_is_not_saved_by_the_next: Each(&[2, 3]),
                a_run_in_progress_keeps_its_states_when_its_app_is_cleaned: Each(&[1, 2, 3]),
                a_checkpoint_after_a_failed_run_saves_its_states: Each(&[1, 2]),
                states_are_gone_when_the_run_has_ended: Each(&[1, 2, 3]),
                of_states_between_two_meetings_the_first_counts: Each(&[2, 3]),
                a_part_of_the_ranks_has_no_scratch_of_their_run: Each(&[2]),
                a_run_that_went_on_took_what_all_its_legs_took: UpTo(4),
            }
            state_parts {
                any_number_of_ranks_goes_on_from_the_parts_of_a_state: UpTo(4),
                a_run_that_is_called_again_goes_on_from_what_is_in_memory: Each(&[1, 3]),
                a_state_of_which_a_part_is_missing_is_not_gone_on_from: UpTo(3),
            }
            sets {
                what_a_part_computes_all_have_when_it_is_released: Each(&[4]),
                sets_nest_and_are_released_in_order: Each(&[4]),
                a_split_orders_its_ranks: Each(&[3]),
                a_handle_of_a_released_set_is_an_error: Each(&[2]),
                the_closure_form_releases_after_an_error_and_a_panic_too: Each(&[2]),
                a_part_that_is_dropped_is_an_error_where_the_others_release: Each(&[2]),
                an_error_on_one_rank_of_a_part_reaches_the_others: Each(&[4]),
                a_part_that_is_dropped_while_its_handle_lives_holds_up_nobody: Each(&[2]),
                a_released_set_does_not_come_to_life_again: Each(&[2, 4]),
                values_that_are_too_large_or_not_wanted_do_not_move: Each(&[2]),
                what_came_without_its_value_is_looked_for_in_the_store: Each(&[2]),
                what_came_without_its_value_is_sent_when_all_is: Each(&[2]),
                what_was_left_elsewhere_is_fetched_later: Each(&[2, 3]),
                each_rank_fetches_what_it_asks_for: Each(&[3]),
                no_cache_values_never_move: Each(&[2]),
                of_different_results_the_lowest_rank_s_counts: Each(&[3]),
                the_results_do_not_depend_on_the_number_of_ranks: Each(&[1, 2, 3, 4, 8]),
            }
            slots {
                an_app_that_slots_a_distributed_one_is_run_by_all_ranks: Each(&[1, 2, 3, 4]),
                what_it_returned_goes_with_the_ranks: Each(&[2, 4]),
                an_array_may_be_its_input: Each(&[1, 3]),
                what_three_ranks_saved_of_it_any_number_of_ranks_loads: UpTo(4),
                par_map_refuses_what_all_ranks_run_and_says_why: Each(&[1, 2]),
                who_calls_one_is_named_as_who_has_to_be_distributed: Each(&[1, 2]),
            }
            rank_map {
                each_key_is_computed_once_over_all_ranks_and_all_have_all: Each(&[1, 2, 3, 4, 8]),
                in_a_distributed_app_too_and_in_an_ordinary_one_each_rank_for_itself: Each(&[3]),
                what_fails_is_the_same_error_on_all_ranks_and_stops_nothing: Each(&[3]),
                what_items_share_each_rank_computes_that_needs_it: Each(&[2]),
                non_deterministic_results_are_the_same_on_all_ranks: Each(&[3]),
                what_is_missing_is_not_compared_with_all_that_is_stored: Each(&[1, 2]),
                what_lies_in_the_store_of_one_rank_all_get: Each(&[2, 4]),
                what_is_random_on_one_rank_is_so_on_all: Each(&[1, 3]),
                lists_that_differ_are_the_same_error_on_all_ranks: Each(&[2]),
                values_that_are_too_large_stay_and_their_keys_are_known: Each(&[2]),
                values_that_are_not_wanted_stay_and_their_keys_are_known: Each(&[2]),
                of_several_values_those_that_are_wanted_come: Each(&[2]),
                what_is_dealt_out_is_dealt_out_by_its_cost: Each(&[2]),
                a_rank_that_is_done_takes_what_another_has_not_begun: Each(&[2, 4]),
                the_shortest_time_of_any_rank_is_that_of_all: Each(&[2, 3]),
                without_time_ranks_begin_nothing_and_all_say_so_alike: Each(&[1, 2, 4]),
            }
            set_map {
                each_point_runs_on_one_set_and_all_ranks_remember_it: Each(&[1, 2, 3, 4, 8]),
                in_a_distributed_app_too: Each(&[1, 2, 3, 4]),
                values_on_several_ranks_lie_on_all_ranks_afterwards: Each(&[1, 2, 3, 4]),
                what_fails_on_one_rank_of_a_set_is_the_same_error_on_all: Each(&[1, 2, 3, 4]),
                what_can_not_be_dealt_to_sets_is_refused_on_all_ranks: Each(&[1, 2, 3, 4]),
                non_deterministic_results_are_those_of_their_sets: Each(&[1, 2, 3, 4]),
                without_time_sets_begin_nothing_and_all_ranks_say_so_alike: Each(&[1, 2, 3, 4]),
            }
            together {
                any_number_of_ranks_goes_on_from_what_others_saved_together: UpTo(5),
                what_is_saved_while_all_commit_is_not_lost: Each(&[3]),
                ranks_may_save_at_different_times: Each(&[2, 3]),
                ranks_that_open_different_stores_get_an_error: Each(&[3]),
                ranks_of_a_node_that_save_in_different_folders_get_an_error: Each(&[2, 3]),
                a_store_of_ranks_is_for_engines_of_ranks: Each(&[1, 2]),
            }
        }
    };
}

macro_rules! tests {
    ($($module:ident { $($name:ident: $kind:ident($sizes:expr),)* })*) => {
        /// All of them.
        pub const TESTS: &[Test] = &[$($(Test {
            name: concat!(stringify!($module), "::", stringify!($name)),
            sizes: Sizes::$kind($sizes),
            body: $module::$name,
        },)*)*];
    };
}

for_each_test_of_ranks!(tests);

/// Runs one with threads, on all numbers of ranks that it is for.
///
/// # Panics
/// If it fails, or there is none of that name.
pub fn on_threads(name: &str) {
    let test = TESTS.iter().find(|test| test.name == name);
    let test = test.unwrap_or_else(|| panic!("no test is called {name}"));
    match test.sizes {
        Sizes::Each(sizes) => sizes
            .iter()
            .for_each(|size| (test.body)(Ranks::of(&Threads, *size))),
        Sizes::UpTo(most) => (test.body)(Ranks::of(&Threads, most)),
    }
}

/// Runs those that are for the number of ranks of a world. What takes several numbers of ranks one after
/// another is run in a world of eight, in parts of it. Gives how many were run.
///
/// # Panics
/// If one fails.
pub fn run_all(world: &dyn World, mut begins: impl FnMut(&str)) -> usize {
    let most = world.most();
    let mut ran = 0;
    for test in TESTS {
        let size = match test.sizes {
            Sizes::Each(sizes) => sizes.contains(&most).then_some(most),
            Sizes::UpTo(size) => (most == 8).then_some(size),
        };
        if let Some(size) = size {
            begins(test.name);
            (test.body)(Ranks::of(world, size));
            ran += 1;
        }
    }
    ran
}
