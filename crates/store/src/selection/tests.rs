use super::*;
use proptest::prelude::*;
use std::net::Ipv6Addr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// An Ethernet frame with the given VLAN tags, EtherType and content.
fn ethernet(vlans: &[u16], ethertype: u16, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    for vlan in vlans {
        frame.extend([0x81, 0x00]);
        frame.extend((0x2000 | vlan).to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(content);
    frame
}

/// An IPv4 packet with ports in its first four bytes of payload.
fn ipv4(source: &str, destination: &str, protocol: u8, offset: u16, ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet[6..8].copy_from_slice(&offset.to_be_bytes());
    for end in [source, destination] {
        packet.extend(end.parse::<Ipv4Addr>().unwrap().octets());
    }
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    // As UDP: length 20, checksum 0; as TCP: sequence number and so on.
    packet.extend([0, 20, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    packet
}

fn ipv6(source: &str, destination: &str, protocol: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, protocol, 64];
    for end in [source, destination] {
        packet.extend(end.parse::<Ipv6Addr>().unwrap().octets());
    }
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    packet.extend([0, 8, 0, 0]);
    packet
}

#[test]
fn networks_are_read_and_contain_what_they_should() {
    let cases = [
        ("10.0.0.0/8", "10.255.1.2", true),
        ("10.0.0.0/8", "11.0.0.0", false),
        ("0.0.0.0/0", "255.255.255.255", true),
        ("0.0.0.0/0", "::1", false),
        ("192.168.1.7/24", "192.168.1.200", true),
        ("192.168.1.7/32", "192.168.1.7", true),
        ("192.168.1.7/32", "192.168.1.6", false),
        ("2001:db8::/32", "2001:db8:1::1", true),
        ("2001:db8::/32", "2001:db9::1", false),
        ("::/0", "ffff::", true),
        ("::1/128", "::1", true),
    ];
    for (network, host, expected) in cases {
        let network: IpNetwork = network.parse().unwrap();
        assert_eq!(network.contains(address(host)), expected, "{network:?} {host}");
    }
    for wrong in
        ["10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.0", "::1", ""]
    {
        assert!(wrong.parse::<IpNetwork>().unwrap_err().to_string().contains(wrong));
    }
}

#[test]
fn hosts_ports_protocols_and_vlans_are_alternatives_within_a_kind() {
    let frame = ethernet(&[7, 9], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 17, 0, (1000, 53)));
    let holds = |selection: &Selection| selection.holds_packet(LinkType::ETHERNET, &frame);
    let all = Selection::default();
    assert!(holds(&all));
    assert!(holds(&Selection { hosts: vec![address("10.0.0.1")], ..all.clone() }));
    assert!(holds(&Selection { hosts: vec![address("::1"), address("10.0.0.2")], ..all.clone() }));
    assert!(!holds(&Selection { hosts: vec![address("10.0.0.3")], ..all.clone() }));
    assert!(holds(&Selection { ports: vec![80, 53], ..all.clone() }));
    assert!(holds(&Selection { ports: vec![1000], ..all.clone() }));
    assert!(!holds(&Selection { ports: vec![20], ..all.clone() }));
    assert!(holds(&Selection { protocols: vec![6, 17], ..all.clone() }));
    assert!(!holds(&Selection { protocols: vec![6], ..all.clone() }));
    assert!(holds(&Selection { vlans: vec![7], ..all.clone() }));
    assert!(holds(&Selection { vlans: vec![9], ..all.clone() }));
    assert!(!holds(&Selection { vlans: vec![8], ..all.clone() }));
    assert!(holds(&Selection { ethertypes: vec![0x0800], ..all.clone() }));
    assert!(!holds(&Selection { ethertypes: vec![0x8100], ..all.clone() }));
    let network = "10.0.0.0/30".parse().unwrap();
    let both = Selection { networks: vec![network], ports: vec![53], ..all.clone() };
    assert!(holds(&both));
    assert!(!holds(&Selection { hosts: vec![address("10.0.0.9")], ..both }));
}

#[test]
fn later_fragments_have_no_ports() {
    let whole = ethernet(&[], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 17, 0, (1000, 53)));
    let later = ethernet(&[], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 17, 100, (1000, 53)));
    let ports = Selection { ports: vec![53], ..Selection::default() };
    let hosts = Selection { hosts: vec![address("10.0.0.1")], ..Selection::default() };
    assert!(ports.holds_packet(LinkType::ETHERNET, &whole));
    assert!(!ports.holds_packet(LinkType::ETHERNET, &later));
    assert!(hosts.holds_packet(LinkType::ETHERNET, &later));
}

