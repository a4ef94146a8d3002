//! What an expression says, before it is asked what that means on a link.

use std::net::Ipv6Addr;
use std::ops::Range;

/// A protocol by keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Protocol {
    Link,
    Ip,
    Arp,
    Rarp,
    Sctp,
    Tcp,
    Udp,
    Icmp,
    Igmp,
    Igrp,
    Pim,
    Vrrp,
    Carp,
    Atalk,
    Aarp,
    Decnet,
    Lat,
    Sca,
    Moprc,
    Mopdl,
    Ip6,
    Icmp6,
    Ah,
    Esp,
    Iso,
    Esis,
    Isis,
    IsisL1,
    IsisL2,
    IsisIih,
    IsisLsp,
    IsisSnp,
    IsisCsnp,
    IsisPsnp,
    Clnp,
    Stp,
    Ipx,
    Netbeui,
    Radio,
}

/// Which of a packet's two addresses or ports is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Direction {
    Source,
    Destination,
    Either,
    Both,
    /// One that only Wi-Fi has: `ra`, `ta`, `addr1` to `addr4`.
    Wireless,
}

/// What an identifier names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Gateway,
    Proto,
    ProtoChain,
}

/// What stands before an identifier, and what the next one inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Qualifiers {
    /// `tcp`, `ip`, `ether`, …
    pub protocol: Option<Protocol>,
    /// `src`, `dst`, …
    pub direction: Option<Direction>,
    /// `host`, `net`, `port`, …
    pub kind: Option<Kind>,
}

/// An identifier, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Id {
    /// A word to be looked up.
    Name(String),
    /// A number.
    Number(u32),
    /// An IPv4 address or the front of one, by `mask` or `/` also a network.
    Ipv4 {
        /// Dotted numbers.
        text: String,
        /// `mask 255.255.0.0`
        mask: Option<String>,
        /// `/16`
        length: Option<u32>,
    },
    /// An IPv6 address or network.
    Ipv6 {
        /// The address.
        address: Ipv6Addr,
        /// `/64`
        length: Option<u32>,
    },
    /// A MAC address.
    Mac([u8; 6]),
    /// `$1f`: a node of ARCnet.
    Arcnet,
}

/// Two operands' operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// An arithmetic expression, 32 bits without sign, wrapping.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Number(u32),
    /// Bytes of the packet on the wire.
    Length,
    /// `proto[at:bytes]`
    Load {
        protocol: Protocol,
        at: Box<Arithmetic>,
        bytes: u32,
        span: Range<usize>,
    },
    Negative(Box<Arithmetic>),
    Binary {
        operator: Operator,
        left: Box<Arithmetic>,
        right: Box<Arithmetic>,
        span: Range<usize>,
    },
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

/// What `byte N op M` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ByteTest {
    Equal,
    Less,
    Greater,
    And,
    Or,
}

/// What `llc` may be narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LlcKind {
    /// Information frames.
    Information,
    /// Supervisory frames.
    Supervisory,
    /// Unnumbered frames.
    Unnumbered,
    /// One supervisory command, by the four lower bits of the control field.
    SupervisoryCommand(u32),
    /// One unnumbered command, by the control field without its poll bit.
    UnnumberedCommand(u32),
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Primitive {
    Id { qualifiers: Qualifiers, id: Id },
    Protocol(Protocol),
    Relation { left: Arithmetic, comparison: Comparison, right: Arithmetic },
    Broadcast(Option<Protocol>),
    Multicast(Option<Protocol>),
    Less(u32),
    Greater(u32),
    Byte { at: u32, test: ByteTest, with: u32 },
    Inbound,
    Outbound,
    Interface(u32),
    Vlan(Option<u32>),
    Mpls(Option<u32>),
    PppoeDiscovery,
    PppoeSession(Option<u32>),
    Geneve(Option<u32>),
    Llc(Option<LlcKind>),
}

/// How a term is joined to those before it. Both bind equally, from the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Joint {
    And,
    Or,
}

/// A whole expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Expression {
    Primitive(Primitive, Range<usize>),
    Not(Box<Expression>),
    /// The first term and those joined to it, in order.
    Chain(Box<Expression>, Vec<(Joint, Expression)>),
}
