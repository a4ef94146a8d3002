//! Each frame is delivered or charged to a named place, whatever happens.

use std::time::{Duration, Instant};

use port::packet::{PacketRx, RxOptions};
use port::xdp::XdpRx;
use port::{Batch, Event, FrameMeta, Reason, RxQueue, TxQueue};
use sys::link::Links;
use sys::veth::{VethConfig, VethPair};
use testing::Outcome;

use super::wire::*;

/// Nobody reads while a small ring overflows.
pub fn overload_is_charged_to_the_ring() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let mut rx = wire.rx(&RxOptions { ring_bytes: 2 << 20, ..options() });
    let mut tx = wire.tx();
    rx.start()?;
    let count = 10_000;
    send(&mut tx, 0, count);
    rx.stop()?;
    let numbers = drain(&mut rx);
    assert_eq!(numbers, (0..1_024).collect::<Vec<_>>(), "2 MiB hold 1024 frames");
    let received = rx.counters()?;
    assert_eq!(received.wire_packets, count.into());
    assert_eq!(received.delivered_packets, 1_024);
    assert_eq!(received.dropped.get(Reason::KernelRing), u64::from(count) - 1_024);
    assert_eq!(received.dropped.total(), u64::from(count) - 1_024);
    assert_eq!(received.device.unwrap().unexplained_packets, 0);
    assert_eq!(received.copied_packets, 0);
    let sent = tx.counters()?;
    assert_eq!(sent.accepted_packets, count.into());
    assert_eq!(sent.device.unwrap().packets_max, count.into());
    Ok(())
}

/// The kernel's program takes the times: waiting for long changes nothing about them.
pub fn times_are_those_of_the_arrival() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&options()), wire.tx());
    rx.start()?;
    let now_ns = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_nanos() as u64
    };
    let mut spans = Vec::new();
    for number in 0..300 {
        let before = now_ns();
        send(&mut tx, number, number + 1);
        spans.push((before, now_ns()));
    }
    std::thread::sleep(Duration::from_millis(50));
    let mut batch = Batch::default();
    let mut seen = 0;
    while rx.receive(&mut batch)? > 0 {
        for frame in batch.frames() {
            let (before, after) = spans[seen];
            let time_ns = frame.meta.time_ns;
            // Two clocks are read one after the other, and a third was read for the span.
            let slack_ns = 1_000_000;
            assert!(
                before <= time_ns + slack_ns && time_ns <= after + slack_ns,
                "frame {seen}: {time_ns} is not between {before} and {after}"
            );
            assert_eq!(frame.meta.time_source, Some(sys::packet::TimeSource::Software));
            seen += 1;
        }
    }
    assert_eq!(seen, 300);
    Ok(())
}

/// Another thread sends all the while.
pub fn stop_under_traffic_is_exact() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let tx = wire.tx();
    let (running, mut rx) = (std::sync::atomic::AtomicBool::new(true), wire.rx(&options()));
    std::thread::scope(|scope| -> Outcome {
        let sending = scope.spawn(|| {
            let (mut tx, mut next) = (tx, 0);
            while running.load(std::sync::atomic::Ordering::Relaxed) {
                send(&mut tx, next, next + 500);
                next += 500;
            }
            next
        });
        let outcome = (|| -> Outcome {
            std::thread::sleep(Duration::from_millis(20));
            rx.start()?;
            let mut batch = Batch::default();
            let (begun, mut numbers) = (Instant::now(), Vec::new());
            while numbers.len() < 20_000 {
                assert!(begun.elapsed() < PATIENCE, "{} frames arrive", numbers.len());
                if rx.receive(&mut batch)? == 0 {
                    rx.wait(Duration::from_millis(5))?;
                }
                numbers.extend(batch.frames().map(|frame| number_of(frame.data)));
            }
            rx.stop()?;
            let after = rx.counters()?;
            numbers.extend(drain(&mut rx));
            let counters = rx.counters()?;
            assert_eq!(after.wire_packets, counters.wire_packets, "nothing comes after the stop");
            assert_eq!(counters.delivered_packets, numbers.len() as u64);
            assert_eq!(
                counters.wire_packets,
                counters.delivered_packets + counters.dropped.total()
            );
            assert_eq!(counters.device.unwrap().unexplained_packets, 0, "{counters:?}");
            if counters.dropped.total() == 0 {
                let expected: Vec<u32> = (numbers[0]..).take(numbers.len()).collect();
                assert!(numbers == expected, "all frames between start and stop, in order");
            }
            Ok(())
        })();
        running.store(false, std::sync::atomic::Ordering::Relaxed);
        assert!(sending.join().unwrap() > 20_000);
        outcome
    })
}

/// Somebody raises the MTU while buffers are there for the old one.
pub fn frames_too_long_for_a_buffer_are_named() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let mut rx = wire.rx(&options());
    for (namespace, name) in [(&wire.here, "here"), (&wire.there, "there")] {
        Links::of(namespace)?.set_mtu(name, 3_000)?;
    }
    let mut tx = wire.tx();
    rx.start()?;
    let mut batch = Batch::new(3_014);
    for length in [60, 1_792, 1_793, 3_014, 61] {
        assert!(batch.push(&numbered(length, length as usize), FrameMeta::local(length as usize)));
    }
    assert_eq!(tx.transmit(&mut batch)?, 5);
    assert!(tx.flush(PATIENCE)?);
    rx.stop()?;
    assert_eq!(drain(&mut rx), [60, 1_792, 61]);
    let counters = rx.counters()?;
    assert_eq!((counters.wire_packets, counters.delivered_packets), (5, 3));
    assert_eq!(counters.dropped.get(Reason::TooLong), 2);
    assert_eq!(counters.device.unwrap().unexplained_packets, 0);
    Ok(())
}

