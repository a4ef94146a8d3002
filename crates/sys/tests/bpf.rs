//! Maps, programs and links of the kernel's eBPF, each test in a network of its own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bpf {
    pub mod link;
    pub mod live;
    pub mod map;
    pub mod program;
    pub mod right;
    pub mod support;
    pub mod survival;
}

use std::process::ExitCode;

use bpf::right;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(bpf::survival::HOLD) => return bpf::survival::hold(),
        Some(right::TRY) => return right::try_without(),
        _ => {}
    }
    testing::run(testing::tests![
        bpf::map::arrays_and_hashes_hold_what_was_set,
        bpf::map::values_per_cpu_are_as_many_as_the_kernel_has,
        bpf::map::the_longest_prefix_is_found,
        bpf::map::wrong_lengths_are_refused,
        bpf::map::a_full_map_says_so,
        bpf::program::verdict_and_changes_of_a_frame_come_back,
        bpf::program::counters_are_read_without_a_call,
        bpf::program::the_verifier_says_what_is_wrong,
        bpf::program::maps_are_named_by_their_place,
        bpf::program::a_program_knows_itself,
        bpf::program::frames_have_a_least_length,
        bpf::link::a_program_goes_with_its_link,
        bpf::link::a_program_that_is_there_stays,
        bpf::link::a_link_notices_that_its_interface_went,
        bpf::link::programs_are_exchanged,
        bpf::link::a_large_mtu_is_the_reason,
        bpf::link::unknown_interfaces_are_named,
        bpf::live::frames_are_redirected_and_counted_exactly,
        bpf::live::frames_that_do_not_fit_are_refused,
        bpf::live::a_run_is_called_back,
        bpf::live::a_veth_takes_frames_for_a_far_end_with_a_program,
        bpf::survival::nothing_remains_of_a_killed_process,
        right::a_user_namespace_does_not_give_the_right,
    ])
}
