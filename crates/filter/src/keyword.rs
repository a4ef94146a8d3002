//! The words that expressions are made of.

use crate::syntax::{Direction, Kind, LlcKind, Protocol};

/// What a keyword means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Keyword {
    And,
    Or,
    Not,
    Protocol(Protocol),
    Direction(Direction),
    Kind(Kind),
    /// `mask`
    Mask,
    Less,
    Greater,
    Byte,
    Broadcast,
    Multicast,
    Length,
    Inbound,
    Outbound,
    Interface,
    Vlan,
    Mpls,
    PppoeDiscovery,
    PppoeSession,
    Geneve,
    Llc,
    /// A name of a number, such as `tcp-syn`.
    Number(u32),
    /// `rnr`: a command of LLC, and elsewhere a rule of pf.
    Rnr,
    /// A word that belongs to another kind of link, named here.
    Foreign(&'static str),
}

const ATM: &str = "ATM";
const SS7: &str = "SS7";
const WIRELESS: &str = "802.11";
/// See [`Keyword::Rnr`].
pub const PF: &str = "OpenBSD's pf log";

/// What `word` means, if it is a keyword.
pub fn keyword(word: &str) -> Option<Keyword> {
    use Keyword as K;
    Some(match word {
        "and" => K::And,
        "or" => K::Or,
        "not" => K::Not,
        "src" => K::Direction(Direction::Source),
        "dst" => K::Direction(Direction::Destination),
        "ra" | "ta" | "addr1" | "addr2" | "addr3" | "addr4" | "address1" | "address2"
        | "address3" | "address4" => K::Direction(Direction::Wireless),
        "host" => K::Kind(Kind::Host),
        "net" => K::Kind(Kind::Net),
        "port" => K::Kind(Kind::Port),
        "portrange" => K::Kind(Kind::PortRange),
        "gateway" => K::Kind(Kind::Gateway),
        "proto" => K::Kind(Kind::Proto),
        "protochain" => K::Kind(Kind::ProtoChain),
        "mask" => K::Mask,
        "less" => K::Less,
        "greater" => K::Greater,
        "byte" => K::Byte,
        "broadcast" => K::Broadcast,
        "multicast" => K::Multicast,
        "len" | "length" => K::Length,
        "inbound" => K::Inbound,
        "outbound" => K::Outbound,
        "ifindex" => K::Interface,
        "vlan" => K::Vlan,
        "mpls" => K::Mpls,
        "pppoed" => K::PppoeDiscovery,
        "pppoes" => K::PppoeSession,
        "geneve" => K::Geneve,
        "llc" => K::Llc,
        "type" | "subtype" | "direction" | "dir" => K::Foreign(WIRELESS),
        "lane" | "metac" | "bcc" | "oam" | "oamf4" | "oamf4ec" | "oamf4sc" | "sc" | "ilmic"
        | "vpi" | "vci" | "connectmsg" | "metaconnect" => K::Foreign(ATM),
        "rnr" | "rulenum" => K::Rnr,
        "on" | "ifname" | "rset" | "ruleset" | "srnr" | "subrulenum" | "reason" | "action" => {
            K::Foreign(PF)
        }
        "fisu" | "lssu" | "lsu" | "msu" | "hfisu" | "hlssu" | "hmsu" | "sio" | "opc" | "dpc"
        | "sls" | "hsio" | "hopc" | "hdpc" | "hsls" => K::Foreign(SS7),
        _ => return protocol(word).map(K::Protocol).or_else(|| number(word).map(K::Number)),
    })
}

fn protocol(word: &str) -> Option<Protocol> {
    use Protocol as P;
    Some(match word {
        "link" | "ether" | "ppp" | "slip" | "fddi" | "tr" | "wlan" => P::Link,
        "arp" => P::Arp,
        "rarp" => P::Rarp,
        "ip" => P::Ip,
        "sctp" => P::Sctp,
        "tcp" => P::Tcp,
        "udp" => P::Udp,
        "icmp" => P::Icmp,
        "igmp" => P::Igmp,
        "igrp" => P::Igrp,
        "pim" => P::Pim,
        "vrrp" => P::Vrrp,
        "carp" => P::Carp,
        "radio" => P::Radio,
        "ip6" => P::Ip6,
        "icmp6" => P::Icmp6,
        "ah" => P::Ah,
        "esp" => P::Esp,
        "atalk" => P::Atalk,
        "aarp" => P::Aarp,
        "decnet" => P::Decnet,
        "lat" => P::Lat,
        "sca" => P::Sca,
        "moprc" => P::Moprc,
        "mopdl" => P::Mopdl,
        "iso" => P::Iso,
        "esis" | "es-is" => P::Esis,
        "isis" | "is-is" => P::Isis,
        "l1" => P::IsisL1,
        "l2" => P::IsisL2,
        "iih" => P::IsisIih,
        "lsp" => P::IsisLsp,
        "snp" => P::IsisSnp,
        "csnp" => P::IsisCsnp,
        "psnp" => P::IsisPsnp,
        "clnp" => P::Clnp,
        "stp" => P::Stp,
        "ipx" => P::Ipx,
        "netbeui" => P::Netbeui,
        _ => return None,
    })
}

