//! Receiving on the kernel plane.

use std::time::Instant;

use program::number;
use rustix::process::Signal;
use serde_json::Value;
use sys::link::{Link, Links};
use sys::namespace::Namespace;
use sys::veth::VethConfig;

use crate::xdp::needs_programs;
use crate::{Outcome, PATIENCE, Running, Wire, program};

const KERNEL: [&str; 5] = ["receive", "there", "--require", "kernel", "--json"];

fn send(wire: &Wire, port: &str, more: &[&str]) -> Value {
    let generate = ["generate", port, "--rate", "100kpps", "--json"];
    Wire::run(&wire.here, &[&generate[..], more].concat()).expect(0).result()
}

#[track_caller]
fn ended(run: Running) -> Value {
    run.signal(Signal::INT);
    let result = run.finish().expect(0).result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    result
}

fn on_kernel_plane(wire: &Wire, more: &[&str]) -> Running {
    Wire::start(&wire.there, &[&KERNEL[..], more].concat())
}

/// All of the interface that a run may change.
fn state(namespace: &Namespace) -> Link {
    let mut link = Links::of(namespace).unwrap().named("there").unwrap();
    link.statistics = Default::default();
    link
}

fn assert_back(namespace: &Namespace, before: &Link) {
    let begun = Instant::now();
    while state(namespace) != *before {
        assert!(begun.elapsed() < PATIENCE, "{:?} instead of {before:?}", state(namespace));
        std::thread::yield_now();
    }
}

/// What was sent is measured, tags and sizes and all, and the interface is left as it was found.
pub fn received_is_what_was_sent() -> Outcome {
    needs_programs()?;
    for (mtu_bytes, size) in [(1_500, "64-1514"), (9_000, "9014")] {
        let wire = Wire::new(&VethConfig { mtu_bytes, ..VethConfig::default() });
        let before = state(&wire.there);
        let receiver = on_kernel_plane(&wire, &[]);
        let held = state(&wire.there);
        assert!(held.xdp.len() == 1 && held.promiscuous, "{held:?}");
        let frames = ["--count", "50k", "--vlan", "7", "--size", size];
        let sent = send(&wire, "packet:here", &frames);
        let received = ended(receiver);
        assert_eq!(received["plane"], "kernel", "{received}");
        assert_eq!(received["mechanism"], "XDP program in the driver (native)", "{received}");
        assert_eq!(number(&received, "received_packets"), 50_000, "{received}");
        assert_eq!(number(&received, "stamped_packets"), 50_000, "{received}");
        assert_eq!(number(&received, "received_bytes"), number(&sent, "transmitted_bytes"));
        for name in ["lost_packets", "reordered_packets", "duplicate_packets", "restarts"] {
            assert_eq!(number(&received, name), 0, "{name}");
        }
        assert_eq!(number(&received, "latency_ns.count"), 50_000);
        assert_eq!(number(&received, "inter_arrival_ns.count"), 49_999);
        assert_eq!(number(&received, "negative_latency_packets"), 0, "one clock for both");
        assert!(number(&received, "latency_ns.max") < 10_000_000_000, "{received}");
        assert_eq!(received["corrupt_packets"], Value::Null);
        assert_back(&wire.there, &before);
    }
    Ok(())
}

/// Where the driver has no place for a program, it runs behind it.
pub fn a_generic_program_receives() -> Outcome {
    needs_programs()?;
    let host = Namespace::create()?;
    Links::of(&host)?.set_up("lo", true)?;
    let receiver = Wire::start(&host, &["receive", "lo", "--require", "kernel", "--json"]);
    let generate = ["generate", "packet:lo", "--count", "20k", "--rate", "100kpps", "--json"];
    Wire::run(&host, &generate).expect(0);
    let received = ended(receiver);
    let mechanism = "XDP program behind the driver (generic)";
    assert_eq!(received["mechanism"], mechanism, "{received}");
    assert_eq!(number(&received, "received_packets"), 20_000, "{received}");
    assert_eq!(number(&received, "stamped_packets"), 20_000, "{received}");
    assert_eq!(number(&received, "lost_packets"), number(&received, "contended_packets"));
    Ok(())
}

/// A stream that comes by several queues is one stream.
pub fn several_queues_are_received() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig { queues: 2, ..VethConfig::default() });
    let receiver = on_kernel_plane(&wire, &[]);
    send(&wire, "packet:here", &["--count", "50k", "--sport", "1-1000"]);
    let received = ended(receiver);
    assert_eq!(number(&received, "received_packets"), 50_000, "{received}");
    assert_eq!(number(&received, "stamped_packets"), 50_000, "{received}");
    assert_eq!(number(&received, "duplicate_packets"), 0, "{received}");
    assert_eq!(number(&received, "lost_packets"), number(&received, "contended_packets"));
    Ok(())
}

/// Known faults between sender and receiver: both planes see the same of them.
pub fn both_planes_see_the_same_faults() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let port = "packet:here?drop=0.01&duplicate=0.01&delay=0.01&seed=7";
    let frames = ["--count", "30k", "--size", "100"];
    let user = Wire::start(&wire.there, &["receive", "packet:there", "--json"]);
    send(&wire, port, &frames);
    let user = ended(user);
    let kernel = on_kernel_plane(&wire, &[]);
    send(&wire, port, &frames);
    let kernel = ended(kernel);
    for name in [
        "received_packets",
        "received_bytes",
        "stamped_packets",
        "lost_packets",
        "reordered_packets",
        "reorder_extent_max",
        "duplicate_packets",
        "latency_ns.count",
        "inter_arrival_ns.count",
    ] {
        assert!(number(&user, name) > 0, "{name}: {user}");
        assert_eq!(number(&kernel, name), number(&user, name), "{name}");
    }
    Ok(())
}

