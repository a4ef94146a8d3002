//! What the tests share: a veth pair, numbered frames, collecting what a ring delivers.

use std::time::{Duration, Instant};

use sys::link::Links;
use sys::namespace::Namespace;
use sys::packet::{Blocked, Descriptor, Event, PacketRing, RingConfig, Sender, SenderConfig};
use sys::veth::{VethConfig, VethPair};

/// Long enough for any machine; no test waits for it unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Makes `tx0` and `rx0`, the two ends of a cable, both up.
pub fn plug_cable() {
    let here = Namespace::current().unwrap();
    VethPair::create(&here, "tx0", &here, "rx0", &VethConfig::default()).unwrap();
}

/// Frames that the interface says it has sent.
pub fn transmitted(name: &str) -> u64 {
    Links::current().unwrap().named(name).unwrap().statistics.tx_packets
}

/// A small ring that hands over quickly, on `rx0`.
pub fn quick_ring() -> RingConfig {
    RingConfig {
        block_bytes: 64 << 10,
        block_count: 64,
        retire_timeout_ms: 1,
        ..RingConfig::new("rx0")
    }
}

/// A started ring on `rx0` and a sender on `tx0`.
pub fn connected() -> (PacketRing, Sender) {
    plug_cable();
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    (ring, Sender::open(&SenderConfig::new("tx0")).unwrap())
}

/// A frame of `bytes` bytes of an experimental protocol with a number in it.
pub fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; bytes];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

/// The number in a frame made by [`numbered`].
pub fn number_of(frame: &[u8]) -> u64 {
    u64::from_be_bytes(frame[14..22].try_into().unwrap())
}

/// Sends all frames, waiting where the kernel has no room, and then for the device.
pub fn send_all(sender: &mut Sender, frames: &[Vec<u8>]) {
    let deadline = Instant::now() + PATIENCE;
    let mut rest = frames;
    while !rest.is_empty() {
        let outcome = sender.send(rest.iter().map(Vec::as_slice)).unwrap();
        rest = &rest[outcome.accepted..];
        assert_ne!(outcome.blocked, Some(Blocked::Down));
        assert!(Instant::now() < deadline, "{} frames unsent", rest.len());
    }
    assert!(sender.drain(PATIENCE).unwrap());
}

/// Waits until `expected` frames have reached the ring since it was opened, stops it, and gives
/// all frames that come out of it until it is drained.
///
/// The waiting is for the kernel, which may leave received frames to a thread of its own.
pub fn stop_and_collect(ring: &mut PacketRing, expected: u64) -> Vec<(Descriptor, Vec<u8>)> {
    let mut frames = await_frames(ring, expected);
    ring.stop().unwrap();
    frames.extend(collect_rest(ring));
    frames
}

/// Takes blocks until `expected` frames have reached the ring since it was opened.
pub fn await_frames(ring: &mut PacketRing, expected: u64) -> Vec<(Descriptor, Vec<u8>)> {
    let deadline = Instant::now() + PATIENCE;
    let mut frames = Vec::new();
    loop {
        let seen = ring.statistics().unwrap().packets;
        collect_ready(ring, &mut frames);
        if seen >= expected {
            return frames;
        }
        assert!(Instant::now() < deadline, "{seen} of {expected} frames arrived");
        ring.wait(Duration::from_millis(1)).unwrap();
    }
}

/// Gives all frames that come out of a stopped ring.
pub fn collect_rest(ring: &mut PacketRing) -> Vec<(Descriptor, Vec<u8>)> {
    let deadline = Instant::now() + PATIENCE;
    let mut frames = Vec::new();
    while !ring.is_drained() {
        assert!(Instant::now() < deadline, "the ring does not drain");
        if ring.wait(Duration::from_millis(5)).unwrap() == Event::Ready {
            collect_ready(ring, &mut frames);
        }
    }
    frames
}

/// Waits until the rings together have seen `expected` frames. They hold as many.
pub fn await_sum(rings: &mut [PacketRing], expected: u64) {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = 0;
    while seen < expected {
        assert!(Instant::now() < deadline, "{seen} of {expected} frames arrived");
        std::thread::sleep(Duration::from_millis(1));
        seen = rings.iter_mut().map(|ring| ring.statistics().unwrap().packets).sum();
    }
}

/// Takes the blocks that are ready.
pub fn collect_ready(ring: &mut PacketRing, frames: &mut Vec<(Descriptor, Vec<u8>)>) {
    while let Some(block) = ring.next_block() {
        frames.extend(block.frames().map(|(descriptor, bytes)| (*descriptor, bytes.to_vec())));
    }
}

/// Fails, with the first difference, unless the frames are the expected ones in order.
#[track_caller]
pub fn assert_frames(received: &[(Descriptor, Vec<u8>)], expected: &[Vec<u8>]) {
    for (index, ((_, bytes), wanted)) in received.iter().zip(expected).enumerate() {
        assert!(bytes == wanted, "frame {index}: {bytes:02x?} instead of {wanted:02x?}");
    }
    assert_eq!(received.len(), expected.len(), "number of frames");
}

/// Checks the account of a drained ring.
pub fn assert_exact(ring: &mut PacketRing) {
    let counted = ring.statistics().unwrap();
    assert_eq!(ring.malformed(), 0);
    assert_eq!(counted.packets, ring.delivered() + counted.drops, "{counted:?}");
}
