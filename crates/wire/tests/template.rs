//! Frames of templates, byte for byte those that etherparse makes of the same fields.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "template/expected.rs"]
mod expected;

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::SlicedPacket;
use wire::MacAddress;
use wire::checksum::{ChecksumState, verify};
use wire::parse::parse_ethernet;
use wire::stamp::{self, StampKind};
use wire::tcp::TcpFlags;
use wire::template::{
    Field, FieldValue, IcmpEchoSpec, Ipv4Spec, Ipv6Spec, MplsSpec, NetworkSpec, PayloadFill,
    TcpSpec, Template, TemplateError, TemplateSpec, TransportSpec, UdpSpec, VlanSpec,
};

use expected::{Expected, SEED};

const TIME_NS: u64 = 1_700_000_000_123_456_789;

/// Fills batches of these sizes and cuts out the frames.
fn frames(template: &mut Template, slot_bytes: usize, batches: &[usize]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (batch, &count) in batches.iter().enumerate() {
        // What a slot held before must not matter.
        let mut slab = vec![0xa5; slot_bytes * count];
        let mut lengths = vec![0; count];
        template.fill(&mut slab, slot_bytes, &mut lengths, TIME_NS + batch as u64);
        for (slot, &length) in slab.chunks(slot_bytes).zip(&lengths) {
            all.push(slot[..length as usize].to_vec());
        }
    }
    all
}

/// Checks every frame of three batches against etherparse and our own parser.
fn check(spec: &TemplateSpec) {
    let mut template = spec.compile(SEED).unwrap_or_else(|error| panic!("{error}: {spec:?}"));
    let (least, most) = (template.frame_bytes_min(), template.frame_bytes_max());
    let slot_bytes = [most, most.next_multiple_of(64), most + 13][most % 3];
    let batches = [64, 37, 64];
    let made = frames(&mut template, slot_bytes, &batches);
    let batch_of = |index: usize| usize::from(index >= 64) + usize::from(index >= 101);
    assert_eq!(template.next_index(), made.len() as u64);
    for (index, frame) in made.iter().enumerate() {
        let time_ns = TIME_NS + batch_of(index) as u64;
        let expected = Expected { spec, index: index as u64, time_ns }.frame();
        assert_eq!(frame, &expected, "frame {index} of {spec:?}");
        assert!((least..=most).contains(&frame.len()));
        check_parsed(spec, frame);
    }
}

fn check_parsed(spec: &TemplateSpec, frame: &[u8]) {
    if spec.mpls_labels.is_empty() && spec.vlan_tags.len() <= SlicedPacket::LINK_EXTS_CAP {
        let parsed = SlicedPacket::from_ethernet(frame).unwrap();
        let has_network = !matches!(spec.network, NetworkSpec::None { .. });
        assert_eq!(parsed.net.is_some(), has_network);
        let has_transport = !matches!(spec.transport, TransportSpec::None { .. });
        assert_eq!(parsed.transport.is_some(), has_transport);
    }
    let headers = parse_ethernet(frame);
    let expected = match &spec.transport {
        TransportSpec::None { .. } => ChecksumState::Absent,
        TransportSpec::Udp(udp) if !udp.checksum => match spec.network {
            NetworkSpec::Ipv6(_) => ChecksumState::Invalid,
            _ => ChecksumState::Absent,
        },
        _ => ChecksumState::Valid,
    };
    assert_eq!(verify(frame, &headers), expected, "{spec:?}");
    if !matches!(spec.transport, TransportSpec::None { .. }) {
        let stamp = headers.payload_offset().and_then(|at| stamp::read(&frame[at..]));
        assert_eq!(stamp.map(|stamp| stamp.kind), spec.stamp);
    }
}

/// What all fields of a specification are made to be.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Fixed,
    /// Ranges that end within a batch.
    ShortStep,
    LongStep,
    Random,
}

const KINDS: [Kind; 4] = [Kind::Fixed, Kind::ShortStep, Kind::LongStep, Kind::Random];

impl Kind {
    fn field<T: FieldValue>(self, first: u128, last: u128, step: u64) -> Field<T> {
        let last_short = T::from_number(first + u128::from(step) * 20);
        let (first, last) = (T::from_number(first), T::from_number(last));
        match self {
            Self::Fixed => Field::Fixed(first),
            Self::ShortStep => Field::Step { first, last: last_short, step },
            Self::LongStep => Field::Step { first, last, step },
            Self::Random => Field::Random { first, last },
        }
    }

