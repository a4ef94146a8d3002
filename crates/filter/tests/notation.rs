//! Programs are written as `tcpdump -d` writes them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use filter::{Instruction, Program};
use oracle::frames::ETHERNET;
use oracle::{Libpcap, expressions};

#[test]
fn libpcaps_programs_are_written_as_by_tcpdump() {
    let test = "libpcaps_programs_are_written_as_by_tcpdump";
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(reason) => return testing::say_skipped(test, reason),
    };
    let mut compared = 0;
    for text in expressions::hand_picked().iter().step_by(7) {
        let Ok(compiled) = libpcap.compile(text, ETHERNET, 262_144, true) else { continue };
        let same =
            |i: &oracle::Instruction| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        let program = Program(compiled.instructions().iter().map(same).collect());
        let tcpdump =
            Command::new("tcpdump").args(["-d", "-y", "EN10MB", "-s", "0", "--", text]).output();
        let Ok(output) = tcpdump else { return testing::say_skipped(test, "no tcpdump") };
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            panic!("{text}: {error}");
        }
        assert_eq!(program.to_string(), String::from_utf8_lossy(&output.stdout), "{text}");
        compared += 1;
    }
    assert!(compared >= 50, "{compared}");
}
