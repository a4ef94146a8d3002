//! Hosts, networks and whatever else an identifier names.

use std::net::{IpAddr, Ipv6Addr};

use super::Compiler;
use super::link_type::{ARP, DECNET, IPV4, IPV6, RARP};
use crate::condition::{Condition, Size};
use crate::error::Result;
use crate::link::{Layer, Place};
use crate::names::number_in_front;
use crate::syntax::{Direction, Id, Kind, Protocol, Qualifiers};

impl Compiler<'_> {
    /// An identifier behind its qualifiers.
    pub(super) fn id(&mut self, qualifiers: Qualifiers, id: &Id) -> Result<Condition> {
        match id {
            Id::Name(name) => self.named(qualifiers, name),
            Id::Number(number) => self.numbered(qualifiers, *number),
            Id::Ipv4 { text, mask: None, length: None } => self.dotted(qualifiers, text),
            Id::Ipv4 { text, mask, length } => {
                self.network(qualifiers, text, mask.as_deref(), *length)
            }
            Id::Ipv6 { address, length } => self.ipv6(qualifiers, *address, *length),
            Id::Mac(mac) => match qualifiers {
                Qualifiers {
                    protocol: Some(Protocol::Link),
                    kind: None | Some(Kind::Host),
                    direction,
                } => self.ether_host(*mac, direction),
                _ => self.refuse("a MAC address stands behind ether host, ether src or ether dst"),
            },
            Id::Arcnet => self.refuse("this is a node of ARCnet, which linerate does not read"),
        }
    }

    fn named(&mut self, qualifiers: Qualifiers, name: &str) -> Result<Condition> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        match kind {
            None | Some(Kind::Host) => self.host_named(qualifiers, name),
            Some(Kind::Net) => match self.names.network(name) {
                Some(network) if network != 0 => {
                    let (address, mask) = shifted_up(network);
                    self.host(address, mask, protocol, direction)
                }
                _ => self.refuse(format!("no network is named {name}: use its address")),
            },
            Some(Kind::Port) => {
                let asked = self.transport(protocol)?;
                let port = self.port_named(name)?;
                let transport = self.common_transport(asked, port.transport)?;
                self.ports(&(port.port..=port.port), transport, direction)
            }
            Some(Kind::PortRange) => {
                let asked = self.transport(protocol)?;
                let (ports, named) = self.port_range(name)?;
                let transport = self.common_transport(asked, named)?;
                self.ports(&ports, transport, direction)
            }
            Some(Kind::Proto) => {
                let number = self.protocol_number(name, protocol)?;
                self.protocol_within(number, protocol)
            }
            Some(Kind::Gateway) => self.gateway(),
            Some(Kind::ProtoChain) => self.protochain(),
        }
    }

    fn numbered(&mut self, qualifiers: Qualifiers, number: u32) -> Result<Condition> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        match kind {
            None | Some(Kind::Host | Kind::Net) if protocol == Some(Protocol::Link) => {
                self.refuse("a link has MAC addresses, such as 02:00:00:00:00:01")
            }
            None | Some(Kind::Host) => self.host(number, u32::MAX, protocol, direction),
            Some(Kind::Net) => {
                let (address, mask) = match protocol {
                    Some(Protocol::Decnet) => (number, u32::MAX),
                    _ => shifted_up(number),
                };
                self.host(address, mask, protocol, direction)
            }
            Some(Kind::Port | Kind::PortRange) => {
                let transport = self.transport(protocol)?;
                let port = self.port_number(number)?;
                self.ports(&(port..=port), transport, direction)
            }
            Some(Kind::Proto) => self.protocol_within(number, protocol),
            Some(Kind::Gateway) => self.gateway(),
            Some(Kind::ProtoChain) => self.protochain(),
        }
    }

    fn gateway(&self) -> Result<Condition> {
        self.refuse(
            "gateway is not supported: use ether host with the gateway's MAC address, and not \
             host with its address",
        )
    }

    fn protochain(&self) -> Result<Condition> {
        self.refuse("protochain is not supported: it needs a loop, which no kernel filter has")
    }

    /// An IPv4 address, or the front of one.
    fn dotted(&mut self, qualifiers: Qualifiers, text: &str) -> Result<Condition> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        if !matches!(kind, None | Some(Kind::Host | Kind::Net)) {
            return self.refuse("an address stands behind host, net, src or dst");
        }
        match protocol {
            Some(Protocol::Decnet) => {
                let numbers = number_in_front(text).and_then(|(area, rest)| {
                    let (node, _) = number_in_front(rest.strip_prefix('.')?)?;
                    Some((area, node))
                });
                let Some((area, node)) = numbers else {
                    return self.refuse("an address of DECnet is AREA.NODE, such as 10.15");
                };
                let address = (area as u32) << 10 & 0xfc00 | node as u32 & 0x3ff;
                self.host(address, u32::MAX, protocol, direction)
            }
            Some(Protocol::Link) => {
                self.refuse("a link has MAC addresses, such as 02:00:00:00:00:01")
            }
            _ => {
                let (address, bits) = self.ipv4_front(text)?;
                self.host(address, u32::MAX << (32 - bits), protocol, direction)
            }
        }
    }

    /// An IPv4 network with a mask or the length of one.
    fn network(
        &mut self,
        qualifiers: Qualifiers,
        text: &str,
        mask: Option<&str>,
        length: Option<u32>,
    ) -> Result<Condition> {
        let (address, _) = self.ipv4_front(text)?;
        let mask = match (mask, length) {
            (Some(mask), _) => self.ipv4_front(mask)?.0,
            (None, Some(length @ 33..)) => {
                return self.refuse(format!("/{length}: an IPv4 prefix has up to 32 bits"));
            }
            (None, length) => u32::MAX.checked_shl(32 - length.unwrap_or(32)).unwrap_or(0),
        };
        if address & !mask != 0 {
            return self.refuse(format!("{text} has bits set that the mask does not cover"));
        }
        if qualifiers.kind != Some(Kind::Net) {
            return self.refuse("a mask or prefix length stands behind net only");
        }
        self.host(address, mask, qualifiers.protocol, qualifiers.direction)
    }

    /// The address that begins with these numbers, and how many bits they are.
    fn ipv4_front(&self, text: &str) -> Result<(u32, u32)> {
        let (mut address, mut bits) = (0, 0);
        for part in text.split('.') {
            // Decimal, whatever it begins with.
            let digits = part.trim_start_matches('0');
            let number = if digits.is_empty() { Ok(0) } else { digits.parse::<u8>() };
            let Ok(number) = number else {
                return self.refuse(format!("{text} is no IPv4 address: numbers are 0 to 255"));
            };
            address = address << 8 | u32::from(number);
            bits += 8;
        }
        Ok((address << (32 - bits), bits))
    }

    fn ipv6(
        &mut self,
        qualifiers: Qualifiers,
        address: Ipv6Addr,
        length: Option<u32>,
    ) -> Result<Condition> {
        let length = length.unwrap_or(128);
        if length > 128 {
            return self.refuse(format!("/{length}: an IPv6 prefix has up to 128 bits"));
        }
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        if address.to_bits() & !mask != 0 {
            return self.refuse(format!("{address} has bits set that /{length} does not cover"));
        }
        match qualifiers.kind {
            Some(Kind::Net) => {}
            None | Some(Kind::Host) if length == 128 => {}
            None | Some(Kind::Host) => {
                return self.refuse("a prefix length stands behind net only");
            }
            Some(_) => return self.refuse("an address stands behind host, net, src or dst"),
        }
        self.host6(address, mask, qualifiers.protocol, qualifiers.direction)
    }

    fn host_named(&mut self, qualifiers: Qualifiers, name: &str) -> Result<Condition> {
        let Qualifiers { protocol, direction, .. } = qualifiers;
        match protocol {
            Some(Protocol::Link) => match self.names.ether_host(name) {
                Some(mac) => self.ether_host(mac, direction),
                None => self.refuse(format!("no host is named {name} in /etc/ethers")),
            },
            Some(Protocol::Decnet) => self.refuse("a node of DECnet is given by its address"),
            _ => {
                let addresses = self.names.host(name);
                let mut parts = Vec::new();
                for address in addresses {
                    match (address, self.protocol_of_host(protocol, address)) {
                        (_, None) => {}
                        (IpAddr::V4(address), Some(protocol)) => {
                            let bits = address.to_bits();
                            parts.push(self.host(bits, u32::MAX, protocol, direction)?);
                        }
                        (IpAddr::V6(address), Some(protocol)) => {
                            parts.push(self.host6(address, u128::MAX, protocol, direction)?);
                        }
                    }
                }
                if parts.is_empty() {
                    return self.refuse(format!("no host of this kind is named {name}"));
                }
                Ok(Condition::Or(parts))
            }
        }
    }

    /// As what a host's address is asked for; `None` if it is not meant. Without a link header there
    /// is no ARP.
    fn protocol_of_host(
        &self,
        protocol: Option<Protocol>,
        address: IpAddr,
    ) -> Option<Option<Protocol>> {
        let only_ip = self.headers.layer == Layer::Raw && protocol.is_none();
        match (address, protocol) {
            (IpAddr::V4(_), Some(Protocol::Ip6)) | (IpAddr::V6(_), Some(Protocol::Ip)) => None,
            (IpAddr::V4(_), _) if only_ip => Some(Some(Protocol::Ip)),
            (IpAddr::V6(_), _) if only_ip => Some(Some(Protocol::Ip6)),
            (_, protocol) => Some(protocol),
        }
    }

    /// An IPv4 address or network: in IP, ARP and RARP unless one of them is named.
    fn host(
        &mut self,
        address: u32,
        mask: u32,
        protocol: Option<Protocol>,
        direction: Option<Direction>,
    ) -> Result<Condition> {
        let network = self.headers.network_at();
        let one_of = |compiler: &mut Self, number, source, destination| {
            let places = [network.plus(source), network.plus(destination)];
            compiler.in_direction(direction, &mut |compiler, which| {
                let carried = compiler.link_type(number)?;
                let there = compiler.masked(places[which], Size::Word, mask, address);
                Ok(Condition::And(vec![carried, there]))
            })
        };
        match protocol {
            Some(Protocol::Ip) => one_of(self, IPV4, 12, 16),
            Some(Protocol::Arp) => one_of(self, ARP, 14, 24),
            Some(Protocol::Rarp) => one_of(self, RARP, 14, 24),
            Some(Protocol::Decnet) => self.decnet_host(address, direction),
            Some(_) => self.refuse("an IPv4 address stands behind ip, arp or rarp, or none"),
            None => {
                let mut parts = vec![one_of(self, IPV4, 12, 16)?];
                if self.headers.labels == 0 {
                    parts.push(one_of(self, ARP, 14, 24)?);
                    parts.push(one_of(self, RARP, 14, 24)?);
                }
                Ok(Condition::Or(parts))
            }
        }
    }

    fn host6(
        &mut self,
        address: Ipv6Addr,
        mask: u128,
        protocol: Option<Protocol>,
        direction: Option<Direction>,
    ) -> Result<Condition> {
        if !matches!(protocol, None | Some(Protocol::Ip6)) {
            return self.refuse("an IPv6 address stands behind ip6, or none");
        }
        let network = self.headers.network_at();
        let places = [network.plus(8), network.plus(24)];
        self.in_direction(direction, &mut |compiler, which| {
            let mut parts = vec![compiler.link_type(IPV6)?];
            for word in 0..4u32 {
                let part = |bits: u128| (bits >> (96 - 32 * word)) as u32;
                let place = places[which].plus(4 * word);
                let (mask, bits) = (part(mask), part(address.to_bits()));
                parts.push(compiler.masked(place, Size::Word, mask, bits));
            }
            Ok(Condition::And(parts))
        })
    }

    fn ether_host(&mut self, mac: [u8; 6], direction: Option<Direction>) -> Result<Condition> {
        if self.headers.layer != Layer::Ethernet {
            let message = format!("{} has no MAC addresses", self.headers.layer.name());
            return self.refuse(message);
        }
        let there = self.link_header_there();
        Ok(Condition::And(vec![there, self.mac(mac, direction)?]))
    }

    /// A MAC address of an Ethernet header.
    pub(super) fn mac(&mut self, mac: [u8; 6], direction: Option<Direction>) -> Result<Condition> {
        let places = [self.headers.link.plus(6), self.headers.link];
        self.in_direction(direction, &mut |compiler, which| Ok(compiler.bytes(places[which], &mac)))
    }

    /// `part` for the source (0) and the destination (1), as `direction` asks.
    fn in_direction(
        &mut self,
        direction: Option<Direction>,
        part: &mut dyn FnMut(&mut Self, usize) -> Result<Condition>,
    ) -> Result<Condition> {
        Ok(match direction {
            Some(Direction::Source) => part(self, 0)?,
            Some(Direction::Destination) => part(self, 1)?,
            Some(Direction::Both) => Condition::And(vec![part(self, 0)?, part(self, 1)?]),
            None | Some(Direction::Either) => Condition::Or(vec![part(self, 0)?, part(self, 1)?]),
            Some(Direction::Wireless) => {
                return self.refuse("only 802.11 has these addresses: use src or dst");
            }
        })
    }

    /// An address of DECnet, low byte first, in long and short headers, with and without a byte of
    /// padding in front (DECnet routing layer, phase IV, section 9).
    fn decnet_host(&mut self, address: u32, direction: Option<Direction>) -> Result<Condition> {
        let address = u32::from((address as u16).swap_bytes());
        let header = self.headers.network_at().plus(2);
        self.in_direction(direction, &mut |compiler, which| {
            let (short, long) = [(3, 15), (1, 7)][which];
            let decnet = compiler.link_type(DECNET)?;
            let mut with = |flags: Place, size, mask, bits, at: Place| {
                let flags = compiler.masked(flags, size, mask, bits);
                Condition::And(vec![flags, compiler.equal(at, Size::Half, address)])
            };
            let short_plain = with(header, Size::Byte, 0x07, 0x02, header.plus(short));
            let short_padded = with(header, Size::Half, 0xff07, 0x8102, header.plus(1 + short));
            let long_plain = with(header, Size::Byte, 0x07, 0x06, header.plus(long));
            let long_padded = with(header, Size::Half, 0xff07, 0x8106, header.plus(1 + long));
            let forms = vec![short_plain, short_padded, long_plain, long_padded];
            Ok(Condition::And(vec![decnet, Condition::Or(forms)]))
        })
    }
}

/// A network number of which the last bytes were left out, and its mask.
fn shifted_up(mut number: u32) -> (u32, u32) {
    let mut mask = u32::MAX;
    while number != 0 && number & 0xff00_0000 == 0 {
        number <<= 8;
        mask <<= 8;
    }
    (number, mask)
}
