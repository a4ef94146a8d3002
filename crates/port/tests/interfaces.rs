//! The packet port on real veth pairs: conformance, and an interface that goes down, vanishes and
//! comes back.
#![allow(clippy::unwrap_used)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use port::conformance::{self, Medium};
use port::fit::{FittingTx, Unfit};
use port::packet::{PacketRx, PacketTx, RxOptions};
use port::{Batch, Event, FrameMeta, Reason, Result, RxQueue, TxQueue};
use sys::link::Links;
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::{Outcome, tests};

/// Two namespaces with a veth pair between them.
struct Wire {
    here: Namespace,
    there: Namespace,
    config: VethConfig,
}

impl Wire {
    fn new(config: VethConfig) -> Self {
        let (here, there) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        VethPair::create(&here, "here", &there, "there", &config).unwrap();
        Self { here, there, config }
    }

    fn tx(&self) -> PacketTx {
        self.here.run(|| PacketTx::open("here")).unwrap().unwrap()
    }

    fn rx(&self, options: RxOptions) -> PacketRx {
        self.there.run(|| PacketRx::open("there", &options)).unwrap().unwrap()
    }
}

impl Medium for Wire {
    fn open_tx(&mut self) -> Result<Box<dyn TxQueue>> {
        Ok(Box::new(self.tx()))
    }
    fn open_rx(&mut self) -> Result<Box<dyn RxQueue>> {
        Ok(Box::new(self.rx(RxOptions::default())))
    }
    fn frame_bytes_max(&self) -> usize {
        self.config.mtu_bytes as usize + 14
    }
}

fn conforms() -> Outcome {
    conformance::check(|| Wire::new(VethConfig::default()))?;
    Ok(())
}

fn conforms_with_jumbo_frames() -> Outcome {
    conformance::check(|| Wire::new(VethConfig { mtu_bytes: 9_000, ..VethConfig::default() }))?;
    Ok(())
}

fn conforms_with_threaded_napi() -> Outcome {
    let config = VethConfig { gro: true, threaded_napi: true, ..VethConfig::default() };
    conformance::check(|| Wire::new(config.clone()))?;
    Ok(())
}

fn send(tx: &mut PacketTx, count: usize) -> usize {
    let mut batch = Batch::new(64);
    let mut sent = 0;
    while sent < count {
        while sent + batch.len() < count && !batch.is_full() {
            assert!(batch.push(&[0xee; 60], FrameMeta::local(60)));
        }
        let accepted = tx.transmit(&mut batch).unwrap();
        sent += accepted;
        if accepted == 0 {
            tx.wait(Duration::from_millis(10)).unwrap();
        }
    }
    sent
}

fn drain(rx: &mut PacketRx) {
    let mut batch = Batch::default();
    let begun = Instant::now();
    while !rx.is_finished().unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(20), "a stopped queue finishes");
        if rx.receive(&mut batch).unwrap() == 0 {
            rx.wait(Duration::from_millis(5)).unwrap();
        }
    }
}

/// Nobody reads while a small ring overflows: what is lost is counted, to the packet.
fn overload_is_charged_to_the_ring() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let mut rx = wire.rx(RxOptions { ring_bytes: 2 << 20, ..RxOptions::default() });
    let mut tx = wire.tx();
    rx.start().unwrap();
    let count = 60_000;
    send(&mut tx, count);
    assert!(tx.flush(Duration::from_secs(5)).unwrap());
    rx.stop().unwrap();
    drain(&mut rx);
    let received = rx.counters().unwrap();
    let lost = received.dropped.get(Reason::KernelRing);
    assert_eq!(received.wire_packets, count as u64);
    assert_eq!(received.delivered_packets + lost, count as u64);
    assert!(lost > 0, "2 MiB do not hold {count} frames");
    assert_eq!(received.device.unwrap().unexplained_packets, 0);
    let sent = tx.counters().unwrap();
    assert_eq!(sent.accepted_packets, count as u64);
    assert_eq!(sent.device.unwrap().packets_max, count as u64);
    Ok(())
}

