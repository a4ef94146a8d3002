//! An interface is as it was, once a port is gone.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use port::RxQueue as _;
use port::xdp::XdpRx;
use sys::ethtool::{Ethtool, Offloads};
use sys::link::{Link, Links};
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::Outcome;

use super::wire::*;

/// Argument that makes the test program hold a port on `there` until it is killed.
pub const HOLD_A_PORT: &str = "hold-a-port";

/// All of an interface that a port may change.
fn state(name: &str) -> Result<(Link, Offloads), sys::Error> {
    let mut link = Links::current()?.named(name)?;
    link.statistics = Default::default();
    Ok((link, Ethtool::current(name)?.offloads()?))
}

fn states() -> Result<[(Link, Offloads); 2], sys::Error> {
    Ok([state("here")?, state("there")?])
}

fn plug_cable() -> Outcome {
    let here = Namespace::current()?;
    let config = VethConfig { offloads: true, ..VethConfig::default() };
    VethPair::create(&here, "here", &here, "there", &config)?;
    Ok(())
}

fn assert_back(before: &[(Link, Offloads); 2]) -> Outcome {
    let begun = Instant::now();
    loop {
        let now = states()?;
        if now == *before {
            return Ok(());
        }
        assert!(begun.elapsed() < PATIENCE, "{now:?} instead of {before:?}");
        std::thread::yield_now();
    }
}

pub fn nothing_after_the_port_is_closed() -> Outcome {
    needs_programs()?;
    plug_cable()?;
    let before = states()?;
    let mut rx = XdpRx::open("there", None, &options(), None)?;
    rx.start()?;
    let held = Links::current()?.named("there")?;
    assert!(held.xdp.len() == 1 && held.promiscuous, "{held:?}");
    drop(rx);
    assert_back(&before)
}

pub fn nothing_after_the_process_was_killed() -> Outcome {
    needs_programs()?;
    plug_cable()?;
    let before = states()?;
    // The child is in the namespace of this thread.
    let mut child =
        Command::new(std::env::current_exe()?).arg(HOLD_A_PORT).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line)?;
    assert_eq!(line, "held\n");
    let held = Links::current()?.named("there")?;
    assert!(held.xdp.len() == 1 && held.promiscuous, "{held:?}");
    child.kill()?;
    child.wait()?;
    assert_back(&before)?;
    // The queue can be had at once.
    XdpRx::open("there", None, &options(), None)?;
    Ok(())
}

pub fn hold_a_port() -> ! {
    let mut rx = XdpRx::open("there", None, &options(), None).unwrap();
    rx.start().unwrap();
    println!("held");
    loop {
        std::thread::park();
    }
}