#[test]
fn arp_ipv6_and_other_link_types_are_understood() {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend([2, 2, 2, 2, 2, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let arp = ethernet(&[], 0x0806, &arp);
    for host in ["10.0.0.1", "10.0.0.2"] {
        let selection = Selection { hosts: vec![address(host)], ..Selection::default() };
        assert!(selection.holds_packet(LinkType::ETHERNET, &arp));
        assert!(!selection.holds_packet(LinkType::ETHERNET, &arp[..40]), "cut");
    }
    let six = ipv6("2001:db8::1", "2001:db8::2", 17, (5, 6));
    let selection =
        Selection { hosts: vec![address("2001:db8::2")], ports: vec![5], ..Selection::default() };
    assert!(selection.holds_packet(LinkType::ETHERNET, &ethernet(&[], 0x86dd, &six)));
    for (link_type, bytes) in [
        (LinkType::RAW, 0),
        (LinkType::IPV6, 0),
        (LinkType::LOOP, 4),
        (LinkType::LINUX_SLL, 16),
        (LinkType::LINUX_SLL2, 20),
    ] {
        let packet = [vec![0; bytes], six.clone()].concat();
        assert!(selection.holds_packet(link_type, &packet), "{link_type}");
    }
    assert!(!selection.holds_packet(LinkType::NETLINK, &six));
    assert!(Selection::default().holds_packet(LinkType::NETLINK, &six));
    // Behind other headers than Ethernet's, ARP is not.
    let sender = Selection { hosts: vec![address("10.0.0.1")], ..Selection::default() };
    assert!(!sender.holds_packet(LinkType::LINUX_SLL, &[&[0; 16], &arp[14..]].concat()));
}

/// Where the verdict on the first bytes of a packet changes, from 0 bytes to all of them.
fn verdicts(selection: &Selection, link_type: LinkType, packet: &[u8]) -> Vec<(usize, Verdict)> {
    let mut changes: Vec<(usize, Verdict)> = Vec::new();
    for bytes in 0..=packet.len() {
        let verdict = selection.judge(link_type, &packet[..bytes], packet.len() as u32);
        if changes.last().is_none_or(|(_, last)| *last != verdict) {
            changes.push((bytes, verdict));
        }
    }
    changes
}

#[test]
fn a_cut_packet_is_decided_as_soon_as_its_bytes_decide() {
    use Verdict::{Differs, Holds, Undecided};
    let ethernet_link = LinkType::ETHERNET;
    let udp = ethernet(&[7], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 17, 0, (1000, 53)));
    let port = |port| Selection { ports: vec![port], ..Selection::default() };
    // 14 bytes of Ethernet, 4 of the tag, 20 of IPv4, 4 of ports.
    let cases = [(port(53), Holds), (port(54), Differs)];
    for (selection, verdict) in cases {
        let expected = [(0, Undecided), (42, verdict)];
        assert_eq!(verdicts(&selection, ethernet_link, &udp), expected);
        // Cut by nobody, it has no ports.
        assert!(!selection.holds_packet(ethernet_link, &udp[..41]));
    }
    let vlan = |vlan| Selection { vlans: vec![vlan], ..Selection::default() };
    assert_eq!(verdicts(&vlan(7), ethernet_link, &udp), [(0, Undecided), (18, Holds)]);
    assert_eq!(verdicts(&vlan(8), ethernet_link, &udp), [(0, Undecided), (18, Differs)]);
    let protocol = |number| Selection { protocols: vec![number], ..Selection::default() };
    assert_eq!(verdicts(&protocol(6), ethernet_link, &udp), [(0, Undecided), (38, Differs)]);
    let host = |text| Selection { hosts: vec![address(text)], ..Selection::default() };
    assert_eq!(verdicts(&host("10.0.0.2"), ethernet_link, &udp), [(0, Undecided), (38, Holds)]);
    // One kind that differs decides for all.
    let both = Selection { hosts: vec![address("10.0.0.9")], ..port(53) };
    assert_eq!(verdicts(&both, ethernet_link, &udp), [(0, Undecided), (38, Differs)]);
    // Neither a later fragment nor ICMP has ports, and ARP no protocol.
    let later = ethernet(&[], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 17, 100, (1000, 53)));
    assert_eq!(verdicts(&port(53), ethernet_link, &later), [(0, Undecided), (34, Differs)]);
    let icmp = ethernet(&[], 0x0800, &ipv4("10.0.0.1", "10.0.0.2", 1, 0, (1000, 53)));
    assert_eq!(verdicts(&port(53), ethernet_link, &icmp), [(0, Undecided), (34, Differs)]);
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend([2, 2, 2, 2, 2, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let arp = ethernet(&[], 0x0806, &arp);
    assert_eq!(verdicts(&host("10.0.0.2"), ethernet_link, &arp), [(0, Undecided), (42, Holds)]);
    assert_eq!(verdicts(&protocol(17), ethernet_link, &arp), [(0, Undecided), (14, Differs)]);
    // The tag of cooked captures and the length of IPv6 extensions are waited for.
    let mut six = ipv6("2001:db8::1", "2001:db8::2", 60, (0, 0));
    six.truncate(40);
    six.extend([17, 0, 0, 0, 0, 0, 0, 0, 3, 232, 0, 53, 0, 8, 0, 0]);
    six[5] = 16;
    assert_eq!(verdicts(&port(53), LinkType::RAW, &six), [(0, Undecided), (52, Holds)]);
    assert_eq!(verdicts(&protocol(17), LinkType::RAW, &six), [(0, Undecided), (48, Holds)]);
    let cooked = [vec![0; 16], six].concat();
    assert_eq!(verdicts(&port(53), LinkType::LINUX_SLL, &cooked), [(0, Undecided), (68, Holds)]);
    assert_eq!(verdicts(&port(53), LinkType::NETLINK, &cooked), [(0, Differs)]);
    assert_eq!(verdicts(&Selection::default(), LinkType::NETLINK, &cooked), [(0, Holds)]);
}

/// Selections of one criterion, by its name in the program.
fn asked(option: &str, value: &str) -> Selection {
    let number = || value.parse::<u16>().unwrap();
    let all = Selection::default();
    match option {
        "host" => Selection { hosts: vec![address(value)], ..all },
        "port" => Selection { ports: vec![number()], ..all },
        "proto" => Selection { protocols: vec![number() as u8], ..all },
        "vlan" => Selection { vlans: vec![number()], ..all },
        _ => panic!("{option}"),
    }
}

/// Which of the criteria hold, each `option value`.
fn holding<'a>(frame: &[u8], criteria: &[&'a str]) -> Vec<&'a str> {
    let holds = |criterion: &&&str| {
        let (option, value) = criterion.split_once(' ').unwrap();
        asked(option, value).holds_packet(LinkType::ETHERNET, frame)
    };
    criteria.iter().filter(holds).copied().collect()
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2 whose header says that `first` comes next.
fn ipv6_with(first: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = ipv6("2001:db8::1", "2001:db8::2", first, (0, 0));
    packet.truncate(40);
    packet[4..6].copy_from_slice(&(content.len() as u16).to_be_bytes());
    packet.extend(content);
    packet
}

