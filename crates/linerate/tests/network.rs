//! The program on a real veth pair, two of it at once: one sends, the other records or receives.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "network/carrier.rs"]
mod carrier;
#[path = "network/demo.rs"]
mod demo;
#[path = "network/doctor.rs"]
mod doctor;
#[path = "network/filtered.rs"]
mod filtered;
#[path = "network/fit.rs"]
mod fit;
#[path = "network/kernel_receive.rs"]
mod kernel_receive;
#[path = "network/pages.rs"]
mod page_examples;
#[path = "program/pages.rs"]
mod pages;
mod program;
#[path = "network/removed.rs"]
mod removed;
#[path = "network/xdp.rs"]
mod xdp;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

use program::{Run, command, number};
use rustix::process::{Pid, Signal, kill_process};
use sys::link::Links;
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::{Outcome, tests};

/// So long is waited for what happens a moment later.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two namespaces and a veth pair.
struct Wire {
    here: Namespace,
    there: Namespace,
}

impl Wire {
    fn new(config: &VethConfig) -> Self {
        let (here, there) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        VethPair::create(&here, "here", &there, "there", config).unwrap();
        Self { here, there }
    }

    /// Starts the program in a namespace and waits until it says that it has started.
    fn start(namespace: &Namespace, arguments: &[&str]) -> Running {
        let mut child = namespace.run(|| command(arguments).spawn()).unwrap().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        // What is noted on the way to it comes before.
        while first.is_empty() || first.contains("\"event\"") {
            first.clear();
            assert!(stdout.read_line(&mut first).unwrap() > 0, "ended before it had started");
        }
        assert!(first.contains("\"start\""), "{first}");
        // Opened is not yet started; the ring takes a few ms from here.
        std::thread::sleep(Duration::from_millis(150));
        Running { child, stdout }
    }

    fn record_there(&self, store: &str) -> Running {
        Self::start(&self.there, &["record", "packet:there", "--to", store, "--json"])
    }

    fn run(namespace: &Namespace, arguments: &[&str]) -> Run {
        namespace.run(|| command(arguments).output()).unwrap().map(Run::from).unwrap()
    }
}

struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Drop for Running {
    /// A case that fails half way leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn finish(mut self) -> Run {
        let mut stdout = Vec::new();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let mut stderr = String::new();
        if let Some(mut said) = self.child.stderr.take() {
            said.read_to_string(&mut stderr).unwrap();
        }
        Run { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

/// What was sent is received, number by number, and a signal ends the receiver with its ledger.
fn received_is_what_was_sent() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let receiver = Wire::start(&wire.there, &["receive", "packet:there", "--json"]);
    let sent = Wire::run(
        &wire.here,
        &["generate", "packet:here", "--count", "50k", "--rate", "50kpps", "--json"],
    )
    .expect(0)
    .result();
    receiver.signal(Signal::INT);
    let received = receiver.finish().expect(0).result();
    assert_eq!(number(&sent, "transmitted_packets"), 50_000);
    assert_eq!(number(&received, "received_packets"), 50_000);
    for name in ["lost_packets", "reordered_packets", "duplicate_packets", "corrupt_packets"] {
        assert_eq!(number(&received, name), 0, "{name}");
    }
    assert_eq!(number(&received, "latency_ns.count"), 50_000);
    assert_eq!(received["interrupted"], true);
    assert_eq!(received["ledger"]["balanced"], true, "{received}");
    Ok(())
}

/// A recording ended by SIGTERM keeps what is still in the ring; tshark counts the same.
fn recorded_is_what_was_sent() -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store").display().to_string();
    let wire = Wire::new(&VethConfig::default());
    let recorder = wire.record_there(&store);
    let arguments =
        ["generate", "packet:here", "--count", "30k", "--size", "64-1514", "--vlan", "7", "--json"];
    Wire::run(&wire.here, &arguments).expect(0);
    recorder.signal(Signal::TERM);
    let recorded = recorder.finish().expect(0).result();
    assert_eq!(number(&recorded, "recorded_packets"), 30_000, "{recorded}");
    assert_eq!(recorded["ledger"]["balanced"], true);
    let found = Run::of(&["find", &store, "--vlan", "7", "--json"]).expect(0).result();
    assert_eq!(number(&found, "found_packets"), 30_000);
    let replay = Wire::start(&wire.there, &["receive", "packet:there", "--json"]);
    let sent = Wire::run(
        &wire.here,
        &["replay", &store, "--onto", "packet:here", "--rate", "40kpps", "--json"],
    )
    .expect(0)
    .result();
    replay.signal(Signal::INT);
    let again = replay.finish().expect(0).result();
    assert_eq!(number(&sent, "replayed_packets"), 30_000);
    assert_eq!(number(&again, "received_packets"), 30_000);
    assert_eq!(number(&again, "lost_packets"), 0);
    // The stamps are those of the first sending, at least one start of a receiver ago.
    assert!(number(&again, "latency_ns.min") > 100_000_000, "{again}");
    Ok(())
}

