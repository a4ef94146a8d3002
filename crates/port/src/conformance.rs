//! The suite that every kind of port passes: what is sent at one end arrives at the other, once, in
//! order, byte for byte, and both ends' accounts say so.
//!
//! A kind describes itself as a [`Medium`]; its test calls [`check`]. The suite asserts, so it
//! belongs in tests; it is public because kinds live in more than one crate.

use std::time::Duration;

use crate::batch::Batch;
use crate::error::{PortError, Result};
use crate::frame::FrameMeta;
use crate::queue::{RxQueue, TxQueue};

/// Rounds of waiting without a frame after which the suite gives up: 200 x 50 ms.
const PATIENCE_ROUNDS: usize = 200;
const PATIENCE: Duration = Duration::from_millis(50);

/// A place with two ends: what enters `tx` leaves `rx`.
pub trait Medium {
    /// Opens the sending end of a fresh medium.
    fn open_tx(&mut self) -> Result<Box<dyn TxQueue>>;
    /// Opens the receiving end of the same medium.
    fn open_rx(&mut self) -> Result<Box<dyn RxQueue>>;
    /// Whether the receiving end can be opened only when the sender is done, as with a file.
    fn is_sequential(&self) -> bool {
        false
    }
    /// Longest frame, in bytes without FCS.
    fn frame_bytes_max(&self) -> usize;
}

/// Runs all checks on media that `make` gives, a fresh one for each check.
pub fn check<M: Medium>(mut make: impl FnMut() -> M) {
    frames_arrive_once_in_order(&mut make(), &lengths_up_to(1514), 5_000);
    let mut medium = make();
    let longest = medium.frame_bytes_max();
    frames_arrive_once_in_order(&mut medium, &[60, longest, 61], 300);
    frames_arrive_once_in_order(&mut make(), &[60], 1);
    frames_arrive_once_in_order(&mut make(), &[60], 0);
    an_empty_batch_is_nothing(&mut make());
    a_frame_too_long_is_an_error(&mut make());
}

fn lengths_up_to(longest: usize) -> Vec<usize> {
    (60..=longest).step_by(97).chain([60, 64, 65, longest]).collect()
}

/// Frame `number` of a check: addresses and an experimental ethertype (IEEE 802, 88B5), then
/// the number, then a pattern that depends on it.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    data.extend_from_slice(&number.to_be_bytes());
    let mut value = number as u8;
    while data.len() < length {
        value = value.wrapping_mul(31).wrapping_add(7);
        data.push(value);
    }
    data.truncate(length);
    data
}

fn frames_arrive_once_in_order<M: Medium>(medium: &mut M, lengths: &[usize], count: u32) {
    let all: Vec<Vec<u8>> =
        (0..count).map(|number| frame(number, lengths[number as usize % lengths.len()])).collect();
    let bytes: u64 = all.iter().map(|data| data.len() as u64).sum();
    let received = if medium.is_sequential() {
        let mut tx = medium.open_tx().expect("the sending end opens");
        send(tx.as_mut(), &all, &mut |_| {});
        finish_tx(tx.as_mut(), u64::from(count), bytes);
        drop(tx);
        let mut rx = medium.open_rx().expect("the receiving end opens");
        rx.start().expect("starts");
        let mut received = Vec::new();
        finish_rx(rx.as_mut(), count, bytes, &mut received);
        received
    } else {
        let mut rx = medium.open_rx().expect("the receiving end opens");
        let mut tx = medium.open_tx().expect("the sending end opens");
        rx.start().expect("starts");
        let mut received = Vec::new();
        send(tx.as_mut(), &all, &mut |_| take(rx.as_mut(), &mut received));
        collect(rx.as_mut(), all.len(), &mut received);
        finish_tx(tx.as_mut(), u64::from(count), bytes);
        rx.stop().expect("stops");
        finish_rx(rx.as_mut(), count, bytes, &mut received);
        received
    };
    assert_eq!(received.len(), all.len(), "every frame arrives once");
    for (number, (sent, got)) in all.iter().zip(&received).enumerate() {
        assert!(sent == got, "frame {number} of {} bytes arrives unchanged, in order", sent.len());
    }
}

