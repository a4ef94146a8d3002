//! Frames made by etherparse's writers, with what is known of them by construction.

use etherparse::{
    EtherType, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpAuthHeader, IpFragOffset,
    IpNumber, Ipv4Header, Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader, TcpHeader, UdpHeader,
};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::parse::Fragment;

/// What a frame consists of, chosen at random.
#[derive(Clone, Debug)]
pub struct Plan {
    pub vlans: Vec<(u16, u16)>,
    pub mpls_labels: usize,
    pub network: NetworkPlan,
    pub transport: TransportPlan,
    pub ports: (u16, u16),
    pub payload: Vec<u8>,
    pub padding_bytes: usize,
}

#[derive(Clone, Debug)]
pub enum NetworkPlan {
    Arp,
    Ipv4 { addresses: ([u8; 4], [u8; 4]), option_words: usize, fragment: (u16, bool) },
    Ipv6 { addresses: ([u8; 16], [u8; 16]), extensions: Vec<(u8, usize)>, fragment: (u16, bool) },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportPlan {
    Udp,
    Tcp { option_words: usize },
    Icmp,
    Sctp,
    Other,
}

/// A frame, and where its parts are by construction.
#[allow(dead_code, reason = "each test that shares this module uses a part of it")]
#[derive(Clone, Debug)]
pub struct Built {
    pub bytes: Vec<u8>,
    pub network_offset: usize,
    pub transport_offset: Option<usize>,
    pub payload_offset: Option<usize>,
    pub network_end: usize,
    pub protocol: Option<u8>,
    pub fragment: Fragment,
}

fn network_plan() -> impl Strategy<Value = NetworkPlan> {
    // Mostly whole packets; offsets count 8 bytes.
    let fragment = || prop_oneof![4 => Just((0, false)), 1 => (0..8191u16, any::<bool>())];
    let extension = (prop_oneof![Just(60u8), Just(43), Just(51)], 0..5usize);
    let extensions = (any::<bool>(), vec(extension, 0..4)).prop_map(|(hop_by_hop, mut rest)| {
        if hop_by_hop {
            rest.insert(0, (0, 1));
        }
        rest
    });
    prop_oneof![
        1 => Just(NetworkPlan::Arp),
        4 => (any::<([u8; 4], [u8; 4])>(), 0..=10usize, fragment()).prop_map(
            |(addresses, option_words, fragment)| NetworkPlan::Ipv4 {
                addresses, option_words, fragment,
            }
        ),
        4 => (any::<([u8; 16], [u8; 16])>(), extensions, fragment()).prop_map(
            |(addresses, extensions, fragment)| NetworkPlan::Ipv6 {
                addresses, extensions, fragment,
            }
        ),
    ]
}

pub fn plan() -> impl Strategy<Value = Plan> {
    let tpid = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)];
    let transport = prop_oneof![
        3 => Just(TransportPlan::Udp),
        3 => (0..=10usize).prop_map(|option_words| TransportPlan::Tcp { option_words }),
        1 => Just(TransportPlan::Icmp),
        1 => Just(TransportPlan::Sctp),
        1 => Just(TransportPlan::Other),
    ];
    let labels = prop_oneof![3 => Just(0usize), 1 => 1..=8usize];
    let vlans = vec((tpid, any::<u16>()), 0..=4);
    let ports = any::<(u16, u16)>();
    (vlans, labels, network_plan(), transport, ports, vec(any::<u8>(), 0..200), 0..40usize)
        .prop_map(|(vlans, mpls_labels, network, transport, ports, payload, padding_bytes)| {
            let mpls_labels = if matches!(network, NetworkPlan::Arp) { 0 } else { mpls_labels };
            Plan { vlans, mpls_labels, network, transport, ports, payload, padding_bytes }
        })
}

