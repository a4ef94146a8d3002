//! Network namespaces, veth pairs and what is read and set on them, on real interfaces.

#[path = "netns/cases.rs"]
mod cases;
#[path = "netns/socket.rs"]
mod socket;
#[path = "netns/survival.rs"]
mod survival;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(survival::HOLD) {
        return survival::hold();
    }
    testing::run(cases::CASES.iter().chain(survival::CASES).copied())
}
