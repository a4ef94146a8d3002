//! What arrives is what was sent.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use sys::packet::{
    BpfInstruction, Fanout, FanoutMode, FrameFlags, PacketRing, RingConfig, Sender, SenderConfig,
    TimeSource,
};

use super::support::*;

pub fn every_frame_sent_is_counted_and_delivered() {
    let (mut ring, mut sender) = connected();
    let before = transmitted("tx0");
    let mut expected = 0;
    let mut received = Vec::new();
    for _ in 0..40 {
        let frames: Vec<_> = (expected..expected + 1000)
            .map(|number| numbered(number, 60 + (number % 1455) as usize))
            .collect();
        send_all(&mut sender, &frames);
        expected += 1000;
        collect_ready(&mut ring, &mut received);
    }
    received.extend(stop_and_collect(&mut ring, expected));
    assert_eq!(transmitted("tx0") - before, expected);
    assert_eq!(ring.delivered(), expected);
    assert_exact(&mut ring);
    assert_eq!(ring.statistics().unwrap().drops, 0);
    for (number, (descriptor, bytes)) in (0..).zip(&received) {
        assert_eq!(*bytes, numbered(number, 60 + (number % 1455) as usize));
        assert_eq!(descriptor.wire_length, descriptor.length);
        assert_eq!(descriptor.flags - FrameFlags::CHECKSUM_VALID, FrameFlags::empty());
    }
}

pub fn frames_before_start_are_not_seen() {
    plug_cable();
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frames: Vec<_> = (0..3000).map(|number| numbered(number, 60)).collect();
    send_all(&mut sender, &frames[..1000]);
    ring.start(&[]).unwrap();
    send_all(&mut sender, &frames[1000..2000]);
    let received = stop_and_collect(&mut ring, 1000);
    send_all(&mut sender, &frames[2000..]);
    assert!(ring.is_drained());
    assert!(ring.next_block().is_none());
    assert_frames(&received, &frames[1000..2000]);
    assert_exact(&mut ring);
    // And once more: a stopped ring can be started again.
    ring.start(&[]).unwrap();
    send_all(&mut sender, &frames[..10]);
    assert_frames(&stop_and_collect(&mut ring, 1010), &frames[..10]);
    assert_eq!(ring.delivered(), 1010);
    assert_exact(&mut ring);
}

/// A numbered frame with tags between its addresses and its type.
fn tagged(number: u64, tags: &[[u8; 4]]) -> Vec<u8> {
    let plain = numbered(number, 60);
    [&plain[..12], tags.concat().as_slice(), &plain[12..]].concat()
}

pub fn tags_arrive_byte_for_byte() {
    let (mut ring, mut sender) = connected();
    const C_TAG: [u8; 4] = [0x81, 0x00, 0x20, 0x05];
    const TCI_ZERO: [u8; 4] = [0x81, 0x00, 0x00, 0x00];
    const TCI_ONES: [u8; 4] = [0x81, 0x00, 0xff, 0xff];
    const S_TAG: [u8; 4] = [0x88, 0xa8, 0x60, 0x64];
    const S_TAG_ZERO: [u8; 4] = [0x88, 0xa8, 0x00, 0x00];
    const OLD_QINQ: [u8; 4] = [0x91, 0x00, 0x00, 0x07];
    let frames = [
        tagged(0, &[]),
        tagged(1, &[C_TAG]),
        tagged(2, &[TCI_ZERO]),
        tagged(3, &[TCI_ONES]),
        tagged(4, &[S_TAG, C_TAG]),
        tagged(5, &[S_TAG_ZERO, TCI_ZERO]),
        tagged(6, &[C_TAG, C_TAG]),
        tagged(7, &[C_TAG, C_TAG, S_TAG, TCI_ZERO]),
        tagged(8, &[OLD_QINQ, C_TAG]),
    ];
    send_all(&mut sender, &frames);
    let received = stop_and_collect(&mut ring, frames.len() as u64);
    let restored: Vec<_> = received
        .iter()
        .map(|(descriptor, _)| descriptor.flags.contains(FrameFlags::VLAN_RESTORED))
        .collect();
    // The kernel does not know 0x9100 as a tag and leaves it in.
    assert_eq!(restored, [false, true, true, true, true, true, true, true, false]);
    for (descriptor, bytes) in &received {
        assert_eq!(descriptor.wire_length as usize, bytes.len());
    }
    assert_frames(&received, &frames);
}

pub fn own_frames_are_ignored() {
    plug_cable();
    let fanout =
        Fanout { group: 7, mode: FanoutMode::LoadBalance, defragment: false, rollover: false };
    for fanout in [None, Some(fanout)] {
        let config = RingConfig { interface: "tx0".into(), fanout, ..quick_ring() };
        let mut ring = PacketRing::open(&config).unwrap();
        ring.start(&[]).unwrap();
        // With the queueing discipline, since only then frames pass the kernel's taps.
        let settings = SenderConfig { qdisc_bypass: false, ..SenderConfig::new("tx0") };
        let mut sender = Sender::open(&settings).unwrap();
        send_all(&mut sender, &[numbered(1, 60), numbered(2, 60)]);
        assert!(stop_and_collect(&mut ring, 0).is_empty(), "{fanout:?}");
        assert_eq!(ring.statistics().unwrap().packets, 0);
    }
}