    fn networks(self) -> Vec<NetworkSpec> {
        let v6 = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
        let ipv4 = Ipv4Spec {
            source: self.field(0x0a00_0001, 0x0aff_fffe, 1),
            destination: self.field(0xc612_0001, 0xffff_ffff, 257),
            ttl: 3,
            tos: 0xb9,
            id: self.field(65_000, 65_535, 11),
            dont_fragment: true,
        };
        let ipv6 = Ipv6Spec {
            source: self.field(v6("2001:2::1"), v6("2001:2::ffff:ffff"), 3),
            destination: self.field(v6("fd00::fff0"), v6("fdff::"), 1 << 62),
            hop_limit: 9,
            traffic_class: 0xa5,
            flow_label: self.field(7, 0xf_ffff, 1),
        };
        vec![NetworkSpec::Ipv4(ipv4), NetworkSpec::Ipv6(ipv6)]
    }

    fn transports(self) -> Vec<TransportSpec> {
        let source_port = self.field(1024, 65_535, 1);
        let destination_port = self.field(9, 999, 13);
        let tcp = TcpSpec {
            source_port,
            destination_port,
            sequence: self.field(0xffff_0000, 0xffff_ffff, 1448),
            acknowledgment: 0x1234_5678,
            flags: TcpFlags::SYN | TcpFlags::ACK,
            window: 8192,
        };
        let echo =
            IcmpEchoSpec { identifier: self.field(1, 9000, 1), sequence: self.field(0, 65_535, 1) };
        vec![
            TransportSpec::Udp(UdpSpec { source_port, destination_port, checksum: true }),
            TransportSpec::Udp(UdpSpec { source_port, destination_port, checksum: false }),
            TransportSpec::Tcp(tcp),
            TransportSpec::IcmpEcho(echo),
            TransportSpec::none(),
        ]
    }
}

/// Sets the sizes in turn: exactly what is needed, others, and varied ones.
fn with_sizes(mut spec: TemplateSpec, check: impl Fn(&TemplateSpec)) {
    let least = spec.frame_bytes_least() as u16;
    let sizes = [
        Field::Fixed(least),
        Field::Fixed(least + 1),
        Field::Fixed(1514),
        Field::Step { first: least, last: least + 30, step: 7 },
        Field::Step { first: least + 1, last: 1514, step: 1 },
        Field::Random { first: least, last: 1514 },
    ];
    for size in sizes {
        spec.size = size;
        check(&spec);
    }
}

const STAMPS: [Option<StampKind>; 3] = [None, Some(StampKind::Linerate), Some(StampKind::Pktgen)];

#[test]
fn every_header_field_kind_size_and_stamp() {
    for kind in KINDS {
        for network in kind.networks() {
            for transport in kind.transports() {
                for stamp in STAMPS {
                    let (network, transport) = (network.clone(), transport.clone());
                    let payload = PayloadFill::Pattern(vec![0xff, 1, 0x80]);
                    let spec = TemplateSpec {
                        source_mac: kind.field(0x0200_0000_0001, 0x02ff_ffff_ffff, 1),
                        destination_mac: kind.field(0x0600_0000_00f0, 0x0600_0000_ffff, 5),
                        network,
                        transport,
                        payload,
                        stamp,
                        stream: 0xfedc,
                        ..TemplateSpec::default()
                    };
                    with_sizes(spec, check);
                }
            }
        }
    }
}

#[test]
fn tags_and_labels_before_ip() {
    for kind in KINDS {
        let tag = |tpid, priority| VlanSpec {
            tpid,
            id: kind.field(4000, 4095, 1),
            priority,
            drop_eligible: priority > 3,
        };
        let label = |ttl| MplsSpec { label: kind.field(16, 0xf_ffff, 1), traffic_class: 5, ttl };
        for network in kind.networks() {
            for (tags, labels) in [(1, 0), (4, 0), (0, 1), (2, 8)] {
                let tags = [tag(0x88a8, 7), tag(0x8100, 0), tag(0x9100, 3), tag(0x8100, 4)]
                    .into_iter()
                    .take(tags);
                let spec = TemplateSpec {
                    vlan_tags: tags.collect(),
                    mpls_labels: (0..labels).map(label).collect(),
                    network: network.clone(),
                    payload: PayloadFill::Incrementing,
                    ..TemplateSpec::default()
                };
                with_sizes(spec, check);
            }
        }
    }
}

#[test]
fn frames_without_ip() {
    for stamp in STAMPS {
        let spec = TemplateSpec {
            network: NetworkSpec::none(),
            transport: TransportSpec::none(),
            payload: PayloadFill::Incrementing,
            stamp,
            ..TemplateSpec::default()
        };
        with_sizes(spec, check);
    }
}