/// A store is searched while it is recorded to, and after its recorder was killed.
fn a_recording_that_goes_on_is_told_from_one_that_was_killed() -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store").display().to_string();
    let wire = Wire::new(&VethConfig::default());
    let recorder = wire.record_there(&store);
    let find = || {
        let result = Run::of(&["find", &store, "--json"]).expect(0).result();
        let told = (number(&result, "interruptions"), number(&result, "recordings_going_on"));
        (told, result["complete"].as_bool(), Run::of(&["find", &store]).expect(0).stderr)
    };
    let (told, complete, words) = find();
    assert_eq!((told, complete), ((0, 1), Some(true)));
    assert!(words.contains("the recording goes on"), "{words}");
    drop(recorder);
    let (told, complete, words) = find();
    assert_eq!((told, complete), ((1, 0), Some(false)));
    assert!(words.contains("the answer is incomplete: the recording was interrupted"), "{words}");
    assert!(!words.contains("nothing is known"), "{words}");
    Ok(())
}

/// An interface that goes down and comes back, or is made anew, does not end a recording.
fn recording_survives_its_interface() -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store").display().to_string();
    let wire = Wire::new(&VethConfig::default());
    let recorder = wire.record_there(&store);
    let send = || {
        Wire::run(&wire.here, &["generate", "packet:here", "--count", "1000", "--json"]).expect(0);
    };
    send();
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    Links::of(&wire.there).unwrap().set_up("there", true).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    send();
    Links::of(&wire.here).unwrap().delete("here").unwrap();
    std::thread::sleep(Duration::from_millis(600));
    VethPair::create(&wire.here, "here", &wire.there, "there", &VethConfig::default()).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    send();
    recorder.signal(Signal::INT);
    let recorder = recorder.finish().expect(0);
    assert_eq!(number(&recorder.result(), "recorded_packets"), 3_000);
    let said = String::from_utf8_lossy(&recorder.stdout).into_owned();
    for words in ["went down", "is gone", "is back"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    Ok(())
}

/// A frame that does not fit the MTU is an error that names both, and nothing is unexplained.
fn a_frame_beyond_the_mtu_is_refused() -> Outcome {
    let wire = Wire::new(&VethConfig { mtu_bytes: 1000, ..VethConfig::default() });
    let run = Wire::run(
        &wire.here,
        &["generate", "packet:here", "--count", "10", "--size", "1200", "--json"],
    )
    .expect(4);
    assert!(run.stderr.contains("1200") && run.stderr.contains("1014"), "{}", run.stderr);
    assert_eq!(run.result()["ledger"]["balanced"], true);
    Links::of(&wire.here).unwrap().set_up("here", false).unwrap();
    let run = Wire::run(&wire.here, &["generate", "packet:here", "--count", "10"]).expect(4);
    assert!(run.stderr.contains("here") && run.stderr.contains("up"), "{}", run.stderr);
    Ok(())
}

