//! The AF_XDP port on real veth pairs: conformance, exact accounts, the ladder, and interfaces that are left
//! as they were found.
#![allow(clippy::unwrap_used, clippy::panic)]

mod xdp {
    pub mod accounts;
    pub mod conformance;
    pub mod ladder;
    pub mod left_behind;
    pub mod wire;
}

use std::process::ExitCode;

use testing::tests;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(xdp::left_behind::HOLD_A_PORT) {
        xdp::left_behind::hold_a_port();
    }
    testing::run(tests![
        xdp::conformance::conforms,
        xdp::conformance::conforms_with_several_queues,
        xdp::conformance::conforms_with_jumbo_frames,
        xdp::conformance::conforms_with_threaded_napi,
        xdp::conformance::sending_conforms_where_packet_sockets_receive,
        xdp::conformance::receiving_conforms_where_packet_sockets_send,
        xdp::accounts::overload_is_charged_to_the_ring,
        xdp::accounts::times_are_those_of_the_arrival,
        xdp::accounts::stop_under_traffic_is_exact,
        xdp::accounts::frames_too_long_for_a_buffer_are_named,
        xdp::accounts::tags_arrive_byte_for_byte,
        xdp::accounts::batches_are_held_and_outlive_the_port,
        xdp::accounts::the_host_gets_its_frames_before_and_after,
        xdp::accounts::goes_on_after_down_and_up,
        xdp::accounts::goes_on_after_the_interface_was_remade,
        xdp::ladder::the_mechanism_says_which_rung_and_why,
        xdp::ladder::what_is_required_is_not_replaced,
        xdp::ladder::a_foreign_program_stays_and_is_named,
        xdp::ladder::opening_says_what_is_wrong,
        xdp::ladder::a_large_mtu_of_the_other_end_is_no_obstacle,
        xdp::left_behind::nothing_after_the_port_is_closed,
        xdp::left_behind::nothing_after_the_process_was_killed,
    ])
}