impl Plan {
    pub fn build(&self) -> Built {
        let mut bytes = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
        for (tpid, tci) in &self.vlans {
            bytes.extend(tpid.to_be_bytes());
            bytes.extend(tci.to_be_bytes());
        }
        let ethertype = match &self.network {
            NetworkPlan::Arp => EtherType::ARP.0,
            _ if self.mpls_labels > 0 => 0x8847,
            NetworkPlan::Ipv4 { .. } => EtherType::IPV4.0,
            NetworkPlan::Ipv6 { .. } => EtherType::IPV6.0,
        };
        bytes.extend(ethertype.to_be_bytes());
        for label in 1..=self.mpls_labels {
            let bottom = u32::from(label == self.mpls_labels) << 8;
            bytes.extend(((16 + label as u32) << 12 | bottom | 64).to_be_bytes());
        }
        let built = match &self.network {
            NetworkPlan::Arp => arp(bytes),
            NetworkPlan::Ipv4 { .. } => self.ipv4(bytes),
            NetworkPlan::Ipv6 { .. } => self.ipv6(bytes),
        };
        let mut bytes = built.bytes;
        bytes.resize(bytes.len() + self.padding_bytes, 0xee);
        Built { bytes, ..built }
    }

    /// IP protocol number of the transport.
    fn protocol(&self, icmp: u8) -> u8 {
        match self.transport {
            TransportPlan::Udp => 17,
            TransportPlan::Tcp { .. } => 6,
            TransportPlan::Icmp => icmp,
            TransportPlan::Sctp => 132,
            TransportPlan::Other => 253,
        }
    }

    /// Length of the transport header.
    fn transport_bytes(&self) -> usize {
        match self.transport {
            TransportPlan::Udp | TransportPlan::Icmp => 8,
            TransportPlan::Tcp { option_words } => 20 + 4 * option_words,
            TransportPlan::Sctp => 12,
            TransportPlan::Other => 0,
        }
    }

    fn tcp(&self, option_words: usize) -> TcpHeader {
        let mut tcp = TcpHeader::new(self.ports.0, self.ports.1, 0x0102_0304, 512);
        tcp.set_options_raw(&vec![1; 4 * option_words]).unwrap();
        tcp.psh = true;
        tcp
    }

