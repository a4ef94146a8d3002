//! Protocols by keyword and by number.

use super::Compiler;
use super::link_type::{
    AARP, APPLETALK, ARP, DECNET, IPV4, IPV6, LAT, LOOPBACK, MOP_DUMP, MOP_REMOTE, RARP, SAP_IPX,
    SAP_ISO, SAP_NETBEUI, SAP_STP, SCA,
};
use crate::condition::{Condition, Size};
use crate::error::Result;
use crate::syntax::Protocol;

// Protocol numbers of IP (IANA).
const ICMP: u32 = 1;
const IGMP: u32 = 2;
const IGRP: u32 = 9;
const FRAGMENT: u32 = 44;
pub(super) const ICMPV6: u32 = 58;
const VRRP: u32 = 112;

// Network layer protocol identifiers of OSI (ISO/IEC TR 9577).
const CLNP: u32 = 0x81;
const ESIS: u32 = 0x82;
const ISIS: u32 = 0x83;

// Types of IS-IS packets (ISO/IEC 10589).
const L1_HELLO: u32 = 15;
const L2_HELLO: u32 = 16;
const HELLO: u32 = 17;
const L1_STATE: u32 = 18;
const L2_STATE: u32 = 20;
const L1_COMPLETE: u32 = 24;
const L2_COMPLETE: u32 = 25;
const L1_PARTIAL: u32 = 26;
const L2_PARTIAL: u32 = 27;

