//! What tells one flow from another: addresses, ports, protocol, outer VLAN.
//!
//! Vocabulary: an *endpoint* is an address with its port; a key is *normalised*
//! when its lower endpoint stands first, so that both directions of a
//! conversation have one key; the *symmetric hash* is the same for both.
//!
//! Limits: ports are 0 for protocols without ports and for fragments after the
//! first, which therefore form flows of their own. Tunnels are not entered.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::chunk;
use crate::parse::{Headers, Network};

/// One direction of a flow. Equal keys, equal flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Source address; IPv4 in the first 4 bytes, the rest zero.
    source: [u8; 16],
    destination: [u8; 16],
    source_port: u16,
    destination_port: u16,
    vlan: Option<u16>,
    protocol: u8,
    version: u8,
}

/// Which way a packet goes relative to the normalised key of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The packet's source is the lower endpoint.
    Forward,
    /// The packet's source is the higher endpoint.
    Reverse,
}

impl FlowKey {
    /// The key of a parsed frame; `None` if it is not IP. `data` is the slice
    /// that `headers` was made from.
    #[inline]
    pub fn from_headers(data: &[u8], headers: &Headers) -> Option<Self> {
        let l3 = usize::from(headers.l3_offset);
        let (source, destination, version) = match headers.network {
            Network::Ipv4 => {
                (widen(chunk::<4>(data, l3 + 12)?), widen(chunk::<4>(data, l3 + 16)?), 4)
            }
            Network::Ipv6 => (*chunk::<16>(data, l3 + 8)?, *chunk::<16>(data, l3 + 24)?, 6),
            Network::None | Network::Arp => return None,
        };
        let (source_port, destination_port) = headers.ports(data).unwrap_or((0, 0));
        Some(Self {
            source,
            destination,
            source_port,
            destination_port,
            vlan: headers.outer_vlan_id(),
            protocol: headers.ip_protocol,
            version,
        })
    }

    /// A key from its parts; `None` if the addresses are of different versions.
    pub fn new(
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
        protocol: u8,
        vlan: Option<u16>,
    ) -> Option<Self> {
        let (from, to, version) = match (source.0, destination.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (widen(&from.octets()), widen(&to.octets()), 4),
            (IpAddr::V6(from), IpAddr::V6(to)) => (from.octets(), to.octets(), 6),
            _ => return None,
        };
        Some(Self {
            source: from,
            destination: to,
            source_port: source.1,
            destination_port: destination.1,
            vlan,
            protocol,
            version,
        })
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        self.address(self.source)
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        self.address(self.destination)
    }

    /// Source port, 0 without ports.
    pub const fn source_port(&self) -> u16 {
        self.source_port
    }

    /// Destination port, 0 without ports.
    pub const fn destination_port(&self) -> u16 {
        self.destination_port
    }

    /// IP protocol after extension headers.
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Outer VLAN id.
    pub const fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// 4 or 6.
    pub const fn ip_version(&self) -> u8 {
        self.version
    }

    /// The key of the opposite direction.
    #[inline]
    pub fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..*self
        }
    }

    /// The key with the lower endpoint first, and which way this one went.
    #[inline]
    pub fn normalised(&self) -> (Self, Direction) {
        let source = (u128::from_be_bytes(self.source), self.source_port);
        let destination = (u128::from_be_bytes(self.destination), self.destination_port);
        if source <= destination {
            (*self, Direction::Forward)
        } else {
            (self.reversed(), Direction::Reverse)
        }
    }

    /// 64-bit hash that is the same for both directions.
    ///
    /// Made for spreading over queues and tables, with every output bit
    /// depending on every input bit; an opponent can construct collisions.
    /// The value is stable across runs and machines of one version.
    #[inline]
    pub fn symmetric_hash(&self) -> u64 {
        let source = endpoint_hash(self.source, self.source_port);
        let destination = endpoint_hash(self.destination, self.destination_port);
        let vlan = self.vlan.map_or(0, |id| u64::from(id) + 1);
        let rest = vlan << 16 | u64::from(self.protocol) << 8 | u64::from(self.version);
        let both = mix(source.wrapping_add(destination), source ^ destination);
        mix(both, rest ^ KEYS[2])
    }

    fn address(&self, bytes: [u8; 16]) -> IpAddr {
        if self.version == 4 {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            Ipv6Addr::from(bytes).into()
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(vlan) = self.vlan {
            write!(formatter, "vlan {vlan} ")?;
        }
        let endpoint = |address: IpAddr, port: u16| std::net::SocketAddr::new(address, port);
        write!(
            formatter,
            "protocol {} {} > {}",
            self.protocol,
            endpoint(self.source(), self.source_port),
            endpoint(self.destination(), self.destination_port)
        )
    }
}

