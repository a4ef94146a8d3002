//! Tests on a network or a disk of their own, for root and ordinary users alike.
//!
//! A user namespace is entered by a process with one thread only, which the usual harness is not.
//! A test binary with `harness = false` hands its tests to [`run`] instead: each runs in a thread
//! of its own in an empty network of its own, and on a small file system by [`on_small_disk`].
//!
//! A test that lacks a right or a tool ends with [`skip`] and is reported as `ignored`; in the end
//! each of them is said again as `SKIPPED name: reason`, which is what the checks look for.

mod disk;
mod skipped;
mod test;

pub use disk::on_small_disk;
pub use skipped::{say_skipped, skip};
pub use test::{Ending, Outcome, Test};

use std::process::ExitCode;
use std::sync::mpsc;

use libtest_mimic::Arguments;
use sys::namespace::{Rights, enter_user_namespace};

/// Runs the tests that the arguments of the program choose, one after the other.
pub fn run(tests: impl IntoIterator<Item = Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They time traffic and fill rings: one would disturb the other.
    arguments.test_threads.get_or_insert(1);
    let able = become_able().map_err(|error| error.to_string());
    let (skipped, reasons) = mpsc::channel();
    let trials =
        tests.into_iter().map(|test| test.into_trial(able.clone(), skipped.clone())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    for (name, reason) in reasons.try_iter() {
        say_skipped(name, reason);
    }
    conclusion.exit_code()
}

/// Makes the process able to have networks and mounts of its own, by a user namespace if need be.
fn become_able() -> sys::Result<()> {
    if Rights::probe().can_make_networks() { Ok(()) } else { enter_user_namespace() }
}
