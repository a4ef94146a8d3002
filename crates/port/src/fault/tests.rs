use std::time::Duration;

use super::*;
use crate::memory;
use crate::queue::{RxQueue, TxQueue};

/// Sends `count` numbered frames through faults and returns what arrives, with the counters.
fn through(faults: Faults, count: u32) -> (Vec<Vec<u8>>, FaultCounters) {
    let (mut tx, rx) = memory::pair("faults", 4);
    let mut rx = FaultyRx::new(rx, faults);
    let mut outgoing = Batch::new(64);
    let mut incoming = Batch::default();
    let mut seen = Vec::new();
    for number in 0..count {
        let mut data = [0; 60];
        data[20..24].copy_from_slice(&number.to_be_bytes());
        assert!(outgoing.push(&data, FrameMeta::local(60)));
        if outgoing.is_full() || number + 1 == count {
            assert!(tx.transmit(&mut outgoing).unwrap() > 0);
            while rx.receive(&mut incoming).unwrap() > 0 {
                seen.extend(incoming.frames().map(|frame| frame.data.to_vec()));
            }
        }
    }
    drop(tx);
    while !rx.is_finished().unwrap() {
        rx.receive(&mut incoming).unwrap();
        seen.extend(incoming.frames().map(|frame| frame.data.to_vec()));
    }
    let counters = rx.counters().unwrap();
    assert_eq!(counters.delivered_packets, seen.len() as u64);
    assert_eq!(
        counters.wire_packets + counters.added_packets,
        counters.delivered_packets + counters.dropped.total(),
        "the account of a faulty port balances"
    );
    let added = rx.faults().duplicated_packets;
    assert_eq!((counters.wire_packets, counters.added_packets), (u64::from(count), added));
    (seen, rx.faults())
}

#[test]
fn drops_and_duplicates_are_counted_exactly() {
    let faults = Faults { drop: 0.1, duplicate: 0.05, seed: 3, ..Faults::default() };
    let (seen, counters) = through(faults, 10_000);
    assert!(counters.dropped_packets > 800 && counters.duplicated_packets > 300);
    assert_eq!(seen.len() as u64, 10_000 - counters.dropped_packets + counters.duplicated_packets);
}

#[test]
fn a_corrupted_frame_differs_in_one_bit() {
    let (seen, counters) = through(Faults { corrupt: 1.0, seed: 5, ..Faults::default() }, 500);
    assert_eq!(counters.corrupted_packets, 500);
    for (number, data) in seen.iter().enumerate() {
        let mut right = [0; 60];
        right[20..24].copy_from_slice(&(number as u32).to_be_bytes());
        let flipped: u32 = right.iter().zip(data).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(flipped, 1, "frame {number}");
    }
}

#[test]
fn a_delayed_frame_is_overtaken_by_the_stated_number() {
    let faults = Faults { delay: 0.02, delay_frames: 5, seed: 9, ..Faults::default() };
    let (seen, counters) = through(faults, 5_000);
    assert_eq!(seen.len(), 5_000);
    let mut newest = None;
    let mut late = 0;
    for data in &seen {
        let number = u32::from_be_bytes([data[20], data[21], data[22], data[23]]);
        if newest.is_some_and(|newest| number < newest) {
            late += 1;
        }
        newest = newest.max(Some(number));
    }
    assert_eq!(late, counters.delayed_packets);
    assert!(late > 50);
}

#[test]
fn the_same_seed_hits_the_same_frames() {
    let faults = Faults {
        drop: 0.3,
        duplicate: 0.2,
        delay: 0.1,
        corrupt: 0.1,
        seed: 1,
        ..Faults::default()
    };
    assert_eq!(through(faults, 1_000), through(faults, 1_000));
    assert_ne!(through(faults, 1_000).0, through(Faults { seed: 2, ..faults }, 1_000).0);
}

#[test]
fn a_faulty_sender_releases_held_frames_when_flushed() {
    let (tx, mut rx) = memory::pair("faulty sender", 4);
    let mut tx = FaultyTx::new(tx, Faults { delay: 1.0, delay_frames: 9, ..Faults::default() });
    let mut batch = Batch::new(64);
    assert!(batch.push(&[4; 60], FrameMeta::local(60)));
    assert_eq!(tx.transmit(&mut batch).unwrap(), 1);
    let mut incoming = Batch::default();
    assert_eq!(rx.receive(&mut incoming).unwrap(), 0);
    tx.flush(Duration::from_millis(1)).unwrap();
    assert_eq!(rx.receive(&mut incoming).unwrap(), 1);
}
