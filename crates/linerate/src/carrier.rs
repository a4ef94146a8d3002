//! An interface that is up and has no carrier: nothing passes until the other end is there.

use port::PortSpec;
use sys::link::{Link, Links};

use crate::output::Output;

/// What an interface without carrier waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCarrier {
    /// Which end is down, as half a sentence.
    pub cause: String,
    /// What helps, as an imperative.
    pub remedy: String,
    /// The same as a command, where it can be named.
    pub command: Option<String>,
}

impl NoCarrier {
    /// Of an interface of the namespace of `links`; `None` if it has a carrier, or is itself down.
    pub fn of(link: &Link, links: &mut Links) -> Option<Self> {
        if link.carrier || !link.up {
            return None;
        }
        Some(match (link.kind.as_deref(), link.peer_index) {
            (Some("veth"), Some(index)) => Self::of_veth(link, index, links),
            (Some(kind), _) => Self {
                cause: format!("this end is up, and what its {kind} leads to is not"),
                remedy: "bring up what is behind it".into(),
                command: None,
            },
            (None, _) => Self {
                cause: "this end is up, and the other one does not answer".into(),
                remedy: "plug the cable in, or switch the other end on".into(),
                command: None,
            },
        })
    }

    fn of_veth(link: &Link, index: u32, links: &mut Links) -> Self {
        let peer = if link.peer_namespace.is_some() { None } else { links.at(index).ok() };
        match peer {
            Some(peer) => Self {
                cause: format!("this end is up, and the far end, {}, is down", peer.name),
                remedy: format!("switch {} on", peer.name),
                command: Some(format!("sudo ip link set {} up", peer.name)),
            },
            None => Self {
                cause: format!(
                    "this end is up, and the far end, interface number {index} of another network \
                     namespace, is down"
                ),
                remedy: "switch the far end on, in its namespace: ip link set NAME up".into(),
                command: None,
            },
        }
    }
}

/// Which way frames are to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Into the interface.
    In,
    /// Out of it.
    Out,
}

/// Says at the start of a run that nothing passes through `port` for want of a carrier.
pub fn tell(output: &Output, port: &PortSpec, way: Way) {
    let Some(name) = port.interface() else { return };
    let missing = Links::current()
        .and_then(|mut links| Ok(NoCarrier::of(&links.named(name)?, &mut links)))
        .ok()
        .flatten();
    let Some(NoCarrier { cause, remedy, .. }) = missing else { return };
    let meanwhile = match way {
        Way::In => "nothing arrives",
        Way::Out => "the kernel takes no frame",
    };
    output.note(&format!("{port}: no carrier: {cause}; until then {meanwhile}; {remedy}"));
}
