//! Packet rings and senders on real veth pairs, each test in a network namespace of its own.
//!
//! A program of its own instead of the usual harness, because without root it enters a user
//! namespace first, which the kernel allows to single-threaded programs only. Arguments that do
//! not begin with `-` select tests by part of their name.

#![allow(clippy::unwrap_used, clippy::panic)]

mod packet {
    pub mod receive;
    pub mod ring_state;
    pub mod send;
    pub mod support;
}

use std::process::ExitCode;

use packet::{receive, ring_state, send, support};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    (
        "every_frame_sent_is_counted_and_delivered",
        receive::every_frame_sent_is_counted_and_delivered,
    ),
    ("frames_before_start_are_not_seen", receive::frames_before_start_are_not_seen),
    ("tags_arrive_byte_for_byte", receive::tags_arrive_byte_for_byte),
    ("own_frames_are_ignored", receive::own_frames_are_ignored),
    ("filter_and_snap", receive::filter_and_snap),
    ("fanout_gives_each_frame_to_one_socket", receive::fanout_gives_each_frame_to_one_socket),
    ("time_is_between_before_and_after", receive::time_is_between_before_and_after),
    ("flow_hash_follows_the_flow", receive::flow_hash_follows_the_flow),
    ("stop_under_traffic_is_exact", ring_state::stop_under_traffic_is_exact),
    ("overload_is_counted_exactly", ring_state::overload_is_counted_exactly),
    ("blocks_are_held_and_outlive_the_ring", ring_state::blocks_are_held_and_outlive_the_ring),
    (
        "waiting_does_not_spin_while_a_block_is_held",
        ring_state::waiting_does_not_spin_while_a_block_is_held,
    ),
    ("ring_goes_on_after_down_and_up", ring_state::ring_goes_on_after_down_and_up),
    (
        "ring_goes_on_after_the_interface_was_remade",
        ring_state::ring_goes_on_after_the_interface_was_remade,
    ),
    (
        "fanout_goes_on_after_the_interface_was_remade",
        ring_state::fanout_goes_on_after_the_interface_was_remade,
    ),
    ("promiscuity_ends_with_the_ring", ring_state::promiscuity_ends_with_the_ring),
    ("opening_names_what_is_wrong", ring_state::opening_names_what_is_wrong),
    (
        "frames_longer_than_the_mtu_are_refused_by_name",
        send::frames_longer_than_the_mtu_are_refused_by_name,
    ),
    ("jumbo_frames_pass", send::jumbo_frames_pass),
    ("sender_says_that_the_interface_is_down", send::sender_says_that_the_interface_is_down),
    ("sender_receives_nothing", send::sender_receives_nothing),
    ("back_pressure_is_told_and_nothing_is_lost", send::back_pressure_is_told_and_nothing_is_lost),
    ("both_methods_send_the_same", send::both_methods_send_the_same),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(ring_state::HOLD_A_RING) {
        ring_state::hold_a_ring();
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let chosen: Vec<&Test> = TESTS
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(part)))
        .collect();
    if let Err(reason) = support::become_able() {
        for (name, _) in chosen {
            eprintln!("SKIPPED {name}: {reason}");
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in &chosen {
        // A thread of its own has a namespace of its own, which goes away with it.
        let outcome = std::thread::spawn(move || {
            support::new_network();
            test();
        })
        .join();
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(outcome.is_err());
    }
    println!("{} passed; {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