#[test]
fn defaults_are_as_documented() {
    let spec = TemplateSpec::default();
    check(&spec);
    let mut template = spec.compile(0).unwrap();
    let frame = frames(&mut template, 64, &[1]).remove(0);
    assert_eq!(frame.len(), 60);
    assert_eq!(frame[..6], MacAddress([2, 0, 0, 0, 0, 2]).0);
    assert_eq!(spec.frame_bytes_least(), 60);
}

#[test]
fn largest_frames() {
    let spec = TemplateSpec { size: Field::Fixed(u16::MAX), ..TemplateSpec::default() };
    check(&spec);
    check(&TemplateSpec { size: Field::Random { first: 60, last: u16::MAX }, ..spec });
}

/// A UDP checksum that comes out as zero is sent as 0xffff (RFC 768); others are not.
#[test]
fn zero_checksums() {
    let udp = UdpSpec { source_port: Field::stepping(0, u16::MAX), ..UdpSpec::default() };
    let echo = IcmpEchoSpec { identifier: Field::stepping(0, u16::MAX), ..IcmpEchoSpec::default() };
    for (transport, at, zero) in
        [(TransportSpec::Udp(udp), 40, 0xffff), (TransportSpec::IcmpEcho(echo), 36, 0)]
    {
        let spec = TemplateSpec { transport, stamp: None, ..TemplateSpec::default() };
        let mut template = spec.compile(SEED).unwrap();
        let made = frames(&mut template, 64, &[64; 1024]);
        let checksum = |frame: &[u8]| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let zeros = made.iter().filter(|frame| checksum(frame) == zero).count();
        let others = made.iter().filter(|frame| checksum(frame) == !zero).count();
        assert!(zeros > 0, "{spec:?}");
        assert_eq!(others, 0, "{spec:?}");
        for frame in &made {
            assert_eq!(verify(frame, &parse_ethernet(frame)), ChecksumState::Valid);
        }
    }
}

fn all_random() -> TemplateSpec {
    TemplateSpec {
        source_mac: "random:02:00:00:00:00:01-02:00:00:00:ff:ff".parse().unwrap(),
        network: Kind::Random.networks().remove(0),
        transport: Kind::LongStep.transports().remove(0),
        size: "60-333/7".parse().unwrap(),
        ..TemplateSpec::default()
    }
}

#[test]
fn seeds_decide_and_nothing_else() {
    let spec = all_random();
    let of_seed = |seed| frames(&mut spec.compile(seed).unwrap(), 512, &[64, 64]);
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
    // The same frames in batches of other sizes, but for the time of the batch.
    let spec = TemplateSpec { stamp: None, ..spec };
    let batched = |batches: &[usize]| frames(&mut spec.compile(1).unwrap(), 512, batches);
    assert_eq!(batched(&[64, 64, 1]), batched(&[1, 3, 60, 2, 63]));
    assert_eq!(batched(&[129]), batched(&[64, 64, 1]));
}

#[test]
fn workers_share_the_whole() {
    let mut specs = vec![all_random(), TemplateSpec { stamp: None, ..all_random() }];
    specs.push(TemplateSpec {
        network: Kind::ShortStep.networks().remove(1),
        size: "80-90".parse().unwrap(),
        ..all_random()
    });
    for mut spec in specs {
        spec.stream = 3;
        for workers in [1, 2, 3, 64] {
            let base = spec.compile(SEED).unwrap();
            let made: Vec<Vec<Vec<u8>>> = (0..workers)
                .map(|worker| {
                    let mut template = base.clone();
                    template.seek(1000 + worker, workers);
                    frames(&mut template, 512, &[50, 64, 20])
                })
                .collect();
            for (number, index) in (1000..1000 + workers * 134).enumerate() {
                let (worker, turn) = (number % workers as usize, number / workers as usize);
                let batch = usize::from(turn >= 50) + usize::from(turn >= 114);
                let time_ns = TIME_NS + batch as u64;
                let expected = Expected { spec: &spec, index, time_ns }.frame();
                assert_eq!(made[worker][turn], expected, "frame {index} by {worker} of {workers}");
            }
        }
    }
}

#[test]
fn far_indices() {
    let mut spec = all_random();
    for network in Kind::LongStep.networks() {
        spec.network = network;
        spec.size = Field::Fixed(100);
        let mut template = spec.compile(SEED).unwrap();
        for index in [1 << 32, (1 << 48) - 20, u64::MAX - 200] {
            template.seek(index, 1);
            for (index, frame) in (index..).zip(frames(&mut template, 128, &[64])) {
                let expected = Expected { spec: &spec, index, time_ns: TIME_NS }.frame();
                assert_eq!(frame, expected, "{index}");
            }
        }
    }
}

