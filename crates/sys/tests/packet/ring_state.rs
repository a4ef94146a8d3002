//! Starting, stopping, overload, and interfaces that come and go.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use sys::Kind;
use sys::link::Links;
use sys::namespace::{Namespace, Sysfs};
use sys::packet::{
    Descriptor, Event, Fanout, FanoutMode, FrameFlags, PacketRing, RingConfig, Sender, SenderConfig,
};

use super::support::*;

/// Argument with which the test program becomes [`hold_a_ring`].
pub const HOLD_A_RING: &str = "--hold-a-ring";
/// Of linux/if.h.
const IFF_PROMISC: u32 = 0x100;

/// Runs `body` while another thread sends numbered frames as fast as it can. Gives what `body`
/// gives and the number of frames that were sent.
fn under_traffic<R>(body: impl FnOnce() -> R) -> (R, u64) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
            let mut sent = 0;
            while !done.load(Ordering::Relaxed) {
                let frames: Vec<_> = (sent..sent + 64).map(|number| numbered(number, 60)).collect();
                sent += sender.send(frames.iter().map(Vec::as_slice)).unwrap().accepted as u64;
            }
            assert!(sender.drain(PATIENCE).unwrap());
            sent
        });
        let result = body();
        done.store(true, Ordering::Relaxed);
        (result, traffic.join().unwrap())
    })
}

fn read_for(ring: &mut PacketRing, time: Duration) -> Vec<u64> {
    let end = Instant::now() + time;
    let mut numbers = Vec::new();
    while Instant::now() < end {
        if ring.wait(Duration::from_millis(2)).unwrap() == Event::Ready {
            while let Some(block) = ring.next_block() {
                numbers.extend(block.frames().map(|(_, frame)| number_of(frame)));
            }
        }
    }
    numbers
}

pub fn stop_under_traffic_is_exact() {
    plug_cable();
    let config = RingConfig { block_count: 256, ..quick_ring() };
    let (total, sent) = under_traffic(|| {
        let mut total = 0;
        for round in 0..30 {
            let mut ring = PacketRing::open(&config).unwrap();
            ring.start(&[]).unwrap();
            let mut numbers = read_for(&mut ring, Duration::from_millis(5 + round));
            ring.stop().unwrap();
            let counted = ring.statistics().unwrap();
            let rest = collect_rest(&mut ring);
            numbers.extend(rest.iter().map(|(_, frame)| number_of(frame)));
            // The counters were final when `stop` returned.
            assert_eq!(ring.statistics().unwrap(), counted);
            assert_eq!(counted.packets - counted.drops, ring.delivered());
            assert_eq!(ring.delivered(), numbers.len() as u64);
            if counted.drops == 0 {
                let first = numbers.first().copied().unwrap_or(0);
                assert!(numbers.iter().copied().eq(first..first + numbers.len() as u64));
            }
            total += numbers.len() as u64;
        }
        total
    });
    assert!(total > 0 && total <= sent, "{total} of {sent}");
}

pub fn overload_is_counted_exactly() {
    plug_cable();
    let config = RingConfig { block_bytes: 4096, block_count: 4, ..quick_ring() };
    let mut ring = PacketRing::open(&config).unwrap();
    ring.start(&[]).unwrap();
    let ((), sent) = under_traffic(|| {
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(2));
            let block = ring.next_block();
            let losing = |flags: FrameFlags| flags.contains(FrameFlags::LOSING);
            if let Some(block) = &block {
                let all_alike = block.descriptors().iter().all(|d| losing(d.flags))
                    || !block.descriptors().iter().any(|d| losing(d.flags));
                assert!(all_alike);
            }
        }
    });
    let rest = stop_and_collect(&mut ring, sent);
    let counted = ring.statistics().unwrap();
    assert_eq!(counted.packets, sent);
    assert_eq!(counted.packets, ring.delivered() + counted.drops);
    assert!(counted.drops > 0 && counted.freezes > 0, "{counted:?}");
    assert!(rest.len() as u64 <= ring.delivered());
    assert_eq!(ring.malformed(), 0);
}