/// A UDP header from port 1000 to 53.
const UDP_HEADER: [u8; 8] = [3, 232, 0, 53, 0, 8, 0, 0];

#[test]
fn extension_headers_are_followed_to_the_protocol() {
    let criteria = ["host 2001:db8::2", "proto 17", "port 53"];
    let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    for (count, expected) in [(0, &criteria[..]), (8, &criteria), (9, &criteria[..1])] {
        let mut content = Vec::new();
        for place in 0..count {
            content.extend(options(if place + 1 < count { 60 } else { 17 }));
        }
        content.extend(UDP_HEADER);
        let packet = ipv6_with(if count > 0 { 60 } else { 17 }, &content);
        let frame = ethernet(&[], 0x86dd, &packet);
        assert_eq!(holding(&frame, &criteria), expected, "{count}");
    }
    let udp_behind = |header: &[u8]| [header, &UDP_HEADER].concat();
    let authenticated = udp_behind(&[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    // Segments left: the destination in the IPv6 header is a node on the way.
    let mut routed = vec![17, 2, 4, 1, 0, 0, 0, 0];
    routed.extend("2001:db8::9".parse::<Ipv6Addr>().unwrap().octets());
    let routed = udp_behind(&routed);
    let later = udp_behind(&[17, 0, 0, 8, 0, 0, 0, 1]);
    for (first, content, expected) in [
        (51, authenticated, &criteria[..]),
        (43, routed, &criteria),
        (44, later, &criteria[..2]),
        // What ESP encrypts is not known; its protocol is 50.
        (50, UDP_HEADER.to_vec(), &criteria[..1]),
    ] {
        let frame = ethernet(&[], 0x86dd, &ipv6_with(first, &content));
        assert_eq!(holding(&frame, &criteria), expected, "{first}");
        assert_eq!(holding(&frame, &["host 2001:db8::9"]), [""; 0]);
    }
}

#[test]
fn labels_and_tags_are_passed_and_nothing_else_is_entered() {
    let inner = ipv4("10.0.0.1", "10.0.0.2", 17, 0, (1000, 53));
    let in_inner = ["host 10.0.0.1", "proto 17", "port 53"];
    let tagged = |ethertype, content: &[u8]| ethernet(&[7], ethertype, content);
    // MPLS labels, the last one marked as such.
    for (labels, expected) in [(1, &in_inner[..]), (8, &in_inner), (9, &[])] {
        let mut content = [0, 1, 0, 64].repeat(labels);
        content[labels * 4 - 2] = 1;
        content.extend(&inner);
        assert_eq!(holding(&tagged(0x8847, &content), &in_inner), expected, "{labels}");
    }
    let session = [&[0x11, 0, 0, 1, 0, 42, 0, 0x21][..], &inner].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &inner].concat();
    let secured = [&[0, 0, 0, 0, 0, 1, 8, 0][..], &inner].concat();
    let length = snap.len() as u16;
    for (ethertype, content) in [(0x8864, session), (length, snap), (0x88e5, secured)] {
        let frame = tagged(ethertype, &content);
        assert_eq!(holding(&frame, &in_inner), [""; 0]);
        assert_eq!(holding(&frame, &["vlan 7", "vlan 8"]), ["vlan 7"]);
    }
    // Four tags at most: behind more than that, nothing.
    for (tags, expected) in [(4, &in_inner[..]), (5, &[])] {
        let vlans: Vec<u16> = (1..=tags).collect();
        let frame = ethernet(&vlans, 0x0800, &inner);
        assert_eq!(holding(&frame, &in_inner), expected);
        assert_eq!(holding(&frame, &["vlan 4", "vlan 5"]), ["vlan 4"]);
    }
}

#[test]
fn of_tunnels_the_outer_headers_are_looked_at() {
    let inner = ipv4("10.0.0.1", "10.0.0.2", 17, 0, (1000, 53));
    let in_inner = ["host 10.0.0.1", "port 53"];
    let outer = |protocol, ports, content: &[u8]| {
        let mut packet = ipv4("192.0.2.1", "192.0.2.2", protocol, 0, ports);
        packet.truncate(if protocol == 17 { 28 } else { 20 });
        packet.extend(content);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        ethernet(&[], 0x0800, &packet)
    };
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(&[], 0x0800, &inner)].concat();
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &inner].concat();
    for (name, frame, expected) in [
        ("IP in IP", outer(4, (0, 0), &inner), "proto 4"),
        ("GRE", outer(47, (0, 0), &[&[0, 0, 8, 0][..], &inner].concat()), "proto 47"),
        ("VXLAN", outer(17, (5000, 4789), &vxlan), "port 4789"),
        ("ICMP error", outer(1, (0, 0), &error), "proto 1"),
    ] {
        assert_eq!(holding(&frame, &in_inner), [""; 0], "{name}");
        let criteria = ["host 192.0.2.2", expected];
        assert_eq!(holding(&frame, &criteria), criteria, "{name}");
    }
}

