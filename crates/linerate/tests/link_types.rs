//! Captures whose link type shows late, and what a recording makes of it.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use program::{Run, number};
use store::{CaptureReader, Interface, LinkType, PcapngWriter, Record, Section};

const RAW_IP: LinkType = LinkType(101);

/// A capture whose interfaces are of the given link types, with packets of the given interfaces.
fn capture(path: &str, interfaces: &[LinkType], packets: &[u32]) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    for link_type in interfaces {
        writer.add_interface(&Interface::new(*link_type, 0)).unwrap();
    }
    for (n, interface) in packets.iter().enumerate() {
        let mut record = Record::new(1_000_000 + n as u64, &[0x45; 40]);
        record.interface = *interface;
        writer.write_record(&record).unwrap();
    }
    writer.finish().unwrap();
}

/// The link types of the packets in what `find` gives out of a store.
fn link_types_of(store: &str) -> Vec<LinkType> {
    let found = format!("{store}/found.pcapng");
    Run::of(&["find", store, "--write", &found]).expect(0);
    let mut reader = CaptureReader::open(&found).unwrap();
    let mut interfaces = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        interfaces.push(record.interface as usize);
    }
    interfaces.iter().map(|interface| reader.interfaces()[*interface].link_type).collect()
}

#[test]
fn a_recording_has_the_link_type_of_the_packets_that_it_holds() {
    let ethernet = LinkType::ETHERNET;
    let cases: [(&[LinkType], &[u32], LinkType, u64); 4] = [
        (&[RAW_IP], &[0, 0, 0], RAW_IP, 0),
        (&[ethernet, RAW_IP], &[1, 1], RAW_IP, 0),
        (&[ethernet, RAW_IP], &[1, 0, 1, 0, 0], RAW_IP, 3),
        (&[RAW_IP, ethernet], &[1, 0, 1], ethernet, 1),
    ];
    for (interfaces, packets, expected, others) in cases {
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name).display().to_string();
        capture(&at("frames.pcapng"), interfaces, packets);
        let port = format!("pcap:{}", at("frames.pcapng"));
        let result = Run::of(&["record", &port, "--to", &at("store"), "--json"]).expect(0).result();
        let recorded = packets.len() as u64 - others;
        assert_eq!(number(&result, "recorded_packets"), recorded, "{result}");
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert_eq!(link_types_of(&at("store")), vec![expected; recorded as usize]);
    }
}
