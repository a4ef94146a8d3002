//! Filters of receiving interfaces.

use program::{number, packets_in_segments};
use rustix::process::Signal;
use serde_json::Value;
use sys::link::Link;
use sys::veth::VethConfig;

use crate::{Outcome, Running, Wire, program};

/// 3,000 frames to ten ports, 300 to each, with a tag.
fn send(wire: &Wire) {
    let generate = ["generate", "packet:here", "--count", "3000", "--rate", "30kpps"];
    let frames = ["--dport", "9-18", "--vlan", "7", "--size", "300", "--json"];
    Wire::run(&wire.here, &[&generate[..], &frames].concat()).expect(0);
}

#[track_caller]
fn ended(run: Running) -> Value {
    run.signal(Signal::INT);
    let result = run.finish().expect(0).result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    result
}

/// What matches is received and recorded, tags are seen, and the others are filtered to the frame.
pub fn what_matches_arrives() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("store").display().to_string();
    let index = wire.there.run(|| Link::by_name("there").map(|link| link.index))??;
    let (by_number, by_another) = (format!("ifindex {index}"), format!("ifindex {}", index + 1));
    for (expression, expected) in [
        ("vlan 7 and udp dst port 10", 300),
        ("vlan 7 and udp dst portrange 10-12 and inbound", 900),
        // Where there is no tag, no port is found behind it.
        ("udp dst port 10", 0),
        ("vlan 8", 0),
        ("outbound", 0),
        (&by_number, 3_000),
        (&by_another, 0),
    ] {
        let receive = ["receive", "packet:there", "--filter", expression, "--snap", "20", "--json"];
        let receiver = Wire::start(&wire.there, &receive);
        send(&wire);
        let received = ended(receiver);
        let account = &received["ledger"]["accounts"][0];
        assert_eq!(number(&received, "received_packets"), expected, "{expression}: {received}");
        assert_eq!(number(&received, "filtered_packets"), 3_000 - expected, "{expression}");
        assert_eq!(number(account, "left.filtered_packets"), 3_000 - expected, "{expression}");
        assert_eq!(number(account, "entered.wire_packets"), 3_000, "{expression}");
        assert_eq!(number(account, "left.delivered_bytes"), 20 * expected, "{expression}");
    }
    let record = ["record", "packet:there", "--to", &store, "--json"];
    let filter = ["--filter", "vlan and (udp dst port 10 or 11)"];
    let recorder = Wire::start(&wire.there, &[&record[..], &filter].concat());
    send(&wire);
    let recorded = ended(recorder);
    assert_eq!(number(&recorded, "received_packets"), 3_000);
    assert_eq!(number(&recorded, "filtered_packets"), 2_400);
    assert_eq!(number(&recorded, "recorded_packets"), 600);
    assert_eq!(packets_in_segments(&recorded), 600);
    Ok(())
}

/// `--count` counts what matches, while others go on to come.
pub fn a_count_is_one_of_matches() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let generate = ["generate", "packet:here", "--rate", "20kpps", "--dport", "9-18", "--json"];
    let sender = Wire::start(&wire.here, &generate);
    let receive = ["receive", "packet:there", "--count", "50", "--filter", "udp dst port 10"];
    let receive = [&receive[..], &["--json"]].concat();
    let result = Wire::run(&wire.there, &receive).expect(0).result();
    assert_eq!(number(&result, "received_packets"), 50, "{result}");
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let account = &result["ledger"]["accounts"][0];
    // Between two of them are nine others.
    assert!(number(account, "left.filtered_packets") >= 49 * 9, "{result}");
    ended(sender);
    Ok(())
}