/// What does not match is filtered, and of what matches exactly as many as are wanted are measured.
pub fn what_matches_is_counted_out() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    // 300 frames to each of ten ports.
    let frames = ["--count", "3000", "--dport", "9-18", "--vlan", "7"];
    for (expression, expected) in
        [("vlan 7 and udp dst portrange 10-12", 900), ("udp dst port 10", 0)]
    {
        let receiver = on_kernel_plane(&wire, &["--filter", expression]);
        send(&wire, "packet:here", &frames);
        let received = ended(receiver);
        assert_eq!(number(&received, "received_packets"), expected, "{received}");
        assert_eq!(number(&received, "filtered_packets"), 3_000 - expected, "{received}");
    }
    let wanted = ["--filter", "vlan and udp dst port 10", "--count", "50"];
    let receiver = on_kernel_plane(&wire, &wanted);
    send(&wire, "packet:here", &frames);
    let received = receiver.finish().expect(0).result();
    let account = &received["ledger"]["accounts"][0];
    assert_eq!(received["ledger"]["balanced"], true, "{received}");
    assert_eq!(number(&received, "received_packets"), 50, "{received}");
    // It ends by itself, a moment behind the last one.
    assert!(number(account, "left.filtered_packets") >= 49 * 9, "{received}");
    let received = Wire::run(&wire.there, &[&KERNEL[..], &["--count", "0"]].concat());
    assert_eq!(number(&received.expect(0).result(), "received_packets"), 0);
    Ok(())
}

/// Frames that were counted end, or go on to the host, as asked.
pub fn counted_frames_end_or_go_on() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    // A packet socket misses what ended before it, and says so.
    for (counted, expected, code) in [("drop", 0, 1), ("pass", 1_000, 0)] {
        let receiver = on_kernel_plane(&wire, &["--counted", counted]);
        let host = Wire::start(&wire.there, &["receive", "packet:there", "--json"]);
        send(&wire, "packet:here", &["--count", "1000"]);
        host.signal(Signal::INT);
        let host = host.finish().expect(code).result();
        assert_eq!(number(&host, "received_packets"), expected, "{counted}");
        assert_eq!(number(&ended(receiver), "received_packets"), 1_000, "{counted}");
    }
    Ok(())
}

pub fn nothing_is_left_by_a_process_that_was_killed() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let before = state(&wire.there);
    let receiver = on_kernel_plane(&wire, &[]);
    assert_eq!(state(&wire.there).xdp.len(), 1);
    receiver.signal(Signal::KILL);
    receiver.finish();
    assert_back(&wire.there, &before);
    Ok(())
}

/// The interface is taken away: the run ends by itself, with what it had counted.
pub fn an_interface_that_goes_away_ends_the_run() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let receiver = on_kernel_plane(&wire, &[]);
    send(&wire, "packet:here", &["--count", "1000"]);
    Links::of(&wire.here)?.delete("here")?;
    let run = receiver.finish().expect(4);
    let received = run.result();
    assert!(run.stderr.contains("--plane user"), "{}", run.stderr);
    assert!(received["error"].is_string(), "{received}");
    assert_eq!(number(&received, "received_packets"), 1_000, "{received}");
    Ok(())
}

/// Another program stays, and the user plane serves unless that is refused.
pub fn a_foreign_program_stays() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(&VethConfig::default());
    let first = on_kernel_plane(&wire, &["--counted", "pass"]);
    let held = state(&wire.there);
    let refused = Wire::run(&wire.there, &KERNEL).expect(4);
    assert!(refused.stderr.contains("lr_receive"), "{}", refused.stderr);
    let second = ["receive", "packet:there", "--plane", "kernel", "--json"];
    let second = Wire::start(&wire.there, &second);
    send(&wire, "packet:here", &["--count", "1000"]);
    let second = ended(second);
    assert_eq!(second["plane"], "user", "{second}");
    let reason = second["plane_reason"].as_str().unwrap_or_default();
    assert!(reason.contains("lr_receive"), "{second}");
    assert_eq!(number(&second, "received_packets"), 1_000, "{second}");
    assert_eq!(state(&wire.there).xdp, held.xdp);
    assert_eq!(number(&ended(first), "received_packets"), 1_000);
    Ok(())
}

/// What the kernel plane does not serve is named.
pub fn what_is_not_served_is_named() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    for (arguments, named) in [
        (&["there", "--snap", "64"][..], "--snap"),
        (&["there", "--ring", "4MiB"], "--ring"),
        (&["there", "--cpu", "0"], "--cpu"),
        (&["xdp:there@0"], "queues"),
        (&["packet:there?drop=0.1"], "faults"),
        (&["null:"], "interfaces"),
        (&["there", "--plane", "user"], "--plane user"),
    ] {
        let required = [&["receive", "--require", "kernel"], arguments].concat();
        let refused = Wire::run(&wire.there, &required).expect(2).stderr;
        assert!(refused.contains(named), "{refused}");
    }
    let refused = Wire::run(&wire.there, &["receive", "there", "--counted", "drop"]).expect(2);
    assert!(refused.stderr.contains("--plane kernel"), "{}", refused.stderr);
    Ok(())
}
