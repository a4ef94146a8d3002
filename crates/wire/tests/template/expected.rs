//! Frames written header by header with etherparse, from the fields' pure functions.

use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp, IpEcn, IpNumber,
    Ipv4Header, Ipv6Header, TcpHeader, UdpHeader,
};
use wire::stamp::{self, StampKind};
use wire::tcp::TcpFlags;
use wire::template::{
    Field, FieldValue, IcmpEchoSpec, NetworkSpec, PayloadFill, Place, TcpSpec, TemplateSpec,
    TransportSpec, UdpSpec,
};

/// What templates of these tests are compiled with.
pub const SEED: u64 = 42;

/// Frame `index` of `spec`, written header by header.
pub struct Expected<'a> {
    pub spec: &'a TemplateSpec,
    pub index: u64,
    pub time_ns: u64,
}

impl Expected<'_> {
    fn value<T: FieldValue>(&self, field: &Field<T>, place: Place) -> T {
        field.value(place.key(SEED), self.index)
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        frame.extend(self.value(&self.spec.destination_mac, Place::DestinationMac).0);
        frame.extend(self.value(&self.spec.source_mac, Place::SourceMac).0);
        for (place, tag) in self.spec.vlan_tags.iter().enumerate() {
            let id = self.value(&tag.id, Place::VlanId(place as u8));
            frame.extend(tag.tpid.to_be_bytes());
            let tci = u16::from(tag.priority) << 13 | u16::from(tag.drop_eligible) << 12 | id;
            frame.extend(tci.to_be_bytes());
        }
        let ethertype = match self.spec.network {
            _ if !self.spec.mpls_labels.is_empty() => 0x8847,
            NetworkSpec::None { ethertype } => ethertype,
            NetworkSpec::Ipv4(_) => 0x0800,
            NetworkSpec::Ipv6(_) => 0x86dd,
        };
        frame.extend(u16::to_be_bytes(ethertype));
        for (place, entry) in self.spec.mpls_labels.iter().enumerate() {
            let label = self.value(&entry.label, Place::MplsLabel(place as u8));
            let bottom = u32::from(place + 1 == self.spec.mpls_labels.len());
            let word = label << 12 | u32::from(entry.traffic_class) << 9 | bottom << 8;
            frame.extend((word | u32::from(entry.ttl)).to_be_bytes());
        }
        let size = usize::from(self.value(&self.spec.size, Place::Size));
        let packet = self.packet(size - frame.len());
        frame.extend(packet);
        assert_eq!(frame.len(), size);
        frame
    }

    fn packet(&self, bytes: usize) -> Vec<u8> {
        match &self.spec.network {
            NetworkSpec::None { .. } => self.payload(bytes),
            NetworkSpec::Ipv4(ipv4) => {
                let mut header = Ipv4Header {
                    dscp: IpDscp::try_new(ipv4.tos >> 2).unwrap(),
                    ecn: IpEcn::try_new(ipv4.tos & 3).unwrap(),
                    total_len: bytes as u16,
                    identification: self.value(&ipv4.id, Place::Identification),
                    dont_fragment: ipv4.dont_fragment,
                    time_to_live: ipv4.ttl,
                    protocol: self.protocol(1),
                    source: self.value(&ipv4.source, Place::SourceAddress).octets(),
                    destination: self.value(&ipv4.destination, Place::DestinationAddress).octets(),
                    ..Ipv4Header::default()
                };
                header.header_checksum = header.calc_header_checksum();
                let segment = self.segment_v4(&header, bytes - 20);
                [header.to_bytes().to_vec(), segment].concat()
            }
            NetworkSpec::Ipv6(ipv6) => {
                let label = self.value(&ipv6.flow_label, Place::FlowLabel);
                let header = Ipv6Header {
                    traffic_class: ipv6.traffic_class,
                    flow_label: label.try_into().unwrap(),
                    payload_length: bytes as u16 - 40,
                    next_header: self.protocol(58),
                    hop_limit: ipv6.hop_limit,
                    source: self.value(&ipv6.source, Place::SourceAddress).octets(),
                    destination: self.value(&ipv6.destination, Place::DestinationAddress).octets(),
                };
                let segment = self.segment_v6(&header, bytes - 40);
                [header.to_bytes().to_vec(), segment].concat()
            }
        }
    }

    fn protocol(&self, icmp: u8) -> IpNumber {
        IpNumber(match self.spec.transport {
            TransportSpec::None { protocol } => protocol,
            TransportSpec::Udp(_) => 17,
            TransportSpec::Tcp(_) => 6,
            TransportSpec::IcmpEcho(_) => icmp,
        })
    }

    fn segment_v4(&self, ip: &Ipv4Header, bytes: usize) -> Vec<u8> {
        match &self.spec.transport {
            TransportSpec::None { .. } => self.payload(bytes),
            TransportSpec::Udp(udp) => {
                let (mut header, payload) = (self.udp(udp, bytes), self.payload(bytes - 8));
                if udp.checksum {
                    header.checksum = header.calc_checksum_ipv4(ip, &payload).unwrap();
                }
                [header.to_bytes().to_vec(), payload].concat()
            }
            TransportSpec::Tcp(tcp) => {
                let (mut header, payload) = (self.tcp(tcp), self.payload(bytes - 20));
                header.checksum = header.calc_checksum_ipv4(ip, &payload).unwrap();
                [header.to_bytes().to_vec(), payload].concat()
            }
            TransportSpec::IcmpEcho(echo) => {
                let (kind, payload) =
                    (Icmpv4Type::EchoRequest(self.echo(echo)), self.payload(bytes - 8));
                let header = Icmpv4Header::with_checksum(kind, &payload);
                [header.to_bytes().to_vec(), payload].concat()
            }
        }
    }

    fn segment_v6(&self, ip: &Ipv6Header, bytes: usize) -> Vec<u8> {
        match &self.spec.transport {
            TransportSpec::None { .. } => self.payload(bytes),
            TransportSpec::Udp(udp) => {
                let (mut header, payload) = (self.udp(udp, bytes), self.payload(bytes - 8));
                if udp.checksum {
                    header.checksum = header.calc_checksum_ipv6(ip, &payload).unwrap();
                }
                [header.to_bytes().to_vec(), payload].concat()
            }
            TransportSpec::Tcp(tcp) => {
                let (mut header, payload) = (self.tcp(tcp), self.payload(bytes - 20));
                header.checksum = header.calc_checksum_ipv6(ip, &payload).unwrap();
                [header.to_bytes().to_vec(), payload].concat()
            }
            TransportSpec::IcmpEcho(echo) => {
                let (kind, payload) =
                    (Icmpv6Type::EchoRequest(self.echo(echo)), self.payload(bytes - 8));
                let header =
                    Icmpv6Header::with_checksum(kind, ip.source, ip.destination, &payload).unwrap();
                [header.to_bytes().to_vec(), payload].concat()
            }
        }
    }

    fn udp(&self, udp: &UdpSpec, bytes: usize) -> UdpHeader {
        UdpHeader {
            source_port: self.value(&udp.source_port, Place::SourcePort),
            destination_port: self.value(&udp.destination_port, Place::DestinationPort),
            length: bytes as u16,
            checksum: 0,
        }
    }

    fn tcp(&self, tcp: &TcpSpec) -> TcpHeader {
        let source = self.value(&tcp.source_port, Place::SourcePort);
        let destination = self.value(&tcp.destination_port, Place::DestinationPort);
        let sequence = self.value(&tcp.sequence, Place::TcpSequence);
        let mut header = TcpHeader::new(source, destination, sequence, tcp.window);
        header.acknowledgment_number = tcp.acknowledgment;
        header.syn = tcp.flags.contains(TcpFlags::SYN);
        header.ack = tcp.flags.contains(TcpFlags::ACK);
        header
    }

    fn echo(&self, echo: &IcmpEchoSpec) -> IcmpEchoHeader {
        IcmpEchoHeader {
            id: self.value(&echo.identifier, Place::IcmpIdentifier),
            seq: self.value(&echo.sequence, Place::IcmpSequence),
        }
    }

    fn payload(&self, bytes: usize) -> Vec<u8> {
        let mut payload: Vec<u8> = match &self.spec.payload {
            PayloadFill::Zeros => vec![0; bytes],
            PayloadFill::Pattern(pattern) => pattern.iter().copied().cycle().take(bytes).collect(),
            PayloadFill::Incrementing => (0..=255).cycle().take(bytes).collect(),
        };
        match self.spec.stamp {
            None => {}
            Some(StampKind::Linerate) => {
                let stamp = stamp::linerate_bytes(self.spec.stream, self.index, self.time_ns);
                payload[..18].copy_from_slice(&stamp);
            }
            Some(StampKind::Pktgen) => {
                let stamp = stamp::pktgen_bytes(self.index as u32 + 1, self.time_ns);
                payload[..16].copy_from_slice(&stamp);
            }
        }
        payload
    }
}