/// Frames of a kernel's block and of a slab, some too long and one too short, on the same wire.
fn frames_that_do_not_fit_are_left_out() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let mut rx = wire.rx(RxOptions::default());
    rx.start()?;
    let tagged = |length: usize| {
        let mut data = vec![2; length];
        data[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
        data
    };
    let frames =
        [vec![2; 10], vec![2; 60], vec![2; 65_226], tagged(1_519), tagged(1_518), vec![2; 1_514]];
    let mut batch = Batch::new(65_226);
    for frame in &frames {
        assert!(batch.push(frame, FrameMeta::local(frame.len())));
    }
    let mut tx = FittingTx::new(wire.tx());
    assert_eq!((tx.transmit(&mut batch)?, batch.len(), batch.bytes()), (0, 3, 60 + 1_518 + 1_514));
    assert_eq!(tx.transmit(&mut batch)?, 3);
    assert_eq!(tx.counters()?.accepted_packets, 3);
    let unfit =
        Unfit { packets: 3, bytes: 10 + 65_226 + 1_519, longest_bytes: 65_226, shortest_bytes: 10 };
    assert_eq!(tx.unfit(), Some(unfit));
    assert!(tx.flush(Duration::from_secs(5))?);

    // Back again, out of the kernel's blocks, where the shorter MTU of this end leaves two out.
    Links::of(&wire.there)?.set_mtu("there", 1_400)?;
    let mut back = FittingTx::new(wire.there.run(|| PacketTx::open("there"))??);
    let mut block = Batch::default();
    let (begun, mut seen) = (Instant::now(), Vec::<usize>::new());
    while seen.len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(20), "three frames arrive");
        rx.receive(&mut block)?;
        let lengths: Vec<usize> = block.frames().map(|frame| frame.data.len()).collect();
        seen.extend(&lengths);
        if lengths.iter().any(|length| *length > 1_414) {
            assert_eq!(back.transmit(&mut block)?, 0);
        }
        let fitting: Vec<usize> = lengths.into_iter().filter(|length| *length <= 1_414).collect();
        assert_eq!(
            (block.len(), block.bytes()),
            (fitting.len(), fitting.iter().sum::<usize>() as u64)
        );
        assert!(block.frames().all(|frame| frame.data == [2; 60]));
        assert_eq!(block.retain(|_| false), fitting.len());
        rx.wait(Duration::from_millis(20))?;
    }
    assert_eq!(seen, [60, 1_518, 1_514]);
    assert_eq!(back.unfit().map(|unfit| (unfit.packets, unfit.bytes)), Some((2, 1_518 + 1_514)));
    // The last block went back to the kernel, and the batch is like a new one.
    block.reserve(60);
    assert!(!block.is_full() && block.push(&[9; 60], FrameMeta::local(60)));
    assert_eq!((block.len(), block.bytes()), (1, 60));
    Ok(())
}

fn await_event(rx: &mut PacketRx, wanted: Event) {
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
        assert!(begun.elapsed() < Duration::from_secs(20), "{wanted:?} is noticed");
    }
}

fn goes_on_after_down_and_up() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(RxOptions::default()), wire.tx());
    rx.start().unwrap();
    send(&mut tx, 100);
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    await_event(&mut rx, Event::Down);
    Links::of(&wire.there).unwrap().set_up("there", true).unwrap();
    await_event(&mut rx, Event::Up);
    send(&mut tx, 50);
    rx.stop().unwrap();
    drain(&mut rx);
    let counters = rx.counters().unwrap();
    assert_eq!(counters.delivered_packets, 150);
    assert_eq!(counters.wire_packets, 150);
    Ok(())
}

fn goes_on_after_the_interface_was_remade() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let (mut rx, mut tx) = (wire.rx(RxOptions::default()), wire.tx());
    rx.start().unwrap();
    send(&mut tx, 30);
    Links::of(&wire.here).unwrap().delete("here").unwrap();
    await_event(&mut rx, Event::Gone);
    VethPair::create(&wire.here, "here", &wire.there, "there", &wire.config).unwrap();
    await_event(&mut rx, Event::Up);
    let mut tx = wire.tx();
    send(&mut tx, 70);
    rx.stop().unwrap();
    drain(&mut rx);
    assert_eq!(rx.counters().unwrap().delivered_packets, 100);
    Ok(())
}

fn opening_says_what_is_wrong() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let open = |name: &'static str| {
        wire.there.run(move || PacketRx::open(name, &RxOptions::default())).unwrap()
    };
    let missing = open("nowhere").unwrap_err().to_string();
    assert!(missing.contains("nowhere") && missing.contains("there"), "{missing}");
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    let down = open("there").unwrap_err().to_string();
    assert!(down.contains("there") && down.contains("up"), "{down}");
    Ok(())
}

fn main() -> ExitCode {
    testing::run(tests![
        conforms,
        conforms_with_jumbo_frames,
        conforms_with_threaded_napi,
        frames_that_do_not_fit_are_left_out,
        overload_is_charged_to_the_ring,
        goes_on_after_down_and_up,
        goes_on_after_the_interface_was_remade,
        opening_says_what_is_wrong,
    ])
}
