//! Any text as a filter, then asked about any frame: it is refused at a place within the text, or has an
//! answer; never a panic.
#![no_main]

use std::net::IpAddr;

use filter::{Filter, Link, Names, Options, Packet, PortName};
use libfuzzer_sys::fuzz_target;

/// Knows no name, so that none is asked for outside of the machine.
struct NoNames;

impl Names for NoNames {
    fn host(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
    fn ether_host(&self, _: &str) -> Option<[u8; 6]> {
        None
    }
    fn network(&self, _: &str) -> Option<u32> {
        None
    }
    fn port(&self, _: &str) -> Option<PortName> {
        None
    }
    fn protocol(&self, _: &str) -> Option<u32> {
        None
    }
}

fuzz_target!(|input: (String, Vec<u8>)| {
    let (text, data) = input;
    let options = Options { names: &NoNames, netmask: Some(0xffff_ff00) };
    for link in [Link::Ethernet, Link::Raw, Link::LinuxCooked, Link::LinuxCooked2] {
        match Filter::with(&text, link, &options) {
            Ok(filter) => {
                let packet = Packet::whole(&data);
                let answers = filter.batch().matches(&[packet; 3]);
                assert_eq!(answers, if filter.matches(&packet) { 0b111 } else { 0 });
                if let Some(program) = filter.program() {
                    assert_eq!(program.to_string().lines().count(), program.0.len());
                }
                let _ = filter.graph().to_string();
            }
            Err(error) => {
                assert!(text.get(error.span.clone()).is_some());
                let _ = error.pointed(&text);
            }
        }
    }
});
