//! Frames that leave by AF_XDP, received by a packet socket.

use std::time::Instant;

use sys::link::Links;
use sys::namespace::Namespace;
use sys::packet::{PacketRing, RingConfig};
use sys::veth::{VethConfig, VethPair};
use sys::xsk::{SocketConfig, Stopped, Transmitter, Umem};
use sys::{Kind, napi};
use testing::Outcome;

use super::support::*;
use crate::packet::support::{
    PATIENCE, assert_exact, assert_frames, await_frames, numbered, plug_cable, quick_ring,
    stop_and_collect, transmitted,
};

fn transmitter(config: &SocketConfig) -> Transmitter {
    open(&umem(), config).transmitter.take().unwrap()
}

/// Sends all frames; gives how often the device was full.
fn send_all(transmitter: &mut Transmitter, frames: &[Vec<u8>]) -> u32 {
    let begun = Instant::now();
    let (mut rest, mut full) = (frames, 0);
    while !rest.is_empty() {
        let (sent, stopped) = transmitter.send(rest.iter().take(64).map(Vec::as_slice)).unwrap();
        rest = &rest[sent..];
        assert_ne!(stopped, Some(Stopped::Down));
        full += u32::from(stopped == Some(Stopped::DeviceFull));
        assert!(begun.elapsed() < PATIENCE, "{} frames unsent", rest.len());
        if stopped.is_some() {
            transmitter.wait(PATIENCE);
        }
    }
    assert!(transmitter.drain(PATIENCE).unwrap());
    full
}

pub fn every_frame_arrives_once_in_order() {
    plug_cable();
    let before = transmitted("tx0");
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    let mut transmitter = transmitter(&sending("tx0"));
    let frames: Vec<_> = (0..5000).map(|n| numbered(n, 22 + (n as usize * 7) % 1493)).collect();
    let mut received = Vec::new();
    for part in frames.chunks(250) {
        send_all(&mut transmitter, part);
        let expected = transmitted("tx0") - before;
        received.extend(await_frames(&mut ring, expected));
    }
    received.extend(stop_and_collect(&mut ring, 5000));
    assert_frames(&received, &frames);
    assert_exact(&mut ring);
    assert_eq!(transmitted("tx0") - before, 5000);
}

/// The ring of a veth's NAPI holds 256 frames, and its thread is slower than the sender.
pub fn frames_that_a_full_device_refuses_are_sent_again() -> Outcome {
    let here = Namespace::current()?;
    let config = VethConfig { gro: true, ..VethConfig::default() };
    VethPair::create(&here, "tx0", &here, "rx0", &config)?;
    napi::set_threaded(&here, "rx0", true)?;
    let before = Links::current()?.named("tx0")?.statistics;
    let mut ring = PacketRing::open(&RingConfig { block_count: 256, ..quick_ring() })?;
    ring.start(&[])?;
    let mut transmitter = transmitter(&SocketConfig { tx_entries: 512, ..sending("tx0") });
    let mut full = 0;
    let mut received = Vec::new();
    for part in 0..20 {
        let frames: Vec<_> = (part * 2000..(part + 1) * 2000).map(|n| numbered(n, 60)).collect();
        full += send_all(&mut transmitter, &frames);
        let arrived = await_frames(&mut ring, (part + 1) * 2000);
        received.extend(arrived.into_iter().map(|(_, frame)| frame));
    }
    let after = Links::current()?.named("tx0")?.statistics;
    assert_eq!(after.tx_packets - before.tx_packets, 40_000);
    assert_eq!(after.tx_dropped - before.tx_dropped, full.into());
    received.extend(stop_and_collect(&mut ring, 40_000).into_iter().map(|(_, frame)| frame));
    assert_eq!(ring.statistics()?.drops, 0);
    let expected: Vec<_> = (0..40_000).map(|n| numbered(n, 60)).collect();
    assert!(received == expected, "each frame once, in order");
    if full == 0 {
        return testing::skip("the device was never full");
    }
    Ok(())
}

pub fn jumbo_frames_leave_in_pieces() -> Outcome {
    let here = Namespace::current()?;
    let config = VethConfig { mtu_bytes: 9000, ..VethConfig::default() };
    VethPair::create(&here, "tx0", &here, "rx0", &config)?;
    let mut ring = PacketRing::open(&quick_ring())?;
    ring.start(&[])?;
    let in_pieces = SocketConfig { multi_buffer: true, ..sending("tx0") };
    let mut socket = open(&Umem::new(CHUNKS, 2048)?, &in_pieces);
    let mut transmitter = socket.transmitter.take().unwrap();
    let frames: Vec<_> =
        [60, 2048, 2049, 4096, 9014, 61].iter().zip(0..).map(|(l, n)| numbered(n, *l)).collect();
    send_all(&mut transmitter, &frames);
    assert_frames(&stop_and_collect(&mut ring, 6), &frames);
    Ok(())
}

pub fn a_frame_too_long_is_named() {
    plug_cable();
    let mut transmitter = transmitter(&sending("tx0"));
    assert_eq!(transmitter.frame_bytes_max(), 2048);
    let frames = [numbered(0, 60), numbered(1, 2049)];
    let slices = || frames.iter().map(Vec::as_slice);
    assert_eq!(transmitter.send(slices()).unwrap(), (1, None));
    let error = transmitter.send(slices().skip(1)).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("2049 bytes"), "{error}");
}

pub fn sender_says_that_the_interface_is_down() {
    plug_cable();
    let mut transmitter = transmitter(&sending("tx0"));
    let frame = numbered(0, 60);
    let before = transmitted("tx0");
    Links::current().unwrap().set_up("tx0", false).unwrap();
    assert_eq!(transmitter.send([frame.as_slice()]).unwrap(), (1, Some(Stopped::Down)));
    assert_eq!((transmitter.waiting_packets(), transmitter.is_idle()), (1, false));
    Links::current().unwrap().set_up("tx0", true).unwrap();
    assert!(transmitter.drain(PATIENCE).unwrap(), "it goes on by itself");
    assert_eq!(transmitted("tx0") - before, 1);
}
