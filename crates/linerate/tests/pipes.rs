//! Named pipes and standard output as ports and answers: whoever is at the other end may be slow, silent
//! or not there, and the run still ends when it is told to, with every packet in its account.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

#[path = "pipes/running.rs"]
mod running;

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::process::Stdio;
use std::time::Duration;

use program::{Run, command, number};
use running::{Place, Running, until};
use rustix::fs::OFlags;
use rustix::process::Signal;

/// What a pipe holds at least before it is full (pipe(7)), but for the room of a last short write.
const FULL_BYTES: u64 = 60_000;

/// How a run is told to end: by a signal, or by the time that it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Signal(Signal),
    Duration,
}

const ENDS: [End; 3] = [End::Signal(Signal::INT), End::Signal(Signal::TERM), End::Duration];

impl End {
    fn options(self) -> &'static [&'static str] {
        if self == Self::Duration { &["--duration", "300ms"] } else { &[] }
    }

    fn come(self, running: &Running) {
        if let Self::Signal(signal) = self {
            running.signal(signal);
        }
    }

    fn is_signal(self) -> bool {
        self != Self::Duration
    }
}

/// The packets of a stream, and whether it ends behind the last of them.
fn packets_in(stream: Vec<u8>) -> (u64, bool) {
    if stream.is_empty() {
        return (0, true);
    }
    let mut reader = store::CaptureReader::new(Cursor::new(stream), "stream").unwrap();
    let mut packets = 0;
    loop {
        match reader.next_record() {
            Ok(Some(_)) => packets += 1,
            Ok(None) => return (packets, true),
            Err(store::StoreError::Truncated { .. }) => return (packets, false),
            Err(error) => panic!("{error}"),
        }
    }
}

/// All that is in a pipe.
fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    match pipe.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
        _ => bytes,
    }
}

fn waiting_bytes(pipe: &impl std::os::fd::AsFd) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap()
}

#[test]
fn a_pipe_that_nobody_writes_is_waited_for_until_the_run_is_to_end() {
    for verb in ["receive", "record"] {
        for end in ENDS {
            let place = Place::new();
            let (port, store) = (place.port(), place.at("store"));
            let to = ["--to", &store];
            let to = if verb == "record" { &to[..] } else { &[] };
            let running = Running::start(&[&[verb, &port], to, end.options()].concat())
                .holding(&place.at("fifo"));
            end.come(&running);
            let result = running.result();
            assert_eq!(result["interrupted"], end.is_signal(), "{result}");
            assert_eq!(number(&result, "received_packets"), 0);
        }
    }
}

