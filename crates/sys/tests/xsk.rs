//! AF_XDP sockets on real veth pairs, each test in a network of its own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod packet {
    #[allow(dead_code)]
    pub mod support;
}
mod xsk {
    pub mod opening;
    pub mod sending;
    pub mod support;
}

use std::process::ExitCode;

use xsk::{opening, sending};

fn main() -> ExitCode {
    testing::run(testing::tests![
        opening::opening_names_what_is_wrong,
        opening::a_queue_that_was_let_go_can_be_had_again,
        opening::a_queue_in_use_is_named,
        opening::too_little_lockable_memory_is_named,
        opening::busy_polling_is_as_it_was_set,
        opening::two_sockets_share_one_memory,
        sending::every_frame_arrives_once_in_order,
        sending::frames_that_a_full_device_refuses_are_sent_again,
        sending::jumbo_frames_leave_in_pieces,
        sending::a_frame_too_long_is_named,
        sending::sender_says_that_the_interface_is_down,
    ])
}