/// An IPv4 address in the space of an IPv6 one.
#[inline(always)]
fn widen(address: &[u8; 4]) -> [u8; 16] {
    (u128::from(u32::from_be_bytes(*address)) << 96).to_be_bytes()
}

/// Odd constants without structure: digits of the fractional part of pi.
const KEYS: [u64; 3] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1];

/// Both halves of the 128-bit product, folded: spreads each bit over all 64.
#[inline(always)]
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ KEYS[0]) * u128::from(right ^ KEYS[1]);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn endpoint_hash(address: [u8; 16], port: u16) -> u64 {
    let address = u128::from_be_bytes(address);
    let high = mix((address >> 64) as u64, u64::from(port));
    mix(high, address as u64 ^ KEYS[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_ip;
    use proptest::prelude::*;

    fn key(source: &str, destination: &str, ports: (u16, u16), vlan: Option<u16>) -> FlowKey {
        let source = (source.parse().unwrap(), ports.0);
        FlowKey::new(source, (destination.parse().unwrap(), ports.1), 17, vlan).unwrap()
    }

    #[test]
    fn mixed_versions_are_no_key() {
        let v4 = ("10.0.0.1".parse().unwrap(), 1);
        assert_eq!(FlowKey::new(v4, ("::1".parse().unwrap(), 2), 6, None), None);
    }

    #[test]
    fn key_of_bytes_equals_key_of_parts() {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0]);
        let parsed = FlowKey::from_headers(&packet, &parse_ip(&packet)).unwrap();
        assert_eq!(parsed, key("10.0.0.1", "10.0.0.2", (1234, 5678), None));
        assert_eq!(parsed.to_string(), "protocol 17 10.0.0.1:1234 > 10.0.0.2:5678");
        assert_eq!(FlowKey::from_headers(&[], &parse_ip(&[])), None);
    }

    #[test]
    fn every_part_changes_the_hash() {
        let base = key("10.0.0.1", "10.0.0.2", (1, 2), None);
        let others = [
            key("10.0.0.3", "10.0.0.2", (1, 2), None),
            key("10.0.0.1", "10.0.0.3", (1, 2), None),
            key("10.0.0.1", "10.0.0.2", (2, 1), None),
            key("10.0.0.1", "10.0.0.2", (1, 2), Some(0)),
            key("10.0.0.1", "10.0.0.2", (1, 2), Some(1)),
            key("a00:1::", "a00:2::", (1, 2), None),
            FlowKey { protocol: 6, ..base },
        ];
        for other in others {
            assert_ne!(other.symmetric_hash(), base.symmetric_hash(), "{other}");
        }
    }

    #[test]
    fn neighbouring_flows_spread_evenly() {
        let mut buckets = [0u32; 64];
        for host in 0..=255u8 {
            for port in 0..64 {
                let flow = key(&format!("10.0.0.{host}"), "10.1.0.1", (port, 80), None);
                buckets[(flow.symmetric_hash() % 64) as usize] += 1;
            }
        }
        // 16384 flows, 256 expected a bucket, standard deviation 16.
        assert!(buckets.iter().all(|&count| (176..=336).contains(&count)), "{buckets:?}");
    }

    proptest! {
        #[test]
        fn both_directions_are_one_flow(
            source: u128, destination: u128, ports: (u16, u16), vlan: Option<u16>, four: bool,
        ) {
            let address = |value: u128| -> IpAddr {
                if four { Ipv4Addr::from(value as u32).into() } else { Ipv6Addr::from(value).into() }
            };
            let one = (address(source), ports.0);
            let other = (address(destination), ports.1);
            let there = FlowKey::new(one, other, 6, vlan).unwrap();
            let back = FlowKey::new(other, one, 6, vlan).unwrap();
            prop_assert_eq!(there.reversed(), back);
            prop_assert_eq!(there.symmetric_hash(), back.symmetric_hash());
            prop_assert_eq!(there.normalised().0, back.normalised().0);
            if one != other {
                prop_assert_ne!(there.normalised().1, back.normalised().1);
            }
        }
    }
}