/// An 802.1Q tag comes on top of what the MTU allows, and nothing else does.
fn a_tag_goes_beyond_the_mtu() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let generate = |size: &str, more: &[&str]| {
        let mut arguments = vec!["generate", "packet:here", "--count", "100", "--json"];
        arguments.extend(["--size", size]);
        arguments.extend(more);
        Wire::run(&wire.here, &arguments)
    };
    let receiver = Wire::start(&wire.there, &["receive", "packet:there", "--json"]);
    let sent = generate("1518", &["--vlan", "7"]).expect(0).result();
    assert_eq!(number(&sent, "transmitted_packets"), 100);
    assert_eq!(number(&sent, "transmitted_bytes"), 151_800);
    for (size, more, longest) in [
        ("1518", &[][..], "1514"),
        ("1519", &["--vlan", "7"], "1518"),
        // The outer one of two is a provider's (0x88a8).
        ("1518", &["--vlan", "7,8"], "1514"),
    ] {
        let run = generate(size, more).expect(4);
        let said = format!("a frame of {size} bytes is longer than the {longest} bytes");
        assert!(run.stderr.contains(&said), "{}", run.stderr);
        let result = run.result();
        let left = &result["ledger"]["accounts"][0]["left"];
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        let refused = (number(left, "transmitted_packets"), number(left, "rejected_packets"));
        assert_eq!(refused, (0, 64), "{result}");
    }
    receiver.signal(Signal::INT);
    let received = receiver.finish().expect(0).result();
    assert_eq!(number(&received, "received_packets"), 100);
    assert_eq!(number(&received, "received_bytes"), 151_800);
    assert_eq!(number(&received, "lost_packets"), 0);
    Ok(())
}

/// The first signal ends a generator with its ledger, a second one ends the program at once.
fn signals_end_a_run() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let run = Wire::start(
        &wire.here,
        &["generate", "packet:here", "--count", "1G", "--rate", "1kpps", "--json"],
    );
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::INT);
    let result = run.finish().expect(0).result();
    assert_eq!(result["ledger"]["balanced"], true);
    assert_eq!(result["interrupted"], true);
    assert_eq!(number(&result, "intended_packets"), 1_000_000_000);

    // A terminal that is gone ends a run in order, too; one under nohup goes on.
    for (how, interrupted) in [("default", true), ("ignore", false)] {
        let mut child = std::process::Command::new("env")
            .arg(format!("--{how}-signal=HUP"))
            .arg(command(&[]).get_program())
            .args(["generate", "null:", "--rate", "1kpps", "--duration", "1s", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        let result = Running { child, stdout }.finish().expect(0).result();
        assert_eq!(result["interrupted"], interrupted, "{how}");
    }

    // A peer that is down takes no frame: an orderly end waits a second for it, so the second
    // signal, late enough to be another one, is what ends the program.
    let run = Wire::start(&wire.here, &["generate", "packet:here", "--rate", "1kpps", "--json"]);
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    run.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(500));
    run.signal(Signal::INT);
    let run = run.finish();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    Ok(())
}

/// With the port down, a generator ends with its time, and what it owes is late.
fn what_is_owed_at_the_end_is_late() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let run = |more: &[&str]| {
        let mut arguments =
            vec!["generate", "packet:here", "--rate", "1kpps", "--duration", "1s", "--json"];
        arguments.extend(more);
        let run = Wire::start(&wire.here, &arguments);
        Links::of(&wire.here).unwrap().set_up("here", false).unwrap();
        let run = run.finish().expect(0);
        Links::of(&wire.here).unwrap().set_up("here", true).unwrap();
        run.result()
    };
    for (more, intended) in
        [(&[][..], 1_000), (&["--count", "5000"], 5_000), (&["--workers", "3"], 1_000)]
    {
        let result = run(more);
        let left = &result["ledger"]["accounts"][0]["left"];
        assert_eq!(number(&result, "intended_packets"), intended, "{result}");
        let sent = number(&result, "transmitted_packets");
        let unsent = number(left, "late_packets") + number(left, "ring_full_packets");
        assert_eq!(sent + unsent, intended, "{result}");
        assert!(number(left, "late_packets") > 0, "{result}");
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        let advice = result["advice"].as_str().unwrap();
        assert!(advice.contains("asked 1.00 kpps, achieved"), "{advice}");
    }
    Ok(())
}