impl Compiler<'_> {
    /// A protocol's keyword alone.
    pub(super) fn protocol(&mut self, protocol: Protocol) -> Result<Condition> {
        match protocol {
            Protocol::Ip => self.link_type(IPV4),
            Protocol::Ip6 => self.link_type(IPV6),
            Protocol::Arp => self.link_type(ARP),
            Protocol::Rarp => self.link_type(RARP),
            Protocol::Atalk => self.link_type(APPLETALK),
            Protocol::Aarp => self.link_type(AARP),
            Protocol::Decnet => self.link_type(DECNET),
            Protocol::Sca => self.link_type(SCA),
            Protocol::Lat => self.link_type(LAT),
            Protocol::Mopdl => self.link_type(MOP_DUMP),
            Protocol::Moprc => self.link_type(MOP_REMOTE),
            Protocol::Iso => self.link_type(SAP_ISO),
            Protocol::Stp => self.link_type(SAP_STP),
            Protocol::Ipx => self.link_type(SAP_IPX),
            Protocol::Netbeui => self.link_type(SAP_NETBEUI),
            Protocol::Tcp => self.ip_protocol(6),
            Protocol::Udp => self.ip_protocol(17),
            Protocol::Sctp => self.ip_protocol(132),
            Protocol::Pim => self.ip_protocol(103),
            Protocol::Ah => self.ip_protocol(51),
            Protocol::Esp => self.ip_protocol(50),
            Protocol::Icmp => self.ipv4_protocol(ICMP),
            Protocol::Igmp => self.ipv4_protocol(IGMP),
            Protocol::Igrp => self.ipv4_protocol(IGRP),
            Protocol::Vrrp | Protocol::Carp => self.ipv4_protocol(VRRP),
            Protocol::Icmp6 => self.ipv6_protocol(ICMPV6),
            Protocol::Clnp => self.osi_protocol(CLNP),
            Protocol::Esis => self.osi_protocol(ESIS),
            Protocol::Isis => self.osi_protocol(ISIS),
            Protocol::IsisL1 => self.isis(&[L1_PARTIAL, L1_COMPLETE, L1_STATE, L1_HELLO, HELLO]),
            Protocol::IsisL2 => self.isis(&[L2_PARTIAL, L2_COMPLETE, L2_STATE, L2_HELLO, HELLO]),
            Protocol::IsisIih => self.isis(&[HELLO, L1_HELLO, L2_HELLO]),
            Protocol::IsisLsp => self.isis(&[L1_STATE, L2_STATE]),
            Protocol::IsisSnp => self.isis(&[L2_PARTIAL, L1_PARTIAL, L1_COMPLETE, L2_COMPLETE]),
            Protocol::IsisCsnp => self.isis(&[L1_COMPLETE, L2_COMPLETE]),
            Protocol::IsisPsnp => self.isis(&[L1_PARTIAL, L2_PARTIAL]),
            Protocol::Link => self.refuse("expected host, proto, broadcast or [ behind this word"),
            Protocol::Radio => self.refuse("radio is for 802.11, which linerate does not read"),
        }
    }

    /// `proto NUMBER` behind a protocol.
    pub(super) fn protocol_within(
        &mut self,
        number: u32,
        outer: Option<Protocol>,
    ) -> Result<Condition> {
        match outer {
            None => self.ip_protocol(number),
            Some(Protocol::Link) => self.link_type(number),
            Some(Protocol::Ip) => self.ipv4_protocol(number),
            Some(Protocol::Ip6) => self.ipv6_protocol(number),
            Some(Protocol::Iso) => self.osi_protocol(number),
            Some(Protocol::Isis) => self.isis(&[number]),
            Some(_) => self.refuse("only ether, ip, ip6, iso and isis say what they carry"),
        }
    }

    /// The number of the protocol of that name within `outer`.
    pub(super) fn protocol_number(&self, name: &str, outer: Option<Protocol>) -> Result<u32> {
        let number = match outer {
            None | Some(Protocol::Ip | Protocol::Ip6) => self.names.protocol(name),
            Some(Protocol::Link) => ether_protocol(name),
            Some(Protocol::Iso) => match name {
                "esis" => Some(ESIS),
                "isis" => Some(ISIS),
                "clnp" => Some(CLNP),
                _ => None,
            },
            Some(_) => None,
        };
        match number {
            Some(number) => Ok(number),
            None => self.refuse(format!("no protocol is named {name} here: use its number")),
        }
    }

    pub(super) fn ip_protocol(&mut self, number: u32) -> Result<Condition> {
        let over_ipv4 = self.ipv4_protocol(number)?;
        Ok(Condition::Or(vec![over_ipv4, self.ipv6_protocol(number)?]))
    }

    fn ipv4_protocol(&mut self, number: u32) -> Result<Condition> {
        let ip = self.link_type(IPV4)?;
        let protocol = self.headers.network_at().plus(9);
        Ok(Condition::And(vec![ip, self.equal(protocol, Size::Byte, number)]))
    }

    /// In the header itself, or behind a fragment header in its place.
    fn ipv6_protocol(&mut self, number: u32) -> Result<Condition> {
        let ip6 = self.link_type(IPV6)?;
        let network = self.headers.network_at();
        let next = self.equal(network.plus(6), Size::Byte, number);
        let fragment = self.equal(network.plus(6), Size::Byte, FRAGMENT);
        let behind_fragment = self.equal(network.plus(40), Size::Byte, number);
        let behind = Condition::And(vec![fragment, behind_fragment]);
        Ok(Condition::And(vec![ip6, Condition::Or(vec![next, behind])]))
    }

    fn osi_protocol(&mut self, number: u32) -> Result<Condition> {
        let iso = self.link_type(SAP_ISO)?;
        let network = self.headers.payload.plus(self.headers.network_without_snap);
        Ok(Condition::And(vec![iso, self.equal(network, Size::Byte, number)]))
    }

    /// IS-IS packets of one of these types, asked for in this order.
    fn isis(&mut self, types: &[u32]) -> Result<Condition> {
        let mut parts = Vec::with_capacity(types.len());
        for number in types {
            let isis = self.osi_protocol(ISIS)?;
            let kind = self.headers.payload.plus(self.headers.network_without_snap).plus(4);
            parts.push(Condition::And(vec![isis, self.equal(kind, Size::Byte, *number)]));
        }
        Ok(Condition::Or(parts))
    }
}

/// Ethernet's types and LLC's services by name.
fn ether_protocol(name: &str) -> Option<u32> {
    Some(match name {
        "aarp" => AARP,
        "arp" => ARP,
        "atalk" => APPLETALK,
        "decnet" => DECNET,
        "ip" => IPV4,
        "ip6" => IPV6,
        "lat" => LAT,
        "loopback" => LOOPBACK,
        "mopdl" => MOP_DUMP,
        "moprc" => MOP_REMOTE,
        "rarp" => RARP,
        "sca" => SCA,
        "iso" => SAP_ISO,
        "stp" => SAP_STP,
        "ipx" => SAP_IPX,
        "netbeui" => SAP_NETBEUI,
        _ => return None,
    })
}