#[test]
fn times_are_half_open_and_reversed_ranges_hold_nothing() {
    let range = Selection::between(10, 20);
    let held: Vec<u64> = (0..30).filter(|time| range.holds_time(*time)).collect();
    assert_eq!(held, (10..20).collect::<Vec<_>>());
    assert!(range.overlaps(0, 10) && range.overlaps(19, 19) && !range.overlaps(20, 30));
    assert!(!range.overlaps(0, 9));
    let reversed = Selection::between(20, 10);
    assert!((0..30).all(|time| !reversed.holds_time(time)));
    assert!(!reversed.overlaps(0, u64::MAX));
    assert!(Selection::default().holds_time(u64::MAX));
    assert!(Selection::default().overlaps(u64::MAX, u64::MAX));
}

proptest! {
    #[test]
    fn any_bytes_can_be_asked(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        link_type in 0u16..300,
    ) {
        let selection = Selection {
            hosts: vec![address("10.0.0.1")],
            ports: vec![1],
            vlans: vec![1],
            ..Selection::default()
        };
        selection.holds_packet(LinkType(link_type), &bytes);
    }

    #[test]
    fn a_network_agrees_with_comparing_bit_by_bit(a: u32, b: u32, length in 0u8..=32) {
        let network = IpNetwork::new(Ipv4Addr::from(a).into(), length).unwrap();
        let same = (0..length).all(|bit| (a ^ b) & (1 << (31 - bit)) == 0);
        prop_assert_eq!(network.contains(Ipv4Addr::from(b).into()), same);
    }
}
