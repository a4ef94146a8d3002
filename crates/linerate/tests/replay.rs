//! What a replay makes of times that go back, and a receiver of stamps that were sent before.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use program::{Run, number};
use store::{Interface, LinkType, PcapngWriter, Record, Section};

/// A capture of frames of 1000 bytes of a link type at the given times.
fn capture(path: &str, link_type: LinkType, times_ns: impl Iterator<Item = u64>) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    writer.add_interface(&Interface::new(link_type, 0)).unwrap();
    for time_ns in times_ns {
        writer.write_record(&Record::new(time_ns, &[2; 1_000])).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_packet_far_out_of_place_is_sent_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.pcapng").display().to_string();
    // A frame a microsecond, then one that belongs to the beginning: behind 1 MB, and behind 20 MB.
    for (count, backward) in [(1_000, 0), (20_000, 1)] {
        capture(
            &path,
            LinkType::ETHERNET,
            (0..count).map(|n| 1_000_000 + n * 1_000).chain([1_000_500]),
        );
        let result = Run::of(&["replay", &path, "--onto", "null:", "--json"]).expect(0).result();
        assert_eq!(number(&result, "replayed_packets"), count + 1, "{result}");
        assert_eq!(number(&result, "pace.backward_packets"), backward, "{result}");
        // The rest keep their times.
        assert_eq!(number(&result, "pace.asked_ns"), (count - 1) * 1_000, "{result}");
    }
}

#[test]
fn frames_of_another_link_type_do_not_go_on_an_ethernet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.pcapng").display().to_string();
    // Raw IP, and what `tcpdump -i any` writes.
    for link_type in [101, 113, 276] {
        capture(&path, LinkType(link_type), (0..10).map(|n| 1_000_000 + n));
        let run = Run::of(&["replay", &path, "--onto", "null:", "--rate", "max"]).expect(0);
        assert!(run.stderr.contains("10 packets of another link type than Ethernet"), "{run:?}");
        let replay = ["replay", &path, "--onto", "null:", "--rate", "max", "--json"];
        let result = Run::of(&replay).expect(0).result();
        assert_eq!(number(&result, "replayed_packets"), 0);
        let read = &result["ledger"]["accounts"][0]["left"];
        assert_eq!(number(read, "other_link_type_packets"), 10, "{result}");
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
    }
}

#[test]
fn stamps_of_a_part_look_like_loss_to_a_receiver() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (all, part) = (at("all.pcapng"), format!("pcap:{}", at("part.pcapng")));
    let port = format!("pcap:{all}");
    Run::of(&["generate", &port, "--count", "1000", "--dport", "1-10"]).expect(0);
    let replay = ["replay", &all, "--port", "4", "--onto", &part, "--rate", "max", "--json"];
    let result = Run::of(&replay).expect(0).result();
    assert_eq!(number(&result, "replayed_packets"), 100);
    assert_eq!(number(&result["ledger"], "lost_packets"), 0);
    // Numbers 3, 13, … 993: nine are left out between each two.
    let received = Run::of(&["receive", &part, "--json"]).expect(0).result();
    assert_eq!(number(&received, "received_packets"), 100);
    assert_eq!(number(&received, "lost_packets"), 99 * 9, "{received}");
    assert_eq!(number(&received["ledger"], "lost_packets"), 0);
    // Everything twice: each number comes a second time.
    let replay = ["replay", &all, &all, "--onto", &part, "--rate", "max", "--json"];
    assert_eq!(number(&Run::of(&replay).expect(0).result(), "replayed_packets"), 2_000);
    let received = Run::of(&["receive", &part, "--json"]).expect(0).result();
    assert_eq!(number(&received, "duplicate_packets"), 1_000, "{received}");
}
