//! Ports by AF_XDP, at both ends.

use std::time::{Duration, Instant};

use program::{Run, number, packets_in_segments};
use rustix::process::Signal;
use serde_json::Value;
use sys::link::Links;
use sys::veth::VethConfig;

use crate::{Outcome, Wire, program};

/// Skips a test where programs for the kernel cannot be loaded, as without root.
pub fn needs_programs() -> Outcome {
    match sys::bpf::Support::probe().loading {
        Ok(()) => Ok(()),
        Err(error) => testing::skip(error),
    }
}

#[track_caller]
fn assert_by_xdp(result: &Value) {
    let mechanism = result["mechanism"].as_str().unwrap_or_default();
    assert!(mechanism.starts_with("AF_XDP in copy mode"), "{result}");
    assert!(mechanism.contains("no zero-copy mode"), "{result}");
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
}

pub fn received_is_what_was_sent() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let receive = ["receive", "xdp:there", "--require", "native", "--json"];
    let receiver = Wire::start(&wire.there, &receive);
    let generate = ["generate", "xdp:here", "--count", "200k", "--rate", "100kpps", "--json"];
    let sent = Wire::run(&wire.here, &generate).expect(0).result();
    receiver.signal(Signal::INT);
    let received = receiver.finish().expect(0).result();
    assert_by_xdp(&sent);
    assert_by_xdp(&received);
    assert_eq!(number(&sent, "transmitted_packets"), 200_000);
    assert_eq!(number(&received, "received_packets"), 200_000);
    for name in ["lost_packets", "reordered_packets", "duplicate_packets", "corrupt_packets"] {
        assert_eq!(number(&received, name), 0, "{name}");
    }
    assert_eq!(number(&received, "latency_ns.count"), 200_000);
    assert!(Links::of(&wire.there)?.named("there")?.xdp.is_empty());
    Ok(())
}

/// Tagged frames of all sizes are recorded, found, replayed and received.
pub fn recorded_is_what_was_sent() -> Outcome {
    needs_programs()?;
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("store").display().to_string();
    for mtu_bytes in [1_500, 9_000] {
        let wire = Wire::new(&VethConfig { mtu_bytes, ..VethConfig::default() });
        let store = format!("{store}{mtu_bytes}");
        let record = ["record", "xdp:there", "--to", &store, "--json"];
        let recorder = Wire::start(&wire.there, &record);
        let sizes = format!("64-{}", mtu_bytes + 14);
        let generate =
            ["generate", "xdp:here", "--count", "30k", "--size", &sizes, "--vlan", "7", "--json"];
        let sent = Wire::run(&wire.here, &generate).expect(0).result();
        recorder.signal(Signal::TERM);
        let recorded = recorder.finish().expect(0).result();
        assert_by_xdp(&recorded);
        assert_eq!(number(&recorded, "recorded_packets"), 30_000, "{recorded}");
        assert_eq!(number(&recorded, "recorded_bytes"), number(&sent, "transmitted_bytes"));
        assert_eq!(packets_in_segments(&recorded), 30_000);
        // Frames of several buffers are put together, and that is counted.
        let copied = &recorded["ledger"]["accounts"][0]["facts"]["copied_packets"];
        assert_eq!(copied.as_u64(), (mtu_bytes > 4_000).then_some(30_000), "{recorded}");
        let found = Run::of(&["find", &store, "--vlan", "7", "--json"]).expect(0).result();
        assert_eq!(number(&found, "found_packets"), 30_000);
        let receiver = Wire::start(&wire.there, &["receive", "xdp:there", "--json"]);
        let replay = ["replay", &store, "--onto", "xdp:here", "--rate", "40kpps", "--json"];
        let again = Wire::run(&wire.here, &replay).expect(0).result();
        receiver.signal(Signal::INT);
        let received = receiver.finish().expect(0).result();
        assert_by_xdp(&again);
        assert_eq!(number(&again, "replayed_packets"), 30_000);
        assert_eq!(number(&received, "received_packets"), 30_000);
        assert_eq!(number(&received, "lost_packets"), 0);
        assert_eq!(received["ledger"]["balanced"], true, "{received}");
    }
    Ok(())
}

/// A receiver that stands still loses what its ring does not hold, to the packet.
pub fn overload_is_accounted_for() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let receive = ["receive", "xdp:there", "--ring", "2MiB", "--json"];
    let receiver = Wire::start(&wire.there, &receive);
    receiver.signal(Signal::STOP);
    let generate = ["generate", "xdp:here", "--count", "20k", "--json"];
    Wire::run(&wire.here, &generate).expect(0);
    receiver.signal(Signal::CONT);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(200) {
        std::thread::sleep(Duration::from_millis(10));
    }
    receiver.signal(Signal::INT);
    let received = receiver.finish().expect(0).result();
    let account = &received["ledger"]["accounts"][0];
    assert_by_xdp(&received);
    assert_eq!(number(account, "entered.wire_packets"), 20_000, "{received}");
    assert_eq!(number(account, "left.delivered_packets"), 1_024, "{received}");
    assert_eq!(number(account, "left.kernel_ring_packets"), 18_976, "{received}");
    assert_eq!(number(&received, "lost_packets"), 0, "the last ones of the stream are missing");
    Ok(())
}

/// What is required is not replaced; the message says what there is.
pub fn what_is_required_is_not_replaced() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let refused = |arguments: &[&str]| Wire::run(&wire.here, arguments).expect(4).stderr;
    let said = refused(&["generate", "xdp:here", "--count", "1", "--require", "zerocopy"]);
    assert!(said.contains("zero-copy mode is required"), "{said}");
    assert!(said.contains("here queue 0 in zero-copy"), "{said}");
    let said = refused(&["generate", "packet:here", "--count", "1", "--require", "xdp"]);
    assert!(said.contains("use xdp:here"), "{said}");
    let said = refused(&["receive", "null:", "--require", "native"]);
    assert!(said.contains("no interface"), "{said}");
    let said = refused(&["receive", "xdp:here@1-2"]);
    assert!(said.contains("1 receive queue") && said.contains("ethtool -L here"), "{said}");
    let said = refused(&["receive", "xdp:nowhere"]);
    assert!(said.contains("nowhere"), "{said}");
    Ok(())
}

/// Without the right over the kernel's programs packet sockets receive, and the first line says so.
pub fn without_the_right_packet_sockets_serve() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    // A second receiver finds the program of the first one.
    let held = match needs_programs() {
        Ok(()) => Some(Wire::start(&wire.there, &["receive", "xdp:there", "--json"])),
        Err(_) => None,
    };
    let run = Wire::run(&wire.there, &["receive", "xdp:there", "--duration", "300ms", "--json"])
        .expect(0)
        .result();
    let mechanism = run["mechanism"].as_str().unwrap_or_default();
    assert!(mechanism.starts_with("AF_PACKET"), "{run}");
    assert!(mechanism.contains("no AF_XDP: "), "{run}");
    let require = ["receive", "xdp:there", "--duration", "300ms", "--require", "xdp"];
    let refused = Wire::run(&wire.there, &require);
    assert!(matches!(refused.code, Some(3 | 4)), "{refused:?}");
    drop(held);
    Ok(())
}