pub fn blocks_are_held_and_outlive_the_ring() {
    plug_cable();
    let config = RingConfig { block_bytes: 4096, block_count: 4, ..quick_ring() };
    let mut ring = PacketRing::open(&config).unwrap();
    ring.start(&[]).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frames: Vec<_> = (0..500).map(|number| numbered(number, 60)).collect();
    send_all(&mut sender, &frames);
    await_sum(std::slice::from_mut(&mut ring), 500);
    let mut held = Vec::new();
    while let Some(block) = ring.next_block() {
        held.push(block);
    }
    assert_eq!(held.len(), 4, "each block once");
    assert!(held.windows(2).all(|pair| pair[1].sequence() == pair[0].sequence() + 1));
    // Out of order: the kernel waits for the first one all the same.
    let first = held.remove(0);
    drop(held.pop());
    send_all(&mut sender, &frames[..10]);
    assert!(ring.next_block().is_none());
    let kept: Vec<_> = first.frames().map(|(_, frame)| frame.to_vec()).collect();
    assert_eq!(kept, frames[..kept.len()]);
    assert!(!kept.is_empty());
    ring.stop().unwrap();
    assert!(ring.is_drained(), "what is left is with the reader");
    assert_exact(&mut ring);
    drop(ring);
    let elsewhere = std::thread::spawn(move || {
        first.frames().map(|(_, frame)| frame.to_vec()).collect::<Vec<_>>()
    });
    assert_eq!(elsewhere.join().unwrap(), kept);
    drop(held);
}

pub fn waiting_does_not_spin_while_a_block_is_held() {
    let (mut ring, mut sender) = connected();
    send_all(&mut sender, &[numbered(0, 60)]);
    assert_eq!(ring.wait(PATIENCE).unwrap(), Event::Ready);
    let held = ring.next_block().unwrap();
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = used();
    assert_eq!(ring.wait(Duration::from_millis(200)).unwrap(), Event::TimedOut);
    let after = used();
    let nanoseconds =
        (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
    assert!(nanoseconds < 100_000_000, "{nanoseconds} ns of CPU time in 200 ms of waiting");
    send_all(&mut sender, &[numbered(1, 60)]);
    assert_eq!(ring.wait(PATIENCE).unwrap(), Event::Ready);
    let next = ring.next_block().unwrap();
    assert_eq!(number_of(next.frames().next().unwrap().1), 1);
    assert_eq!(number_of(held.frames().next().unwrap().1), 0);
}

/// Takes blocks until the ring reports that its interface is down.
fn collect_until_down(ring: &mut PacketRing, frames: &mut Vec<(Descriptor, Vec<u8>)>) {
    let deadline = Instant::now() + PATIENCE;
    while ring.wait(Duration::from_millis(50)).unwrap() != Event::Down {
        assert!(Instant::now() < deadline, "no event");
        collect_ready(ring, frames);
    }
}

pub fn ring_goes_on_after_down_and_up() {
    let (mut ring, mut sender) = connected();
    let mut links = Links::current().unwrap();
    send_all(&mut sender, &[numbered(0, 60)]);
    let mut frames = Vec::new();
    for number in 1..4 {
        links.set_up("rx0", false).unwrap();
        collect_until_down(&mut ring, &mut frames);
        // Once, not for ever.
        assert_ne!(ring.wait(Duration::from_millis(5)).unwrap(), Event::Down);
        assert_eq!(ring.reopen().unwrap_err().kind(), Kind::Down);
        links.set_up("rx0", true).unwrap();
        ring.reopen().unwrap();
        send_all(&mut sender, &[numbered(number, 60)]);
    }
    frames.extend(stop_and_collect(&mut ring, 4));
    let numbers: Vec<_> = frames.iter().map(|(_, frame)| number_of(frame)).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert_exact(&mut ring);
}

pub fn ring_goes_on_after_the_interface_was_remade() {
    plug_cable();
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    send_all(&mut sender, &[numbered(0, 60), numbered(1, 60)]);
    Links::current().unwrap().delete("rx0").unwrap();
    assert_eq!(ring.reopen().unwrap_err().kind(), Kind::NotFound);
    plug_cable();
    // Blocks of before need not be taken first.
    ring.reopen().unwrap();
    ring.reopen().unwrap();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    send_all(&mut sender, &[numbered(2, 60)]);
    let frames = stop_and_collect(&mut ring, 3);
    let numbers: Vec<_> = frames.iter().map(|(_, frame)| number_of(frame)).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_exact(&mut ring);
}

pub fn fanout_goes_on_after_the_interface_was_remade() {
    plug_cable();
    let fanout = Some(Fanout {
        group: 3,
        mode: FanoutMode::LoadBalance,
        defragment: false,
        rollover: false,
    });
    let config = RingConfig { fanout, ..quick_ring() };
    let mut rings = [PacketRing::open(&config).unwrap(), PacketRing::open(&config).unwrap()];
    rings.iter_mut().for_each(|ring| ring.start(&[]).unwrap());
    let frames: Vec<_> = (0..200).map(|number| numbered(number, 60)).collect();
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    send_all(&mut sender, &frames[..100]);
    await_sum(&mut rings, 100);
    Links::current().unwrap().delete("rx0").unwrap();
    plug_cable();
    let mut received = Vec::new();
    for ring in &mut rings {
        assert_eq!(ring.reopen().unwrap_err().kind(), Kind::Busy, "frames are left");
        let deadline = Instant::now() + PATIENCE;
        while ring.delivered() < 50 {
            assert!(Instant::now() < deadline, "{} frames of 50", ring.delivered());
            ring.wait(Duration::from_millis(5)).unwrap();
            collect_ready(ring, &mut received);
        }
    }
    assert_eq!(received.len(), 100);
    let [first, second] = &mut rings;
    // The kernel tells a group's interface by its address in memory (`fanout_add` of
    // net/packet/af_packet.c): where the new interface happens to have the old one's, the old group,
    // in which the other still is, takes the ring at once.
    let joined = first.reopen();
    second.reopen().unwrap();
    if let Err(error) = joined {
        assert_eq!(error.kind(), Kind::Busy, "the other is in the old group");
        first.reopen().unwrap();
    }
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    send_all(&mut sender, &frames[100..]);
    await_sum(&mut rings, 200);
    for ring in &mut rings {
        received.extend(stop_and_collect(ring, 100));
        assert_eq!(ring.delivered(), 100);
        assert_exact(ring);
    }
    received.sort_by_key(|(_, frame)| number_of(frame));
    assert_frames(&received, &frames);
}

/// Opens a ring, says so, and stays until killed; run as a process of its own.
pub fn hold_a_ring() -> ! {
    let _ring = PacketRing::open(&quick_ring()).unwrap();
    println!("open");
    loop {
        std::thread::park();
    }
}

pub fn promiscuity_ends_with_the_ring() {
    plug_cable();
    let network = Namespace::current().unwrap();
    let promiscuous = || {
        let flags = Sysfs::of(&network).unwrap().read("class/net/rx0/flags").unwrap();
        let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap();
        flags & IFF_PROMISC != 0
    };
    assert!(!promiscuous());
    let ring = PacketRing::open(&quick_ring()).unwrap();
    assert!(promiscuous());
    drop(ring);
    assert!(!promiscuous());
    let ring = PacketRing::open(&RingConfig { promiscuous: false, ..quick_ring() }).unwrap();
    assert!(!promiscuous());
    drop(ring);

    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(HOLD_A_RING)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    assert!(promiscuous());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!promiscuous(), "after SIGKILL");
}