#[test]
fn pktgen_stamp_layout() {
    let spec = TemplateSpec { stamp: Some(StampKind::Pktgen), ..TemplateSpec::default() };
    let made = frames(&mut spec.compile(0).unwrap(), 64, &[2]);
    let header =
        [0xbe, 0x9b, 0xe9, 0x55, 0, 0, 0, 1, 0x65, 0x53, 0xf1, 0x00, 0x00, 0x01, 0xe2, 0x40];
    assert_eq!(made[0][42..58], header);
    assert_eq!(made[1][46..50], [0, 0, 0, 2]);
    assert_eq!(made[1][58..], [0, 0]);
}

#[test]
fn impossible_descriptions_say_why() {
    let error = |spec: TemplateSpec| spec.compile(0).unwrap_err().to_string();
    let base = TemplateSpec::default;
    let small = error(TemplateSpec { size: Field::Fixed(59), ..base() });
    assert!(small.contains("at least 60"), "{small}");
    let tcp = TransportSpec::Tcp(TcpSpec::default());
    let small = error(TemplateSpec { transport: tcp.clone(), ..base() });
    assert!(small.contains("headers (54) and stamp (18) need 72"), "{small}");
    let small = error(TemplateSpec { size: Field::stepping(10, 90), stamp: None, ..base() });
    assert!(small.contains("at least 42"), "{small}");
    let ipv6 = Ipv6Spec { flow_label: Field::Fixed(1 << 20), ..Ipv6Spec::default() };
    let flow = error(TemplateSpec { network: NetworkSpec::Ipv6(ipv6), ..base() });
    assert!(flow.contains("IPv6 flow label 1048576 is out of range"), "{flow}");
    let vlan = VlanSpec { id: Field::stepping(0, 4096), ..VlanSpec::default() };
    let vlan = error(TemplateSpec { vlan_tags: vec![vlan], ..base() });
    assert!(vlan.contains("from 0 to 4095"), "{vlan}");
    let vlan = VlanSpec { priority: 8, ..VlanSpec::default() };
    let vlan = error(TemplateSpec { vlan_tags: vec![vlan], ..base() });
    assert!(vlan.contains("VLAN priority 8"), "{vlan}");
    let many = error(TemplateSpec { vlan_tags: vec![VlanSpec::default(); 5], ..base() });
    assert!(many.contains("at most 4"), "{many}");
    let many = error(TemplateSpec { mpls_labels: vec![MplsSpec::default(); 9], ..base() });
    assert!(many.contains("at most 8"), "{many}");
    let source = Field::Step { first: Ipv4Addr::BROADCAST, last: Ipv4Addr::LOCALHOST, step: 1 };
    let down = Ipv4Spec { source, ..Ipv4Spec::default() };
    let down = error(TemplateSpec { network: NetworkSpec::Ipv4(down), ..base() });
    assert!(down.contains("downwards"), "{down}");
    let size = Field::Step { first: 60, last: 90, step: 0 };
    let zero = error(TemplateSpec { size, ..base() });
    assert!(zero.contains("step of 0"), "{zero}");
    let without = TemplateSpec { network: NetworkSpec::none(), ..base() }.compile(0).unwrap_err();
    assert_eq!(without, TemplateError::WithoutIp { part: "UDP" });
    let empty = TemplateSpec { payload: PayloadFill::Pattern(vec![]), ..base() };
    assert_eq!(empty.compile(0).unwrap_err(), TemplateError::EmptyPattern);
}

#[test]
fn frames_without_room_are_not_made() {
    let mut template = TemplateSpec::default().compile(0).unwrap();
    let (mut slab, mut lengths) = (vec![0; 64 * 3 + 63], vec![9; 70]);
    template.fill(&mut slab, 64, &mut lengths, 0);
    assert_eq!(lengths[..4], [60, 60, 60, 0]);
    assert!(lengths[3..].iter().all(|&length| length == 0));
    assert_eq!(template.next_index(), 3);
    template.fill(&mut slab, 59, &mut lengths, 0);
    template.fill(&mut slab, 0, &mut lengths, 0);
    template.fill(&mut [], 64, &mut lengths, 0);
    template.fill(&mut slab, usize::MAX, &mut lengths, 0);
    assert!(lengths.iter().all(|&length| length == 0));
    assert_eq!(template.next_index(), 3);
    template.fill(&mut slab, 60, &mut lengths[..1], 0);
    assert_eq!((lengths[0], template.next_index()), (60, 4));
}
