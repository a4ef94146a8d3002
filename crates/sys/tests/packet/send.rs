//! What a sender accepts, refuses and reports, by each method.

use std::process::Command;
use std::time::Duration;

use sys::link::Links;
use sys::packet::{Blocked, Method, PacketRing, SendOutcome, Sender, SenderConfig};
use sys::{Error, Kind};
use testing::{Outcome, skip};

use super::support::*;

const METHODS: [Method; 2] = [Method::Ring, Method::Messages];

fn open(method: Method) -> Sender {
    let sender = Sender::open(&SenderConfig { method, ..SenderConfig::new("tx0") }).unwrap();
    assert_eq!(sender.method(), method);
    sender
}

fn refused(sender: &mut Sender, frames: &[Vec<u8>]) -> Error {
    sender.send(frames.iter().map(Vec::as_slice)).unwrap_err()
}

pub fn both_methods_send_the_same() {
    plug_cable();
    let before = transmitted("tx0");
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    // More frames than the transmit ring has slots, of all lengths.
    let frames: Vec<_> = (0..3000).map(|n| numbered(n, 22 + (n as usize * 7) % 1493)).collect();
    let mut expected = 0;
    for method in METHODS {
        let mut sender = open(method);
        let mut received = Vec::new();
        for part in frames.chunks(250) {
            send_all(&mut sender, part);
            expected += part.len() as u64;
            received.extend(await_frames(&mut ring, expected));
        }
        // Closing after the last batch loses nothing.
        drop(sender);
        received.extend(stop_and_collect(&mut ring, expected));
        ring.start(&[]).unwrap();
        assert_frames(&received, &frames);
    }
    assert_eq!(transmitted("tx0") - before, expected);
    assert_eq!(Sender::open(&SenderConfig::new("tx0")).unwrap().method(), Method::Ring);
}

pub fn frames_longer_than_the_mtu_are_refused_by_name() {
    for method in METHODS {
        plug_cable();
        let mut ring = PacketRing::open(&quick_ring()).unwrap();
        ring.start(&[]).unwrap();
        let mut sender = open(method);
        let mut tagged = numbered(1, 1518);
        tagged[12..16].copy_from_slice(&[0x81, 0, 0, 1]);
        let longest = [numbered(0, 1514), tagged];
        send_all(&mut sender, &longest);

        let error = refused(&mut sender, &[numbered(2, 60), numbered(3, 1515)]);
        assert_eq!(error.kind(), Kind::Invalid);
        let text = error.to_string();
        for part in ["1515", "1500", "1514", "tx0", "mtu 1501"] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        assert_eq!(refused(&mut sender, &[vec![0; 13]]).kind(), Kind::Invalid);
        // The MTU sinks while the sender is open.
        let mut links = Links::current().unwrap();
        links.set_mtu("tx0", 1000).unwrap();
        let mut passed = longest.to_vec();
        let mixed = [numbered(6, 60), numbered(4, 1514)];
        // A ring is checked as a whole, messages one by one: what is on its way is told.
        match (method, sender.send(mixed.iter().map(Vec::as_slice))) {
            (Method::Messages, Ok(outcome)) => {
                assert_eq!(outcome, SendOutcome { accepted: 1, blocked: None });
                passed.push(mixed[0].clone());
            }
            (_, outcome) => assert_eq!(outcome.unwrap_err().kind(), Kind::Invalid),
        }
        let error = refused(&mut sender, &[numbered(4, 1514)]);
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains("MTU is 1000"), "{error}");
        let error = refused(&mut sender, &[numbered(5, 1015)]);
        assert!(error.to_string().contains("MTU is 1000"), "{error}");
        // Of the refused batches nothing was sent.
        assert_frames(&stop_and_collect(&mut ring, passed.len() as u64), &passed);
        links.delete("tx0").unwrap();
    }
}

pub fn jumbo_frames_pass() {
    for (method, mtu) in [
        (Method::Ring, 9000),
        (Method::Messages, 9000),
        (Method::Ring, 40_000),
        (Method::Messages, 40_000),
    ] {
        plug_cable();
        let mut links = Links::current().unwrap();
        links.set_mtu("tx0", mtu).unwrap();
        links.set_mtu("rx0", mtu).unwrap();
        let mut ring = PacketRing::open(&quick_ring()).unwrap();
        ring.start(&[]).unwrap();
        let mut sender = open(method);
        let longest = mtu as usize + 14;
        let frames: Vec<_> = (0..40).map(|n| numbered(n, longest - (n as usize % 7))).collect();
        for part in frames.chunks(8) {
            send_all(&mut sender, part);
        }
        assert_frames(&stop_and_collect(&mut ring, 40), &frames);
        assert_exact(&mut ring);
        // What the MTU allows later may be more than the transmit ring has room for.
        links.set_mtu("tx0", 65_000).unwrap();
        let huge = numbered(0, 65_014);
        assert_eq!(refused(&mut sender, &[huge]).kind(), Kind::Invalid);
        links.delete("tx0").unwrap();
    }
}