pub fn opening_names_what_is_wrong() {
    let missing = PacketRing::open(&RingConfig::new("nothere0")).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    assert!(missing.to_string().contains("nothere0"), "{missing}");
    let long = PacketRing::open(&RingConfig::new("a-name-longer-than-fifteen")).unwrap_err();
    assert_eq!(long.kind(), Kind::NotFound);

    plug_cable();
    Links::current().unwrap().set_up("rx0", false).unwrap();
    let down = PacketRing::open(&quick_ring()).unwrap_err();
    assert_eq!(down.kind(), Kind::Down);
    assert!(down.to_string().contains("ip link set rx0 up"), "{down}");
    Links::current().unwrap().set_up("rx0", true).unwrap();

    for config in [
        RingConfig { block_bytes: 5000, ..quick_ring() },
        RingConfig { block_count: 1, ..quick_ring() },
        RingConfig { retire_timeout_ms: 0, ..quick_ring() },
        RingConfig { snap_bytes: 0, ..quick_ring() },
        RingConfig { block_bytes: 1 << 30, block_count: 1 << 20, ..quick_ring() },
    ] {
        let error = PacketRing::open(&config).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
    }
    let hardware = PacketRing::open(&RingConfig { hardware_time: true, ..quick_ring() });
    assert_eq!(hardware.unwrap_err().kind(), Kind::Unsupported);

    let fanout = |mode| Fanout { group: 1, mode, defragment: false, rollover: false };
    let member = |mode| RingConfig { fanout: Some(fanout(mode)), ..quick_ring() };
    let _first = PacketRing::open(&member(FanoutMode::Hash)).unwrap();
    let error = PacketRing::open(&member(FanoutMode::Cpu)).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("group 1"), "{error}");

    // Capabilities belong to a thread; this one ends with the test.
    let mut own = capabilities(None).unwrap();
    own.effective -= CapabilitySet::NET_RAW;
    set_capabilities(None, CapabilitySets { ..own }).unwrap();
    for error in [
        PacketRing::open(&quick_ring()).unwrap_err(),
        Sender::open(&SenderConfig::new("tx0")).unwrap_err(),
    ] {
        assert_eq!(error.kind(), Kind::Permission);
        assert!(error.to_string().contains("setcap"), "{error}");
    }
}
