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
        ("192.168.1.7", "192.168.1.7", true),
        ("192.168.1.7", "192.168.1.6", false),
        ("2001:db8::/32", "2001:db8:1::1", true),
        ("2001:db8::/32", "2001:db9::1", false),
        ("::/0", "ffff::", true),
        ("::1/128", "::1", true),
    ];
    for (network, host, expected) in cases {
        let network: IpNetwork = network.parse().unwrap();
        assert_eq!(network.contains(address(host)), expected, "{network:?} {host}");
    }
    for wrong in ["10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "1.2.3.4/", "1.2.3.4/-1", ""] {
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