pub fn sender_says_that_the_interface_is_down() {
    for method in METHODS {
        plug_cable();
        let mut sender = open(method);
        let mut links = Links::current().unwrap();
        links.set_up("tx0", false).unwrap();
        let frame = numbered(0, 60);
        let down = SendOutcome { accepted: 0, blocked: Some(Blocked::Down) };
        assert_eq!(sender.send([frame.as_slice(); 3]).unwrap(), down);
        assert_eq!(Sender::open(&SenderConfig::new("tx0")).unwrap_err().kind(), Kind::Down);
        links.set_up("tx0", true).unwrap();
        // What was refused is not sent later, unasked for.
        let before = transmitted("tx0");
        let sent = SendOutcome { accepted: 1, blocked: None };
        assert_eq!(sender.send([frame.as_slice()]).unwrap(), sent);
        assert_eq!(transmitted("tx0") - before, 1);
        links.delete("tx0").unwrap();
        assert_eq!(sender.send([frame.as_slice()]).unwrap(), down);
        assert_eq!(Sender::open(&SenderConfig::new("tx0")).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(sender.send([]).unwrap(), SendOutcome { accepted: 0, blocked: None });
    }
}

pub fn sender_receives_nothing() {
    let (mut ring, mut sender) = connected();
    // Frames towards the sender's interface: its socket must not collect them in a buffer.
    let mut back = Sender::open(&SenderConfig::new("rx0")).unwrap();
    let frames: Vec<_> = (0..100).map(|number| numbered(number, 60)).collect();
    send_all(&mut back, &frames);
    send_all(&mut sender, &frames);
    let sockets = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap();
    let buffered: Vec<u64> = sockets
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(6).unwrap().parse().unwrap())
        .collect();
    assert_eq!(buffered, [0, 0, 0], "bytes in receive buffers: {sockets}");
    assert_eq!(stop_and_collect(&mut ring, 100).len(), 100);
}

/// Lets at most a megabyte a second out of `tx0`, and holds back up to `limit` bytes.
fn slow_down(limit: &str) -> Result<(), String> {
    let shaping = ["qdisc", "add", "dev", "tx0", "root", "tbf", "rate", "8mbit", "burst", "3000"];
    let output = Command::new("tc").args(shaping).args(["limit", limit]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("tc: {error}")),
    }
}

/// Sends until the kernel takes no more; gives how many it took and why it stopped.
fn send_until_blocked(sender: &mut Sender, frames: &[Vec<u8>]) -> (usize, Option<Blocked>) {
    let mut accepted = 0;
    loop {
        let outcome = sender.send(frames[accepted..].iter().map(Vec::as_slice)).unwrap();
        accepted += outcome.accepted;
        if outcome.blocked.is_some() || accepted == frames.len() {
            return (accepted, outcome.blocked);
        }
    }
}

pub fn back_pressure_is_told_and_nothing_is_lost() -> Outcome {
    // Bytes that the queue holds, the socket's buffer, frames and their length, what is expected.
    let cases = [
        ("1000000", 64 << 10, 300, 1000, Blocked::SocketFull),
        ("1000000", 8 << 20, 1500, 60, Blocked::SocketFull),
        ("20000", 8 << 20, 300, 1000, Blocked::DeviceFull),
    ];
    for method in METHODS {
        for (limit, socket_buffer_bytes, count, bytes, expected) in cases {
            if method == Method::Messages && count == 1500 {
                // Only the transmit ring has slots that run out.
                continue;
            }
            plug_cable();
            if let Err(reason) = slow_down(limit) {
                return skip(reason);
            }
            let mut ring = PacketRing::open(&quick_ring()).unwrap();
            ring.start(&[]).unwrap();
            let config = SenderConfig {
                method,
                qdisc_bypass: false,
                socket_buffer_bytes,
                ..SenderConfig::new("tx0")
            };
            let mut sender = Sender::open(&config).unwrap();
            let frames: Vec<_> = (0..count).map(|number| numbered(number, bytes)).collect();
            let (accepted, blocked) = send_until_blocked(&mut sender, &frames);
            assert_eq!(blocked, Some(expected), "{method:?} {limit} {accepted}");
            assert!(!sender.drain(Duration::ZERO).unwrap(), "frames wait in the queue");
            assert!(sender.wait(PATIENCE).unwrap());
            let received = stop_and_collect(&mut ring, accepted as u64);
            assert!(sender.drain(PATIENCE).unwrap());
            assert_eq!(transmitted("tx0"), accepted as u64);
            assert_frames(&received, &frames[..accepted]);
            // And on it goes.
            ring.start(&[]).unwrap();
            let (more, _) = send_until_blocked(&mut sender, &frames[accepted..][..10]);
            assert_eq!(more, 10);
            let rest = stop_and_collect(&mut ring, (accepted + more) as u64);
            assert_frames(&rest, &frames[accepted..accepted + more]);
            assert_exact(&mut ring);
            Links::current().unwrap().delete("tx0").unwrap();
        }
    }
    Ok(())
}
