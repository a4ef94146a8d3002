//! Packet rings and senders on real veth pairs, each test in a network of its own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod packet {
    pub mod receive;
    pub mod ring_state;
    pub mod send;
    pub mod support;
}

use std::process::ExitCode;

use packet::{receive, ring_state, send};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(ring_state::HOLD_A_RING) {
        ring_state::hold_a_ring();
    }
    testing::run(testing::tests![
        receive::every_frame_sent_is_counted_and_delivered,
        receive::frames_before_start_are_not_seen,
        receive::tags_arrive_byte_for_byte,
        receive::own_frames_are_ignored,
        receive::filter_and_snap,
        receive::fanout_gives_each_frame_to_one_socket,
        receive::time_is_between_before_and_after,
        receive::flow_hash_follows_the_flow,
        ring_state::stop_under_traffic_is_exact,
        ring_state::overload_is_counted_exactly,
        ring_state::blocks_are_held_and_outlive_the_ring,
        ring_state::waiting_does_not_spin_while_a_block_is_held,
        ring_state::ring_goes_on_after_down_and_up,
        ring_state::ring_goes_on_after_the_interface_was_remade,
        ring_state::fanout_goes_on_after_the_interface_was_remade,
        ring_state::promiscuity_ends_with_the_ring,
        ring_state::opening_names_what_is_wrong,
        send::frames_longer_than_the_mtu_are_refused_by_name,
        send::jumbo_frames_pass,
        send::sender_says_that_the_interface_is_down,
        send::sender_receives_nothing,
        send::back_pressure_is_told_and_nothing_is_lost,
        send::both_methods_send_the_same,
    ])
}