pub fn filter_and_snap() {
    plug_cable();
    let mut ring = PacketRing::open(&RingConfig { snap_bytes: 64, ..quick_ring() }).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    // Only frames whose number ends in an odd byte: ldb [21]; jset #1; ret #max; ret #0
    let odd = [
        BpfInstruction { code: 0x30, jt: 0, jf: 0, k: 21 },
        BpfInstruction { code: 0x45, jt: 0, jf: 1, k: 1 },
        BpfInstruction::keep(262_144),
        BpfInstruction::keep(0),
    ];
    ring.start(&odd).unwrap();
    let mut frames: Vec<_> = (0..100).map(|number| numbered(number, 200)).collect();
    // A tag that the kernel strips must not make the frame longer than the snap length.
    frames[1].splice(12..12, [0x81, 0, 0, 3]);
    send_all(&mut sender, &frames[2..]);
    let received = stop_and_collect(&mut ring, 49);
    assert_eq!((ring.statistics().unwrap().packets, received.len()), (49, 49));
    for (index, (descriptor, bytes)) in received.iter().enumerate() {
        assert_eq!(bytes[..], frames[2 * index + 3][..64]);
        assert_eq!(descriptor.wire_length, 200);
        assert!(descriptor.flags.contains(FrameFlags::TRUNCATED));
    }
    ring.start(&[]).unwrap();
    send_all(&mut sender, &frames[1..2]);
    let received = stop_and_collect(&mut ring, 50);
    assert_eq!(received[0].1[..], frames[1][..64]);
    assert_eq!((received[0].0.length, received[0].0.wire_length), (64, 204));
    assert_exact(&mut ring);
}

/// A numbered UDP frame of one of 64 flows.
fn flow_frame(number: u64) -> Vec<u8> {
    let mut frame = numbered(number, 60);
    let number_bytes: [u8; 8] = frame[14..22].try_into().unwrap();
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let port = 1024 + (number % 64) as u16;
    frame[14..34]
        .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    frame[36..42].copy_from_slice(&[0, 9, 0, 26, 0, 0]);
    frame[42..50].copy_from_slice(&number_bytes);
    frame
}

fn flow_number(frame: &[u8]) -> u64 {
    u64::from_be_bytes(frame[42..50].try_into().unwrap())
}

pub fn fanout_gives_each_frame_to_one_socket() {
    plug_cable();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frames: Vec<_> = (0..4096).map(flow_frame).collect();
    let modes = [
        FanoutMode::Hash,
        FanoutMode::LoadBalance,
        FanoutMode::Cpu,
        FanoutMode::Rollover,
        FanoutMode::Random,
        FanoutMode::QueueMapping,
    ];
    for (group, mode) in (1..).zip(modes) {
        let rollover = mode != FanoutMode::Rollover;
        let fanout = Some(Fanout { group, mode, defragment: true, rollover });
        let config = RingConfig { fanout, ..quick_ring() };
        let mut rings = [PacketRing::open(&config).unwrap(), PacketRing::open(&config).unwrap()];
        rings.iter_mut().for_each(|ring| ring.start(&[]).unwrap());
        send_all(&mut sender, &frames);
        await_sum(&mut rings, frames.len() as u64);
        let shares = rings.each_mut().map(|ring| stop_and_collect(ring, 0));
        rings.iter_mut().for_each(assert_exact);
        let sets = shares
            .each_ref()
            .map(|share| share.iter().map(|(_, frame)| flow_number(frame)).collect::<HashSet<_>>());
        assert_eq!(shares[0].len() + shares[1].len(), frames.len(), "{mode:?}");
        assert_eq!(sets[0].len() + sets[1].len(), frames.len(), "{mode:?}");
        assert!(sets[0].is_disjoint(&sets[1]), "{mode:?}");
        match mode {
            FanoutMode::LoadBalance => assert_eq!(sets[0].len(), sets[1].len()),
            FanoutMode::Hash => {
                let flows = sets.map(|set| set.iter().map(|n| n % 64).collect::<HashSet<_>>());
                assert!(flows[0].is_disjoint(&flows[1]), "flows stay together");
                assert!(!flows[0].is_empty() && !flows[1].is_empty());
            }
            _ => {}
        }
    }
}

pub fn time_is_between_before_and_after() {
    let (mut ring, mut sender) = connected();
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let before = now();
    let frames: Vec<_> = (0..500).map(|number| numbered(number, 60)).collect();
    send_all(&mut sender, &frames);
    std::thread::sleep(Duration::from_millis(1));
    let received = stop_and_collect(&mut ring, 500);
    let after = now();
    assert_eq!(received.len(), 500);
    let mut last = 0;
    for (descriptor, _) in &received {
        let time = u128::from(descriptor.time_ns);
        assert!((before..=after).contains(&time), "{before} <= {time} <= {after}");
        assert!(descriptor.time_ns >= last);
        last = descriptor.time_ns;
        assert_ne!(descriptor.time_source, TimeSource::Hardware);
    }
}

pub fn flow_hash_follows_the_flow() {
    plug_cable();
    let mut ring = PacketRing::open(&RingConfig { flow_hash: true, ..quick_ring() }).unwrap();
    ring.start(&[]).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frames: Vec<_> = (0..640).map(flow_frame).collect();
    send_all(&mut sender, &frames);
    let received = stop_and_collect(&mut ring, 640);
    let pairs: HashSet<_> = received
        .iter()
        .map(|(descriptor, bytes)| (flow_number(bytes) % 64, descriptor.flow_hash))
        .collect();
    assert_eq!(pairs.len(), 64, "one hash for each flow");
    assert!(pairs.iter().all(|&(_, hash)| hash != 0));
}