pub fn tags_arrive_byte_for_byte() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&options()), wire.tx());
    rx.start()?;
    let mut tagged = numbered(7, 1_518);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0x20, 7]);
    let mut twice = numbered(8, 100);
    twice[12..20].copy_from_slice(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]);
    let mut batch = Batch::new(1_518);
    for frame in [&tagged, &twice] {
        assert!(batch.push(frame, FrameMeta::local(frame.len())));
    }
    assert_eq!(tx.transmit(&mut batch)?, 2);
    assert!(tx.flush(PATIENCE)?);
    rx.stop()?;
    let mut received = Vec::new();
    let mut batch = Batch::default();
    while rx.receive(&mut batch)? > 0 {
        received.extend(batch.frames().map(|frame| frame.data.to_vec()));
    }
    assert_eq!(received, [tagged, twice]);
    Ok(())
}

/// Frames that somebody keeps are not overwritten, whether the port goes on or is gone.
pub fn batches_are_held_and_outlive_the_port() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&RxOptions { ring_bytes: 2 << 20, ..options() }), wire.tx());
    rx.start()?;
    let mut kept = Vec::new();
    for round in 0..10 {
        send(&mut tx, round * 64, round * 64 + 64);
        let mut batch = Batch::default();
        while batch.is_empty() {
            rx.wait(Duration::from_millis(5))?;
            rx.receive(&mut batch)?;
        }
        kept.push(batch);
    }
    // As many again as there are buffers: they are used anew, those that are kept are not.
    for round in 0..40 {
        send(&mut tx, 10_000 + round * 100, 10_100 + round * 100);
        let mut batch = Batch::default();
        while rx.receive(&mut batch)? > 0 {}
    }
    rx.stop()?;
    drain(&mut rx);
    assert_eq!(rx.counters()?.delivered_packets, 640 + 4_000);
    drop((rx, tx));
    let kept = std::thread::spawn(move || {
        kept.iter().flat_map(|batch| batch.frames().map(|f| f.data.to_vec())).collect::<Vec<_>>()
    });
    let frames = kept.join().unwrap();
    assert_eq!(frames, (0..640).map(|number| numbered(number, 60)).collect::<Vec<_>>());
    Ok(())
}

/// The program is on the interface all the while.
pub fn the_host_gets_its_frames_before_and_after() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&options()), wire.tx());
    let mut host = wire.there.run(|| PacketRx::open("there", &options()))??;
    host.start()?;
    send(&mut tx, 0, 10);
    rx.start()?;
    send(&mut tx, 10, 30);
    rx.stop()?;
    send(&mut tx, 30, 60);
    let (begun, mut batch, mut seen) = (Instant::now(), Batch::default(), Vec::new());
    while seen.len() < 40 {
        assert!(begun.elapsed() < PATIENCE, "the host gets 40 frames, not {}", seen.len());
        host.wait(Duration::from_millis(5))?;
        host.receive(&mut batch)?;
        seen.extend(batch.frames().map(|frame| number_of(frame.data)));
    }
    host.stop()?;
    seen.extend(drain(&mut host));
    assert_eq!(seen, (0..10).chain(30..60).collect::<Vec<_>>());
    assert_eq!(drain(&mut rx), (10..30).collect::<Vec<_>>());
    assert_eq!(rx.counters()?.wire_packets, 20);
    Ok(())
}

fn await_event(rx: &mut XdpRx, wanted: Event) {
    let begun = Instant::now();
    let mut batch = Batch::default();
    loop {
        rx.receive(&mut batch).unwrap();
        rx.wait(Duration::from_millis(20)).unwrap();
        if let Some(event) = rx.next_event() {
            if event == wanted {
                return;
            }
            assert_ne!(event, Event::Up, "waiting for {wanted:?}");
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted:?} is noticed");
    }
}

pub fn goes_on_after_down_and_up() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&options()), wire.tx());
    rx.start()?;
    send(&mut tx, 0, 100);
    Links::of(&wire.there)?.set_up("there", false)?;
    await_event(&mut rx, Event::Down);
    Links::of(&wire.there)?.set_up("there", true)?;
    await_event(&mut rx, Event::Up);
    send(&mut tx, 100, 150);
    rx.stop()?;
    drain(&mut rx);
    let counters = rx.counters()?;
    assert_eq!((counters.delivered_packets, counters.wire_packets), (150, 150));
    Ok(())
}

pub fn goes_on_after_the_interface_was_remade() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(&options()), wire.tx());
    rx.start()?;
    send(&mut tx, 0, 30);
    Links::of(&wire.here)?.delete("here")?;
    await_event(&mut rx, Event::Gone);
    VethPair::create(&wire.here, "here", &wire.there, "there", &wire.config)?;
    await_event(&mut rx, Event::Up);
    let begun = Instant::now();
    while tx.next_event() != Some(Event::Up) {
        assert!(begun.elapsed() < PATIENCE, "the sender finds the new interface");
        let mut batch = Batch::new(64);
        assert!(batch.push(&numbered(1, 60), FrameMeta::local(60)));
        tx.transmit(&mut batch)?;
        tx.wait(Duration::from_millis(20))?;
    }
    let before = rx.counters()?.wire_packets;
    send(&mut tx, 30, 100);
    rx.stop()?;
    drain(&mut rx);
    let counters = rx.counters()?;
    assert_eq!(counters.delivered_packets, counters.wire_packets);
    assert_eq!(counters.wire_packets - before, 70);
    Ok(())
}
