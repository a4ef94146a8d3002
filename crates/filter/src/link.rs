//! Links that frames come from, and where on them a header is looked for.

use crate::condition::Variable;

/// Links whose frames are understood, by their pcap link type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// Ethernet (1).
    Ethernet,
    /// IPv4 or IPv6 without a link header (101).
    Raw,
    /// Linux cooked capture (113).
    LinuxCooked,
    /// Linux cooked capture, version 2 (276).
    LinuxCooked2,
}

impl Link {
    /// The link of pcap's link type `number`.
    pub fn of_number(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Ethernet,
            12 | 14 | 101 => Self::Raw,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            _ => return None,
        })
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Raw => "raw IP",
            Self::LinuxCooked => "Linux cooked capture",
            Self::LinuxCooked2 => "Linux cooked capture v2",
        }
    }
}

/// What encloses the network header that a test asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    Raw,
    LinuxCooked,
    LinuxCooked2,
    Ppp,
}

impl Layer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ethernet => Link::Ethernet.name(),
            Self::Raw => Link::Raw.name(),
            Self::LinuxCooked => Link::LinuxCooked.name(),
            Self::LinuxCooked2 => Link::LinuxCooked2.name(),
            Self::Ppp => "PPP",
        }
    }
}

/// A place in a frame: bytes from its start, or from what a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub base: Option<Variable>,
    pub offset: u32,
}

impl Place {
    pub(crate) fn fixed(offset: u32) -> Self {
        Self { base: None, offset }
    }

    pub(crate) fn at(variable: Variable) -> Self {
        Self { base: Some(variable), offset: 0 }
    }

    /// `bytes` further on, or back if they wrap.
    pub(crate) fn plus(self, bytes: u32) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// Where headers are looked for. `vlan`, `mpls`, `pppoes` and `geneve` move it for all tests that
/// stand behind them in the text.
#[derive(Debug, Clone)]
pub(crate) struct Headers {
    pub layer: Layer,
    /// Where the link header begins.
    pub link: Place,
    /// Where the type of what the link carries stands, if there is one.
    pub link_type: Place,
    /// Where the link's payload begins.
    pub payload: Place,
    /// From the link's payload to the network header.
    pub network: u32,
    /// The same, if the link's header is followed by LLC without SNAP.
    pub network_without_snap: u32,
    /// MPLS labels that were asked for.
    pub labels: u32,
    /// Whether the link header is one that a Geneve header is followed by, or not: then it is as
    /// long as its payload's place says.
    pub in_geneve: bool,
}

impl Headers {
    pub(crate) fn of(link: Link) -> Self {
        let (layer, link_type, payload, network_without_snap) = match link {
            Link::Ethernet => (Layer::Ethernet, 12, 14, 3),
            Link::Raw => (Layer::Raw, 0, 0, 0),
            Link::LinuxCooked => (Layer::LinuxCooked, 14, 16, 0),
            Link::LinuxCooked2 => (Layer::LinuxCooked2, 0, 20, 0),
        };
        Self {
            layer,
            link: Place::fixed(0),
            link_type: Place::fixed(link_type),
            payload: Place::fixed(payload),
            network: 0,
            network_without_snap,
            labels: 0,
            in_geneve: false,
        }
    }

    /// Where the network header begins.
    pub(crate) fn network_at(&self) -> Place {
        self.payload.plus(self.network)
    }
}