/// Two workers that share the numbers leave none out and begin once, with a number as with a time.
fn workers_lose_nothing_to_a_receiver() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    for until in [&["--count", "200k"][..], &["--duration", "300ms"]] {
        let arguments = ["receive", "packet:there", "--ring", "256MiB", "--json"];
        let receiver = Wire::start(&wire.there, &arguments);
        let mut arguments = vec!["generate", "packet:here", "--workers", "2", "--json"];
        arguments.extend(until);
        let sent = Wire::run(&wire.here, &arguments).expect(0).result();
        receiver.signal(Signal::INT);
        let received = receiver.finish().expect(0).result();
        let count = number(&sent, "transmitted_packets");
        assert_eq!(number(&received, "received_packets"), count, "{received}");
        assert_eq!(number(&received, "restarts"), 0, "{received}");
        assert_eq!(number(&received, "lost_packets"), 0, "{received}");
    }
    Ok(())
}

/// Full speed into a receiver whose ring is small: every frame is somewhere.
fn overload_is_accounted_for() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let arguments = ["receive", "packet:there", "--ring", "2MiB", "--json"];
    let receiver = Wire::start(&wire.there, &arguments);
    let sent = Wire::run(&wire.here, &["generate", "packet:here", "--count", "300k", "--json"])
        .expect(0)
        .result();
    receiver.signal(Signal::INT);
    let received = receiver.finish().expect(0).result();
    let account = &received["ledger"]["accounts"][0];
    assert_eq!(number(&sent, "transmitted_packets"), 300_000);
    assert_eq!(number(account, "entered.wire_packets"), 300_000, "{received}");
    let dropped = number(account, "left.kernel_ring_packets");
    assert_eq!(number(&received, "received_packets") + dropped, 300_000);
    Ok(())
}

/// The demo says whether the far end's NAPI runs in a thread, and why not.
fn the_demo_says_who_receives() -> Outcome {
    let result = Run::of(&["demo", "--count", "1000", "--json"]).expect(0).result();
    let napi = &result["napi"];
    assert_eq!(napi["threaded"], result["threaded_napi"]);
    assert_eq!(napi["threaded"], napi["switched_by"].is_string(), "{napi}");
    assert_eq!(napi["threaded"], napi["reason"].is_null(), "{napi}");
    assert!(result["clock"]["source"].is_string() && result["clock"]["deviation_ns_max"].is_u64());
    let options = ["demo", "--count", "1000", "--no-threaded-napi"];
    let run = Run::of(&options).expect(0);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        said.contains("received on the sender's CPU, since the command line says so"),
        "{said}"
    );
    Ok(())
}

/// One signal ends the demo with its ledger and 0; one that is killed leaves nothing that lasts.
fn the_demo_ends_in_order() -> Outcome {
    let place = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = command(&["demo", "--count", "1M", "--rate", "50kpps", "--json"]);
        let mut child = command.env("TMPDIR", place.path()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        // A line of progress: frames are on their way.
        while !said.contains("\"progress\"") {
            assert!(stdout.read_line(&mut said).unwrap() > 0, "{said}");
        }
        Running { child, stdout }
    };
    let left = || std::fs::read_dir(place.path()).unwrap().count();
    let killed = start();
    killed.signal(Signal::KILL);
    killed.finish();
    assert_eq!(left(), 1);
    let demo = start();
    assert_eq!(left(), 1, "the next one removes what was left");
    demo.signal(Signal::INT);
    let result = demo.finish().expect(0).result();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let sent = number(&result, "generated_packets");
    assert!(sent < 1_000_000 && sent == number(&result, "recorded_packets"), "{result}");
    assert_eq!(left(), 0);
    Ok(())
}

/// While traffic goes on, `receive --count` measures that many frames and names the others.
fn received_is_what_was_counted_off() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let generate = ["generate", "packet:here", "--rate", "50kpps", "--json"];
    let sender = Wire::start(&wire.here, &generate);
    for count in [1, 100, 4_321] {
        let text = count.to_string();
        let run = Wire::run(&wire.there, &["receive", "packet:there", "--count", &text, "--json"]);
        let result = run.expect(0).result();
        assert_eq!(number(&result, "received_packets"), count);
        assert_eq!(number(&result, "lost_packets"), 0, "{result}");
        assert_counted_off(&result, count);
    }
    sender.signal(Signal::INT);
    sender.finish().expect(0);
    Ok(())
}