/// Offsets and values of ICMP (RFC 792), ICMPv6 (RFC 4443, 4861) and TCP (RFC 9293) by name.
fn number(word: &str) -> Option<u32> {
    let icmp = |name: &str| {
        Some(match name {
            "echoreply" => 0,
            "unreach" => 3,
            "sourcequench" => 4,
            "redirect" => 5,
            "echo" => 8,
            "routeradvert" => 9,
            "routersolicit" => 10,
            "timxceed" => 11,
            "paramprob" => 12,
            "tstamp" => 13,
            "tstampreply" => 14,
            "ireq" => 15,
            "ireqreply" => 16,
            "maskreq" => 17,
            "maskreply" => 18,
            _ => return None,
        })
    };
    match word {
        "icmptype" | "icmp6type" => return Some(0),
        "icmpcode" | "icmp6code" => return Some(1),
        "tcpflags" => return Some(13),
        _ => {}
    }
    if let Some(name) = word.strip_prefix("icmp-") {
        return icmp(name);
    }
    if let Some(name) = word.strip_prefix("icmp6-") {
        return icmp6(name);
    }
    let flags = ["fin", "syn", "rst", "push", "ack", "urg", "ece", "cwr"];
    let flag = word.strip_prefix("tcp-")?;
    flags.iter().position(|name| *name == flag).map(|bit| 1 << bit)
}

fn icmp6(name: &str) -> Option<u32> {
    Some(match name {
        "destinationunreach" => 1,
        "packettoobig" => 2,
        "timeexceeded" => 3,
        "parameterproblem" => 4,
        "echo" => 128,
        "echoreply" => 129,
        "multicastlistenerquery" => 130,
        "multicastlistenerreportv1" => 131,
        "multicastlistenerdone" => 132,
        "routersolicit" => 133,
        "routeradvert" => 134,
        "neighborsolicit" => 135,
        "neighboradvert" => 136,
        "redirect" => 137,
        "routerrenum" => 138,
        "nodeinformationquery" => 139,
        "nodeinformationresponse" => 140,
        "ineighbordiscoverysolicit" => 141,
        "ineighbordiscoveryadvert" => 142,
        "multicastlistenerreportv2" => 143,
        "homeagentdiscoveryrequest" => 144,
        "homeagentdiscoveryreply" => 145,
        "mobileprefixsolicit" => 146,
        "mobileprefixadvert" => 147,
        "certpathsolicit" => 148,
        "certpathadvert" => 149,
        "multicastrouteradvert" => 151,
        "multicastroutersolicit" => 152,
        "multicastrouterterm" => 153,
        _ => return None,
    })
}

/// What `llc` is narrowed to by `word`, in letters of either case.
pub fn llc_kind(word: &str) -> Option<LlcKind> {
    use LlcKind as L;
    Some(match word.to_ascii_lowercase().as_str() {
        "i" => L::Information,
        "s" => L::Supervisory,
        "u" => L::Unnumbered,
        "rr" => L::SupervisoryCommand(0x01),
        "rnr" => L::SupervisoryCommand(0x05),
        "rej" => L::SupervisoryCommand(0x09),
        "ui" => L::UnnumberedCommand(0x03),
        "ua" => L::UnnumberedCommand(0x63),
        "disc" => L::UnnumberedCommand(0x43),
        "dm" => L::UnnumberedCommand(0x0f),
        "sabme" => L::UnnumberedCommand(0x6f),
        "test" => L::UnnumberedCommand(0xe3),
        "xid" => L::UnnumberedCommand(0xaf),
        "frmr" => L::UnnumberedCommand(0x87),
        _ => return None,
    })
}