#[test]
fn a_writer_that_falls_silent_is_waited_for_until_the_run_is_to_end() {
    let place = Place::new();
    let bytes = std::fs::read(place.capture(10, 60)).unwrap();
    // Behind nothing, within the header, and within the last packet.
    for (length, packets) in [(0, 0), (30, 0), (bytes.len() - 7, 9)] {
        for verb in ["receive", "record"] {
            for end in ENDS {
                let place = Place::new();
                let (port, store) = (place.port(), place.at("store"));
                let to = ["--to", &store];
                let to = if verb == "record" { &to[..] } else { &[] };
                let running = Running::start(&[&[verb, &port], to, end.options()].concat());
                let mut writer = place.writer();
                writer.write_all(&bytes[..length]).unwrap();
                let running = running.handling();
                // It may have ended, if its time was short.
                until("all is read", || waiting_bytes(&writer) == 0);
                // What was read has come a moment later.
                let wait = packets > 0 && end.is_signal();
                let running = if wait { running.having(packets) } else { running };
                end.come(&running);
                let result = running.result();
                assert_eq!(result["interrupted"], end.is_signal(), "{result}");
                assert_eq!(number(&result, "received_packets"), packets, "{length}: {result}");
                if verb == "record" {
                    assert_eq!(program::packets_in_segments(&result), packets);
                }
                drop(writer);
            }
        }
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_waited_for_until_the_run_is_to_end() {
    let place = Place::new();
    let (port, path) = (place.port(), place.capture(100, 60));
    for end in ENDS {
        // What was meant and was not made has its reason.
        for (options, meant) in [
            (&["--count", "70"][..], Some(70)),
            (&["--count", "70", "--rate", "1kpps"], Some(70)),
            (&["--rate", "1kpps"], None),
        ] {
            let generate = [&["generate", &port], options, end.options()].concat();
            let running = Running::start(&generate).handling();
            end.come(&running);
            let result = running.result();
            assert_eq!(result["interrupted"], end.is_signal(), "{result}");
            assert_eq!(number(&result, "transmitted_packets"), 0, "{result}");
            let left = &result["ledger"]["accounts"][0]["left"];
            let of_time = if end.is_signal() { 0 } else { meant.unwrap_or(300) };
            let of_signal = if end.is_signal() { meant.unwrap_or(0) } else { 0 };
            assert_eq!(number(left, "late_packets"), of_time, "{result}");
            assert_eq!(left["interrupted_packets"].as_u64().unwrap_or(0), of_signal, "{result}");
        }
        let replay = ["replay", &path, "--onto", &port];
        let running = Running::start(&[&replay, end.options()].concat()).handling();
        end.come(&running);
        let result = running.result();
        assert_eq!(result["interrupted"], end.is_signal(), "{result}");
        assert_eq!(number(&result, "replayed_packets"), 0, "{result}");
        if end.is_signal() {
            let running = Running::start(&["find", &path, "--write", &place.at("fifo")]).handling();
            end.come(&running);
            let result = running.result();
            assert_eq!(
                (&result["interrupted"], &result["complete"]),
                (&true.into(), &false.into())
            );
            assert_eq!(number(&result, "written_packets"), 0, "{result}");
        }
    }
}

#[test]
fn what_a_reader_does_not_take_is_counted_where_it_stayed() {
    let place = Place::new();
    let (port, path) = (place.port(), place.capture(5_000, 1_000));
    let generate = ["generate", &port, "--count", "1M"];
    let replay = ["replay", &path, "--onto", &port, "--rate", "max"];
    for end in ENDS {
        for verb in [&generate[..], &replay] {
            let reader = place.reader();
            let running = Running::start(&[verb, end.options()].concat()).handling();
            until("the pipe is full", || waiting_bytes(&reader) > FULL_BYTES);
            end.come(&running);
            let result = running.result();
            assert_eq!(result["interrupted"], end.is_signal(), "{result}");
            let account = result["ledger"]["accounts"].as_array().unwrap().last().unwrap();
            let transmitted = number(account, "left.transmitted_packets");
            assert!(number(account, "left.ring_full_packets") > 0, "{result}");
            // The reader finds as many, and the beginning of one more.
            assert_eq!(packets_in(drain(&reader)).0, transmitted, "{result}");
            assert!(transmitted > 0, "{result}");
        }
    }
}

#[test]
fn faults_on_the_way_into_a_pipe_keep_their_account() {
    let place = Place::new();
    let port = format!("{}?duplicate=0.1&drop=0.1&delay=0.1&delay_frames=9&seed=3", place.port());
    let reader = place.reader();
    let running = Running::start(&["generate", &port, "--count", "1M"]).handling();
    until("the pipe is full", || waiting_bytes(&reader) > FULL_BYTES);
    running.signal(Signal::INT);
    let result = running.result();
    let transmitted = number(&result, "transmitted_packets");
    assert_eq!(packets_in(drain(&reader)).0, transmitted, "{result}");
}

#[test]
fn a_search_whose_answer_nobody_reads_ends_with_a_signal() {
    let place = Place::new();
    let (path, fifo) = (place.capture(5_000, 1_000), place.at("fifo"));
    for signal in [Signal::INT, Signal::TERM] {
        for way in ["fifo", "pipe", "socket"] {
            let target = if way == "fifo" { &fifo } else { "-" };
            let mut find = command(&["find", &path, "--write", target, "--json"]);
            let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
            if way == "socket" {
                find.stdout(Stdio::from(std::os::fd::OwnedFd::from(far)));
            }
            let reader = place.reader();
            let mut running = Running(find.spawn().unwrap()).handling();
            let stdout = running.0.stdout.take();
            drop(find);
            until("the pipe is full", || {
                FULL_BYTES
                    < match (way, &stdout) {
                        ("fifo", _) => waiting_bytes(&reader),
                        ("pipe", Some(stdout)) => waiting_bytes(stdout),
                        // A socket counts the memory that bytes take, and is full much earlier.
                        _ => waiting_bytes(&near) * 4,
                    }
            });
            running.signal(signal);
            let result = if way == "fifo" {
                running.0.stdout = stdout;
                let result = running.result();
                assert_eq!(packets_in(drain(&reader)).0, number(&result, "written_packets"));
                result
            } else {
                let result = running.result_at("stderr");
                let answer = if way == "pipe" { drain(stdout.unwrap()) } else { drain(near) };
                assert_eq!(packets_in(answer).0, number(&result, "written_packets"), "{result}");
                result
            };
            assert_eq!(
                (&result["interrupted"], &result["complete"]),
                (&true.into(), &false.into())
            );
            let account = &result["ledger"]["accounts"][1];
            let unread = number(account, "left.interrupted_packets");
            assert_eq!(
                number(&result, "found_packets"),
                number(&result, "written_packets") + unread
            );
            assert!(unread > 0, "{result}");
        }
    }
}

#[test]
fn a_second_signal_ends_a_run_that_waits_at_once() {
    let place = Place::new();
    let (port, path) = (place.port(), place.capture(5_000, 1_000));
    let reader = place.reader();
    let find = ["find", &path, "--write", &place.at("fifo")];
    for verb in [&["generate", &port][..], &find] {
        let mut running = Running::start(verb).handling();
        until("the pipe is full", || waiting_bytes(&reader) > FULL_BYTES);
        running.signal(Signal::INT);
        let status = format!("/proc/{}/status", running.0.id());
        until("the first is handled", || {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
            pending.is_some_and(|mask| mask.trim().chars().all(|digit| digit == '0'))
        });
        running.signal(Signal::TERM);
        until("the end", || running.0.try_wait().unwrap().is_some());
        assert_eq!(running.0.wait().unwrap().code(), Some(130));
        drain(&reader);
    }
}

#[test]
fn a_capture_in_pieces_is_read_to_the_packet() {
    for name in ["frames.pcap", "frames.pcapng"] {
        let place = Place::new();
        let (path, port) = (place.at(name), place.port());
        let made = format!("pcap:{path}");
        Run::of(&["generate", &made, "--count", "120", "--size", "60-124"]).expect(0);
        let bytes = std::fs::read(&path).unwrap();
        let whole = Run::of(&["receive", &made, "--json"]).expect(0).result();
        for (cut, code, packets) in [(0, 0, 120), (9, 6, 119)] {
            let running = Running::start(&["receive", &port]);
            let mut writer = place.writer();
            let mut rest = &bytes[..bytes.len() - cut];
            // Each piece is read before the next is written: none of them is joined with another.
            for piece in (1..=23).cycle() {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                writer.write_all(now).unwrap();
                until("a piece is read", || waiting_bytes(&writer) == 0);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            drop(writer);
            let (ended, result) = running.end("stdout");
            assert_eq!((ended, number(&result, "received_packets")), (Some(code), packets));
            assert_eq!(result["ledger"]["balanced"], true, "{result}");
            assert_eq!(number(&result, "lost_packets"), 0, "{result}");
            assert_eq!(number(&result, "corrupt_packets"), 0, "{result}");
            if cut == 0 {
                for figure in ["received_bytes", "stamped_packets", "first_time_ns", "last_time_ns"]
                {
                    assert_eq!(result[figure], whole[figure], "{figure}");
                }
            }
        }
    }
}

#[test]
fn a_pipe_that_ends_without_a_capture_is_none() {
    for (bytes, expected) in
        [(&b""[..], "is empty"), (b"\x0a\x0d", "is cut short"), (b"hello, world", "not a capture")]
    {
        let place = Place::new();
        let port = place.port();
        let running = Running::start(&["receive", &port]);
        place.writer().write_all(bytes).unwrap();
        let (code, last) = running.end("stdout");
        assert_eq!((code, &last["kind"]), (Some(6), &"error".into()), "{last}");
        assert!(last["message"].as_str().unwrap().contains(expected), "{last}");
    }
}

/// Reads to the end, mostly little at a time.
fn read_slowly(mut reader: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 5_000];
    let mut number = 0;
    loop {
        number += 1;
        if number % 40 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        match reader.read(&mut piece) {
            Ok(0) => return bytes,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let place = Place::new();
    let (path, fifo, port) = (place.capture(4_000, 1_000), place.at("fifo"), place.port());
    let copy = place.at("copy.pcapng");
    Run::of(&["find", &path, "--write", &copy]).expect(0);
    let copy = std::fs::read(copy).unwrap();
    let open = || File::open(&fifo).unwrap();

    let running = Running::start(&["find", &path, "--write", &fifo]);
    assert!(read_slowly(open()) == copy);
    assert_eq!(number(&running.result(), "written_packets"), 4_000);

    let mut running = Running::start(&["find", &path, "--write", "-"]);
    let stdout = running.0.stdout.take().unwrap();
    assert!(read_slowly(stdout) == copy);
    assert_eq!(number(&running.result_at("stderr"), "written_packets"), 4_000);

    for verb in [
        &["generate", &port, "--count", "4000", "--size", "1000"][..],
        &["replay", &path, "--onto", &port, "--rate", "max"],
    ] {
        let running = Running::start(verb);
        assert_eq!(packets_in(read_slowly(open())), (4_000, true));
        let result = running.result();
        let account = result["ledger"]["accounts"].as_array().unwrap().last().unwrap();
        assert_eq!(number(account, "left.transmitted_packets"), 4_000, "{result}");
        assert_eq!(number(&result["ledger"], "lost_packets"), 0, "{result}");
    }
}

#[test]
fn a_slow_reader_gets_what_was_found_before_a_signal() {
    let place = Place::new();
    // Far more than is found ahead of what is written.
    let path = place.capture(20_000, 1_200);
    let mut running = Running::start(&["find", &path, "--write", "-"]).handling();
    let stdout = running.0.stdout.take().unwrap();
    until("the pipe is full", || waiting_bytes(&stdout) > FULL_BYTES);
    running.signal(Signal::INT);
    let (packets, whole) = packets_in(read_slowly(stdout));
    let result = running.result_at("stderr");
    assert!(whole && packets > 0 && packets < 20_000, "{result}");
    assert_eq!(number(&result, "written_packets"), packets, "{result}");
    assert_eq!(number(&result, "found_packets"), packets, "{result}");
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let place = Place::new();
    let (path, fifo, port) = (place.capture(5_000, 1_000), place.at("fifo"), place.port());
    let leave = |mut reader: File| reader.read_exact(&mut [0; 100]).unwrap();
    let running = Running::start(&["find", &path, "--write", &fifo]);
    leave(File::open(&fifo).unwrap());
    let result = running.result();
    assert_eq!(result["output_closed"], true, "{result}");

    let running = Running::start(&["generate", &port]);
    leave(File::open(&fifo).unwrap());
    let (code, result) = running.end("stdout");
    assert_eq!((code, &result["kind"]), (Some(5), &"result".into()), "{result}");
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert!(result["error"].as_str().unwrap().contains("Broken pipe"), "{result}");
}

#[test]
fn standard_output_keeps_its_flags() {
    let place = Place::new();
    let path = place.capture(100, 60);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut find = command(&["find", &path, "--write", "-"]);
    find.stdout(Stdio::from(writer.try_clone().unwrap()));
    let reading = std::thread::spawn(move || drain(File::from(reader)));
    assert_eq!(find.output().unwrap().status.code(), Some(0));
    // Others write to the same pipe after it.
    assert!(!rustix::fs::fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK));
    drop((find, writer));
    assert_eq!(packets_in(reading.join().unwrap()), (100, true));
}
