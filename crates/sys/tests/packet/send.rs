//! What a sender accepts, refuses and reports.

use std::time::Duration;

use sys::link::Links;
use sys::packet::{Blocked, Method, PacketRing, SendOutcome, Sender, SenderConfig};
use sys::{Error, Kind};

use super::support::*;

fn refused(sender: &mut Sender, frames: &[Vec<u8>]) -> Error {
    sender.send(frames.iter().map(Vec::as_slice)).unwrap_err()
}

pub fn frames_longer_than_the_mtu_are_refused_by_name() {
    let (mut ring, mut sender) = connected();
    assert_ne!(sender.method(), Method::Auto);
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
    // The MTU sinks while the sender is open: the kernel refuses, and the message is as clear.
    Links::current().unwrap().set_mtu("tx0", 1000).unwrap();
    let text = refused(&mut sender, &[numbered(4, 1514)]).to_string();
    assert!(text.contains("MTU is now 1000"), "{text}");
    let text = refused(&mut sender, &[numbered(5, 1015)]).to_string();
    assert!(text.contains("MTU is 1000"), "{text}");
    // Of the refused batches nothing was sent.
    assert_frames(&stop_and_collect(&mut ring, 2), &longest);
}

pub fn jumbo_frames_pass() {
    plug_cable();
    let mut links = Links::current().unwrap();
    links.set_mtu("tx0", 9000).unwrap();
    links.set_mtu("rx0", 9000).unwrap();
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frames: Vec<_> =
        (0..200).map(|number| numbered(number, 9014 - (number as usize % 7))).collect();
    for part in frames.chunks(20) {
        send_all(&mut sender, part);
    }
    assert_frames(&stop_and_collect(&mut ring, 200), &frames);
    assert_exact(&mut ring);
}

pub fn sender_says_that_the_interface_is_down() {
    let (_ring, mut sender) = connected();
    let mut links = Links::current().unwrap();
    links.set_up("tx0", false).unwrap();
    let frame = numbered(0, 60);
    let down = SendOutcome { accepted: 0, blocked: Some(Blocked::Down) };
    assert_eq!(sender.send([frame.as_slice()]).unwrap(), down);
    assert_eq!(Sender::open(&SenderConfig::new("tx0")).unwrap_err().kind(), Kind::Down);
    links.set_up("tx0", true).unwrap();
    let sent = SendOutcome { accepted: 1, blocked: None };
    assert_eq!(sender.send([frame.as_slice()]).unwrap(), sent);
    links.delete("tx0").unwrap();
    assert_eq!(sender.send([frame.as_slice()]).unwrap(), down);
    assert_eq!(Sender::open(&SenderConfig::new("tx0")).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(sender.send([]).unwrap(), SendOutcome { accepted: 0, blocked: None });
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

pub fn full_device_is_told_and_nothing_is_lost() {
    plug_cable();
    // A socket buffer for a few frames only, and a queue that holds them back: a token bucket.
    let shaped = std::process::Command::new("tc")
        .args(["qdisc", "add", "dev", "tx0", "root", "tbf"])
        .args(["rate", "8mbit", "burst", "3000", "limit", "1000000"])
        .output();
    if !shaped.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED full_device_is_told_and_nothing_is_lost: no tc with tbf: {shaped:?}");
        return;
    }
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    let mut sender = Sender::open(&SenderConfig {
        qdisc_bypass: false,
        socket_buffer_bytes: 64 << 10,
        ..SenderConfig::new("tx0")
    })
    .unwrap();
    let frames: Vec<_> = (0..300).map(|number| numbered(number, 1000)).collect();
    let mut accepted = 0;
    let mut blocked = None;
    while accepted < frames.len() && blocked.is_none() {
        let rest = frames[accepted..].iter().map(Vec::as_slice);
        let outcome = sender.send(rest).unwrap();
        accepted += outcome.accepted;
        blocked = outcome.blocked;
    }
    assert_eq!(blocked, Some(Blocked::SocketFull));
    assert!(!sender.drain(Duration::ZERO).unwrap(), "frames wait in the queue");
    assert!(sender.wait(PATIENCE).unwrap());
    assert!(sender.drain(PATIENCE).unwrap());
    assert_eq!(transmitted("tx0"), accepted as u64);
    assert_frames(&stop_and_collect(&mut ring, accepted as u64), &frames[..accepted]);
}
