//! The way people name ports: `eth0`, `packet:eth0`, `xdp:eth0@0-3`, `memory:ring`, `pcap:file`, `null:`.
//!
//! Grammar: `[kind:]target[@queues][?option=value[&option=value]…]`, queues for `xdp:` only. Without a kind the target is a network
//! interface and the fastest mechanism at hand serves it. Options wrap the port in faults
//! ([`Faults`]). Printing a spec gives text that parses to the same spec.

mod queues;

pub use queues::Queues;

use std::fmt;
use std::str::FromStr;

use crate::error::{PortError, Result};
use crate::fault::Faults;

/// What kind of place a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// A network interface by the fastest mechanism at hand.
    Interface,
    /// A network interface through a packet socket (AF_PACKET).
    Packet,
    /// Queues of a network interface through AF_XDP, which takes their frames away from the host.
    Xdp,
    /// A ring between two threads of one process.
    Memory,
    /// A capture file (pcap or pcapng to read, pcapng to write).
    Pcap,
    /// Takes everything, keeps nothing.
    Null,
}

impl PortKind {
    const NAMED: [(&'static str, Self); 5] = [
        ("packet", Self::Packet),
        ("xdp", Self::Xdp),
        ("memory", Self::Memory),
        ("pcap", Self::Pcap),
        ("null", Self::Null),
    ];

    /// The word before the colon; empty for a plain interface name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A port as named on the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct PortSpec {
    /// What kind of place.
    pub kind: PortKind,
    /// Interface name, ring name or path; empty for `null:`.
    pub target: String,
    /// Queues of the interface; `None` for all of them.
    pub queues: Option<Queues>,
    /// Faults that the port is wrapped in.
    pub faults: Faults,
}

impl PortSpec {
    /// A spec without options.
    pub fn new(kind: PortKind, target: impl Into<String>) -> Self {
        Self { kind, target: target.into(), queues: None, faults: Faults::default() }
    }

    /// The interface's name, for the kinds that have one.
    pub fn interface(&self) -> Option<&str> {
        matches!(self.kind, PortKind::Interface | PortKind::Packet | PortKind::Xdp)
            .then_some(self.target.as_str())
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != PortKind::Interface {
            write!(f, "{}:", self.kind.name())?;
        }
        f.write_str(&self.target)?;
        if let Some(queues) = self.queues {
            write!(f, "@{queues}")?;
        }
        let options = self.faults.to_string();
        if options.is_empty() { Ok(()) } else { write!(f, "?{options}") }
    }
}

impl FromStr for PortSpec {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |reason: String| PortError::Spec { spec: text.into(), reason };
        let (kind, rest) = split_kind(text).map_err(wrong)?;
        let (target, options) = match rest.rsplit_once('?') {
            Some((target, options)) => (target, options),
            None => (rest, ""),
        };
        let (target, queues) = match target.rsplit_once('@').filter(|_| kind == PortKind::Xdp) {
            Some((target, queues)) => (target, Some(queues.parse().map_err(wrong)?)),
            None => (target, None),
        };
        check_target(kind, target).map_err(wrong)?;
        let faults = options.parse().map_err(wrong)?;
        Ok(Self { kind, target: target.into(), queues, faults })
    }
}

fn split_kind(text: &str) -> Result<(PortKind, &str), String> {
    let Some((word, rest)) = text.split_once(':') else {
        return Ok((PortKind::Interface, text));
    };
    let known = PortKind::NAMED.iter().find(|(name, _)| *name == word);
    match known {
        Some((_, kind)) => Ok((*kind, rest)),
        None => {
            let names: Vec<_> =
                PortKind::NAMED.iter().map(|(name, _)| format!("{name}:")).collect();
            Err(format!("unknown kind «{word}:»; known are {} or an interface", names.join(", ")))
        }
    }
}

/// Longest interface name that Linux takes, without the closing zero (IFNAMSIZ - 1, linux/if.h).
const INTERFACE_NAME_BYTES: usize = 15;

fn check_target(kind: PortKind, target: &str) -> Result<(), String> {
    match kind {
        PortKind::Null if !target.is_empty() => Err(format!("null: takes no name, got «{target}»")),
        PortKind::Null => Ok(()),
        _ if target.is_empty() => Err(match kind {
            PortKind::Pcap => "a file's path is missing, as in pcap:trace.pcapng".into(),
            PortKind::Memory => "the ring's name is missing, as in memory:ring0".into(),
            _ => "the interface's name is missing, as in packet:eth0".into(),
        }),
        PortKind::Interface | PortKind::Packet | PortKind::Xdp => check_interface_name(target),
        PortKind::Memory | PortKind::Pcap => Ok(()),
    }
}

fn check_interface_name(name: &str) -> Result<(), String> {
    if name.len() > INTERFACE_NAME_BYTES {
        return Err(format!(
            "an interface's name has at most {INTERFACE_NAME_BYTES} bytes, this one has {}; \
             for a file write pcap:{name}",
            name.len()
        ));
    }
    if let Some(odd) = name.chars().find(|c| *c == '/' || c.is_whitespace()) {
        return Err(format!("an interface's name holds no {odd:?}; for a file write pcap:{name}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parsed() {
        for text in [
            "eth0",
            "packet:eth0",
            "xdp:eth0",
            "xdp:eth0@2",
            "xdp:eth0@0-3?drop=0.01&seed=7",
            "memory:a",
            "pcap:/tmp/x y.pcapng",
            "pcap:odd:name",
            "null:",
            "packet:veth0?drop=0.01&seed=7",
            "eth0?corrupt=0.5&delay=0.25&duplicate=0.001",
        ] {
            let spec: PortSpec = text.parse().unwrap();
            let again: PortSpec = spec.to_string().parse().unwrap();
            assert_eq!(spec, again, "{text}");
        }
        assert_eq!("packet:eth0".parse::<PortSpec>().unwrap().to_string(), "packet:eth0");
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, expected) in [
            ("", "name is missing"),
            ("packet:", "name is missing"),
            ("pcap:", "path is missing"),
            ("null:x", "takes no name"),
            ("xdq:eth0", "unknown kind «xdq:»"),
            ("xdp:eth0@", "0-3"),
            ("xdp:eth0@3-1", "is before"),
            ("xdp:@1", "name is missing"),
            ("a-very-long-interface-name", "at most 15 bytes"),
            ("./file", "holds no '/'"),
            ("eth0?drop=2", "between 0 and 1"),
            ("eth0?drip=0.1", "unknown option «drip»"),
        ] {
            let message = text.parse::<PortSpec>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
