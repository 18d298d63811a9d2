//! The official Python SDK.

use std::{collections::BTreeSet, fs};

use super::hosts::{Bench, directory, installed};

async fn run(name: &str) {
    let bench = Bench::new().await;
    bench
        .run(
            "/usr/bin/python3",
            &["-B", "run.py", name],
            &[("PYTHONPATH", installed("mcp-python"))],
        )
        .await;
}

/// One test for each function of that name in tests/agents/host, and the names of all.
macro_rules! hosts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
            #[tokio::test]
            async fn $name() {
                run(stringify!($name)).await;
            }
        )*
    };
}

hosts! {
    every_tool_is_told_with_its_bounds
    unknown_and_wrong_arguments_are_refused
    nul_is_refused_where_the_bus_cannot_carry_it_and_costs_nothing
    a_size_is_refused_for_good_and_before_anything_is_done
    what_is_sent_without_waiting_is_typed_in_order
    a_server_whose_bus_is_gone_answers_what_was_asked_and_ends
    malformed_messages_are_answered_and_the_server_lives_on
    a_mebibyte_of_input_arrives
    a_cancelled_wait_ends_the_wait_and_not_the_session
    what_a_poll_delivered_comes_again_until_it_is_acknowledged
    a_long_wait_is_told_of_where_the_client_asks
    calls_beyond_the_limit_are_refused
    every_lifecycle_of_the_protocol_works
    the_settings_say_what_a_host_is_shown_and_how_much_it_may_ask

    a_session_is_opened_written_read_inspected_and_closed
    a_healthy_session_is_reused_and_an_ended_one_is_not
    a_root_is_a_real_directory
    agents_are_exact_and_fail_closed
    a_first_prompt_is_given_as_the_catalogue_says_or_not_at_all
    a_language_is_passed_where_the_catalogue_lets_it
    a_close_is_bounded_and_a_graceful_one_asks_first
    inspecting_and_reading_change_nothing
    unknown_sessions_are_unknown_to_every_call
    a_session_whose_directory_is_gone_can_still_be_ended
    a_state_follows_what_the_session_does
    parallel_opens_give_one_session_and_one_prompt
    a_first_prompt_is_typed_though_its_open_is_cancelled
    a_first_prompt_that_is_not_taken_names_the_session
    a_line_feed_at_the_end_is_taken_for_enter
    pipes_take_the_place_of_a_terminal_where_none_is_free_and_that_is_allowed

    a_command_gives_its_output_and_how_it_ended
    a_list_is_read_by_no_shell_and_a_string_only_by_the_one_inside
    what_takes_longer_goes_on
    a_workdir_is_an_existing_directory_and_the_only_one_that_is_seen
    environment_is_passed_as_the_policy_lets_it
    a_program_that_is_not_there_is_told_from_one_that_cannot_run
    a_silence_is_ended_and_output_rearms_its_watchdog
    a_session_of_the_same_name_is_replaced_where_that_is_asked_for
    much_output_is_bounded_and_all_of_it_can_be_had
    what_an_answer_leaves_out_is_told
    a_default_watchdog_yields_to_that_of_the_catalogue_entry
    pipes_keep_no_terminal_and_standard_input_is_closed_unless_asked

    the_list_is_of_this_server_newest_first
    a_log_is_read_by_line
    a_log_is_bounded_and_goes_on_at_the_next_offset
    arguments_in_records_are_bounded
    keys_are_sent_after_bytes_after_text
    application_cursor_keys_follow_the_mode_of_the_screen
    a_paste_is_marked_where_the_program_asked
    the_end_of_input_is_told_to_a_terminal_and_to_a_reader_of_keys_not
    clear_forgets_what_has_ended_and_remove_ends_what_has_not
    a_session_that_waits_for_input_says_so
    keys_without_a_terminal_are_refused_before_anything_is_typed
    what_was_typed_before_a_failure_is_told

    python_repl_is_driven
    a_pager_is_driven
    git_add_patch_is_driven
    lazygit_is_driven

    two_subtasks_in_two_worktrees_are_never_mixed
    a_task_is_recovered_from_facts
    a_task_is_ended_within_a_bounded_time_whatever_it_does
    an_end_that_is_not_confirmed_is_told
    events_carry_task_and_subtask
    an_identity_attributes_every_session_and_names_the_workspace

    defect_cursors_count_bytes_and_a_limited_read_goes_on_where_it_stopped
    defect_no_byte_is_lost_over_random_read_sizes
    defect_output_stays_after_the_exit
    defect_a_secret_split_across_reads_is_never_shown
    defect_a_kill_takes_the_whole_tree_and_is_not_told_as_an_exit
    defect_the_host_s_environment_is_not_inherited
    defect_an_unknown_key_is_an_error_and_nothing_is_sent
    defect_timeouts_hold_in_the_background_and_leave_no_child
    defect_an_aborted_request_leaves_its_session_running
    defect_paste_and_enter_are_writes_of_their_own
    defect_the_last_output_comes_before_the_exit
    defect_ended_sessions_keep_no_descriptors
    defect_a_write_to_an_ended_session_says_how_it_ended
    defect_hosts_neither_see_nor_end_each_other_s_sessions

    the_sessions_of_a_killed_host_are_gone_after_the_grace
    secrets_are_neither_in_records_nor_on_the_screen_nor_in_errors
}

/// What is written in Python and named by nobody would never run.
#[test]
fn every_test_of_a_host_is_named_here_and_every_defect_has_one() {
    let modules = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let modules =
        modules.filter(|path| path.extension().is_some_and(|extension| extension == "py"));
    let sources: Vec<_> = modules.map(|path| fs::read_to_string(path).unwrap()).collect();
    let tests = sources.iter().flat_map(|source| source.lines());
    let tests = tests.filter_map(|line| line.strip_prefix("async def ")?.strip_suffix("():"));
    let written: BTreeSet<_> = tests.collect();
    let named: BTreeSet<_> = NAMES.iter().copied().collect();
    assert_eq!(written, named);

    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let told: BTreeSet<_> =
        readme.split('`').filter(|word| word.starts_with("defect_")).map(str::to_owned).collect();
    let defects: BTreeSet<_> = named
        .iter()
        .filter(|name| name.starts_with("defect_"))
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(told, defects);
}