/// The same with `record`: the files hold that many packets, and no loss is told of them.
fn recorded_is_what_was_counted_off() -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let wire = Wire::new(&VethConfig::default());
    let generate = ["generate", "packet:here", "--rate", "50kpps", "--json"];
    let sender = Wire::start(&wire.here, &generate);
    for count in [1, 100, 4_321] {
        let text = count.to_string();
        let store = directory.path().join(&text).display().to_string();
        let record = ["record", "packet:there", "--to", &store, "--count", &text, "--json"];
        let result = Wire::run(&wire.there, &record).expect(0).result();
        assert_eq!(number(&result, "recorded_packets"), count);
        assert_eq!(number(&result, "lost_packets"), 0, "{result}");
        assert_counted_off(&result, count);
        assert_eq!(program::packets_in_segments(&result), count);
        let found = Run::of(&["find", &store, "--count", "--json"]).expect(0).result();
        assert_eq!(number(&found, "found_packets"), count);
        assert_eq!(found["complete"], true, "{found}");
    }
    sender.signal(Signal::INT);
    sender.finish().expect(0);
    Ok(())
}

/// A balanced ledger in which `count` frames were delivered.
#[track_caller]
fn assert_counted_off(result: &serde_json::Value, count: u64) {
    let account = &result["ledger"]["accounts"][0];
    let left = &account["left"];
    let beyond = left["beyond_count_packets"].as_u64().unwrap_or(0);
    let lost = number(left, "interface_packets") + number(left, "kernel_ring_packets");
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert_eq!(number(left, "delivered_packets"), count, "{result}");
    assert_eq!(number(account, "entered.wire_packets"), count + beyond + lost, "{result}");
}

fn main() -> ExitCode {
    testing::run(tests![
        received_is_what_was_sent,
        recorded_is_what_was_sent,
        a_recording_that_goes_on_is_told_from_one_that_was_killed,
        recording_survives_its_interface,
        removed::a_removed_directory_is_said,
        removed::a_segment_that_is_cut_is_said,
        a_frame_beyond_the_mtu_is_refused,
        a_tag_goes_beyond_the_mtu,
        signals_end_a_run,
        what_is_owed_at_the_end_is_late,
        overload_is_accounted_for,
        workers_lose_nothing_to_a_receiver,
        received_is_what_was_counted_off,
        recorded_is_what_was_counted_off,
        the_demo_says_who_receives,
        the_demo_ends_in_order,
        demo::a_directory_holds_one_demo,
        demo::a_process_that_is_not_dumpable_makes_its_network,
        carrier::a_missing_carrier_is_said,
        carrier::a_link_that_flaps_is_accounted_for,
        carrier::progress_without_a_carrier_is_none,
        page_examples::examples_on_an_interface_run_as_written,
        page_examples::the_readme_records_and_finds,
        filtered::what_matches_arrives,
        filtered::a_count_is_one_of_matches,
        fit::frames_that_do_not_fit_are_left_out,
        fit::a_damaged_capture_of_frames_that_do_not_fit,
        fit::frames_that_the_far_end_refuses_are_rejected,
        fit::a_far_end_whose_mtu_sinks_is_noticed,
        fit::a_far_end_out_of_sight_may_be_why,
        doctor::merging_is_found,
        doctor::threads_are_found,
        doctor::a_far_end_with_a_smaller_mtu_is_found,
        doctor::advice_about_merging_settles,
        doctor::ports_that_cannot_run_are_problems,
        doctor::directories_are_tried,
        doctor::documented_fields_are_there,
        kernel_receive::received_is_what_was_sent,
        kernel_receive::a_generic_program_receives,
        kernel_receive::several_queues_are_received,
        kernel_receive::both_planes_see_the_same_faults,
        kernel_receive::what_matches_is_counted_out,
        kernel_receive::counted_frames_end_or_go_on,
        kernel_receive::nothing_is_left_by_a_process_that_was_killed,
        kernel_receive::an_interface_that_goes_away_ends_the_run,
        kernel_receive::a_foreign_program_stays,
        kernel_receive::what_is_not_served_is_named,
        xdp::received_is_what_was_sent,
        xdp::recorded_is_what_was_sent,
        xdp::overload_is_accounted_for,
        xdp::what_is_required_is_not_replaced,
        xdp::without_the_right_packet_sockets_serve,
    ])
}