/// Sends all frames in batches of changing size; `between` runs after each hand-over.
fn send(tx: &mut dyn TxQueue, all: &[Vec<u8>], between: &mut dyn FnMut(usize)) {
    let longest = all.iter().map(Vec::len).max().unwrap_or(60);
    let mut batch = Batch::new(longest);
    let mut rest = all;
    let mut size = 1;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(size));
        for data in now {
            assert!(batch.push(data, FrameMeta::local(data.len())), "a batch takes {size} frames");
        }
        for round in 0.. {
            let before = batch.len();
            let accepted = tx.transmit(&mut batch).expect("transmits");
            assert_eq!(batch.len(), before - accepted, "what was not taken stays in the batch");
            between(accepted);
            if batch.is_empty() {
                break;
            }
            assert!(round < 10_000, "the port takes frames again at some time");
            tx.wait(Duration::from_millis(1)).expect("waits");
        }
        rest = later;
        size = size % crate::BATCH_FRAMES + 1;
    }
}

fn take(rx: &mut dyn RxQueue, received: &mut Vec<Vec<u8>>) {
    let mut batch = Batch::default();
    while rx.receive(&mut batch).expect("receives") > 0 {
        for frame in batch.frames() {
            assert_eq!(frame.meta.wire_length as usize, frame.data.len(), "nothing is sliced");
            received.push(frame.data.to_vec());
        }
    }
}

fn collect(rx: &mut dyn RxQueue, wanted: usize, received: &mut Vec<Vec<u8>>) {
    for _ in 0..PATIENCE_ROUNDS {
        take(rx, received);
        if received.len() >= wanted {
            return;
        }
        rx.wait(PATIENCE).expect("waits");
    }
}

fn finish_tx(tx: &mut dyn TxQueue, packets: u64, bytes: u64) {
    assert!(tx.flush(Duration::from_secs(5)).expect("flushes"), "all accepted frames leave");
    let counters = tx.counters().expect("counts");
    assert_eq!(counters.accepted_packets, packets);
    assert_eq!(counters.accepted_bytes, bytes);
    if let Some(device) = counters.device {
        assert_eq!(device.packets_max, packets, "the device counted what was sent");
    }
}

fn finish_rx(rx: &mut dyn RxQueue, count: u32, bytes: u64, received: &mut Vec<Vec<u8>>) {
    for round in 0.. {
        take(rx, received);
        if rx.is_finished().expect("answers") {
            break;
        }
        assert!(round < PATIENCE_ROUNDS, "a stopped queue finishes");
        rx.wait(PATIENCE).expect("waits");
    }
    let counters = rx.counters().expect("counts");
    assert_eq!(counters.delivered_packets, u64::from(count));
    assert_eq!(counters.delivered_bytes, bytes);
    assert_eq!(
        counters.wire_packets,
        counters.filtered_packets + counters.delivered_packets + counters.dropped.total(),
        "the account balances"
    );
}

fn an_empty_batch_is_nothing<M: Medium>(medium: &mut M) {
    let mut tx = medium.open_tx().expect("the sending end opens");
    let mut batch = Batch::new(60);
    assert_eq!(tx.transmit(&mut batch).expect("transmits"), 0);
    assert_eq!(tx.counters().expect("counts").accepted_packets, 0);
    if !medium.is_sequential() {
        let mut rx = medium.open_rx().expect("the receiving end opens");
        rx.start().expect("starts");
        assert_eq!(rx.receive(&mut batch).expect("receives"), 0);
        rx.wait(Duration::from_millis(1)).expect("a wait without frames ends");
        rx.stop().expect("stops");
    }
}

#[expect(clippy::panic, reason = "a suite for tests reports by panicking")]
fn a_frame_too_long_is_an_error<M: Medium>(medium: &mut M) {
    // Where a batch cannot hold a longer frame there is nothing to refuse.
    let length = medium.frame_bytes_max() + 8;
    let mut tx = medium.open_tx().expect("the sending end opens");
    let mut batch = Batch::new(length);
    let data = frame(0, length);
    assert!(batch.push(&data, FrameMeta::local(data.len())));
    match tx.transmit(&mut batch) {
        Err(PortError::FrameTooLong { frame_bytes, frame_bytes_max, .. }) => {
            assert_eq!((frame_bytes, frame_bytes_max), (length, medium.frame_bytes_max()));
        }
        other => panic!("a frame of {length} bytes is refused by name, got {other:?}"),
    }
    assert_eq!(batch.len(), 1, "a refused frame stays with the caller");
    assert_eq!(tx.counters().expect("counts").accepted_packets, 0);
}