    fn sctp(&self) -> Vec<u8> {
        let ports = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()];
        [&ports.concat()[..], &[0xab; 8]].concat()
    }

    fn ipv4(&self, mut bytes: Vec<u8>) -> Built {
        let NetworkPlan::Ipv4 { addresses: (source, destination), option_words, fragment } =
            &self.network
        else {
            unreachable!()
        };
        let network_offset = bytes.len();
        let protocol = self.protocol(1);
        let later = fragment.0 > 0;
        let length = self.payload.len() + if later { 0 } else { self.transport_bytes() };
        let mut ip =
            Ipv4Header::new(length as u16, 64, IpNumber(protocol), *source, *destination).unwrap();
        ip.options = vec![1; 4 * option_words].as_slice().try_into().unwrap();
        ip.set_payload_len(length).unwrap();
        ip.fragment_offset = IpFragOffset::try_new(fragment.0).unwrap();
        ip.more_fragments = fragment.1;
        ip.header_checksum = ip.calc_header_checksum();
        let transport = match self.transport {
            _ if later => vec![],
            TransportPlan::Udp => {
                let (from, to) = self.ports;
                let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, &self.payload).unwrap();
                udp.to_bytes().to_vec()
            }
            TransportPlan::Tcp { option_words } => {
                let mut tcp = self.tcp(option_words);
                tcp.checksum = tcp.calc_checksum_ipv4(&ip, &self.payload).unwrap();
                tcp.to_bytes().to_vec()
            }
            TransportPlan::Icmp => {
                let icmp_type =
                    Icmpv4Type::Unknown { type_u8: 8, code_u8: 0, bytes5to8: [1, 2, 3, 4] };
                Icmpv4Header::with_checksum(icmp_type, &self.payload).to_bytes().to_vec()
            }
            TransportPlan::Sctp => self.sctp(),
            TransportPlan::Other => vec![],
        };
        bytes.extend(ip.to_bytes());
        let l4 = bytes.len();
        bytes.extend(transport);
        self.finish(bytes, network_offset, l4, protocol, *fragment)
    }

    fn ipv6(&self, mut bytes: Vec<u8>) -> Built {
        let NetworkPlan::Ipv6 { addresses: (source, destination), extensions, fragment } =
            &self.network
        else {
            unreachable!()
        };
        let network_offset = bytes.len();
        let protocol = self.protocol(58);
        let later = fragment.0 > 0;
        let (first, chain) = chain(extensions, *fragment, protocol);
        let length =
            chain.len() + self.payload.len() + if later { 0 } else { self.transport_bytes() };
        let ip = Ipv6Header {
            payload_length: length as u16,
            next_header: IpNumber(first),
            hop_limit: 64,
            source: *source,
            destination: *destination,
            ..Default::default()
        };
        let transport = match self.transport {
            _ if later => vec![],
            TransportPlan::Udp => {
                let (from, to) = self.ports;
                let udp = UdpHeader::with_ipv6_checksum(from, to, &ip, &self.payload).unwrap();
                udp.to_bytes().to_vec()
            }
            TransportPlan::Tcp { option_words } => {
                let mut tcp = self.tcp(option_words);
                tcp.checksum = tcp.calc_checksum_ipv6(&ip, &self.payload).unwrap();
                tcp.to_bytes().to_vec()
            }
            TransportPlan::Icmp => {
                let icmp_type =
                    Icmpv6Type::Unknown { type_u8: 128, code_u8: 0, bytes5to8: [1, 2, 3, 4] };
                let icmp =
                    Icmpv6Header::with_checksum(icmp_type, *source, *destination, &self.payload);
                icmp.unwrap().to_bytes().to_vec()
            }
            TransportPlan::Sctp => self.sctp(),
            TransportPlan::Other => vec![],
        };
        bytes.extend(ip.to_bytes());
        bytes.extend(chain);
        let l4 = bytes.len();
        bytes.extend(transport);
        self.finish(bytes, network_offset, l4, protocol, *fragment)
    }

    fn finish(
        &self,
        mut bytes: Vec<u8>,
        network_offset: usize,
        l4: usize,
        protocol: u8,
        fragment: (u16, bool),
    ) -> Built {
        let has_header = fragment.0 == 0 && self.transport != TransportPlan::Other;
        bytes.extend(&self.payload);
        Built {
            network_end: bytes.len(),
            bytes,
            network_offset,
            transport_offset: has_header.then_some(l4),
            payload_offset: has_header.then_some(l4 + self.transport_bytes()),
            protocol: Some(protocol),
            fragment: match fragment {
                (0, false) => Fragment::None,
                (0, true) => Fragment::First,
                _ => Fragment::Later,
            },
        }
    }
}

/// Extension headers before `protocol`, the fragment header last; the number of
/// the first and all their bytes.
fn chain(extensions: &[(u8, usize)], fragment: (u16, bool), protocol: u8) -> (u8, Vec<u8>) {
    let mut headers: Vec<(u8, usize)> = extensions.to_vec();
    if fragment != (0, false) {
        headers.push((44, 0));
    }
    let mut bytes = Vec::new();
    for (at, &(number, length)) in headers.iter().enumerate() {
        let next_header = IpNumber(headers.get(at + 1).map_or(protocol, |next| next.0));
        match number {
            44 => {
                let offset = IpFragOffset::try_new(fragment.0).unwrap();
                let header = Ipv6FragmentHeader::new(next_header, offset, fragment.1, 99);
                bytes.extend(header.to_bytes());
            }
            51 => {
                let header = IpAuthHeader::new(next_header, 1, 2, &vec![7; 4 * length]).unwrap();
                bytes.extend(header.to_bytes());
            }
            _ => {
                // All zero: a routing header with no segments left, Pad1 options.
                let header = Ipv6RawExtHeader::new_raw(next_header, &vec![0; 6 + 8 * length]);
                bytes.extend(header.unwrap().to_bytes());
            }
        }
    }
    (headers.first().map_or(protocol, |first| first.0), bytes)
}

fn arp(mut bytes: Vec<u8>) -> Built {
    let network_offset = bytes.len();
    bytes.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    bytes.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    Built {
        network_offset,
        transport_offset: None,
        payload_offset: None,
        network_end: bytes.len(),
        bytes,
        protocol: None,
        fragment: Fragment::None,
    }
}
