//! The suite that every kind of port passes: what is sent at one end arrives at the other, once, in
//! order, byte for byte, and both ends' accounts say so.
//!
//! A kind describes itself as a [`Medium`]; its test calls [`check`]. The suite is public because kinds
//! live in more than one crate.

use std::time::Duration;

use crate::batch::Batch;
use crate::error::{PortError, Result};
use crate::frame::FrameMeta;
use crate::queue::{RxQueue, TxQueue};

/// Rounds of waiting without a frame after which the suite gives up: 200 x 50 ms.
const PATIENCE_ROUNDS: usize = 200;
/// Attempts to hand one batch over, 1 ms apart, after which a port counts as stuck.
const HAND_OVERS_MAX: usize = 10_000;
const PATIENCE: Duration = Duration::from_millis(50);

/// What a port did otherwise than a port should.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A call failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A call succeeded and its outcome is wrong.
    #[error("{0}")]
    Outcome(String),
}

type Check = Result<(), Failure>;

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Failure::Outcome(otherwise())) }
}

fn ensure_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Check {
    ensure(found == expected, || format!("{what}: expected {expected:?}, found {found:?}"))
}

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
pub fn check<M: Medium>(mut make: impl FnMut() -> M) -> Check {
    frames_arrive_once_in_order(&mut make(), &lengths_up_to(1514), 5_000)?;
    let mut medium = make();
    let longest = medium.frame_bytes_max();
    frames_arrive_once_in_order(&mut medium, &[60, longest, 61], 300)?;
    frames_arrive_once_in_order(&mut make(), &[60], 1)?;
    frames_arrive_once_in_order(&mut make(), &[60], 0)?;
    an_empty_batch_is_nothing(&mut make())?;
    a_frame_too_long_is_an_error(&mut make())
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

fn frames_arrive_once_in_order<M: Medium>(medium: &mut M, lengths: &[usize], count: u32) -> Check {
    let length_of = |number: u32| lengths.get(number as usize % lengths.len()).copied();
    let all: Vec<Vec<u8>> =
        (0..count).map(|number| frame(number, length_of(number).unwrap_or(60))).collect();
    let bytes: u64 = all.iter().map(|data| data.len() as u64).sum();
    let mut received = Vec::new();
    if medium.is_sequential() {
        let mut tx = medium.open_tx()?;
        send(tx.as_mut(), &all, &mut || Ok(()))?;
        finish_tx(tx.as_mut(), u64::from(count), bytes)?;
        drop(tx);
        let mut rx = medium.open_rx()?;
        rx.start()?;
        finish_rx(rx.as_mut(), count, bytes, &mut received)?;
    } else {
        let mut rx = medium.open_rx()?;
        let mut tx = medium.open_tx()?;
        rx.start()?;
        send(tx.as_mut(), &all, &mut || take(rx.as_mut(), &mut received))?;
        collect(rx.as_mut(), all.len(), &mut received)?;
        finish_tx(tx.as_mut(), u64::from(count), bytes)?;
        rx.stop()?;
        finish_rx(rx.as_mut(), count, bytes, &mut received)?;
    }
    ensure_equal("frames that arrive", received.len(), all.len())?;
    for (number, (sent, got)) in all.iter().zip(&received).enumerate() {
        ensure(sent == got, || {
            format!("frame {number} of {} bytes arrives changed or out of order", sent.len())
        })?;
    }
    Ok(())
}

/// Sends all frames in batches of changing size; `between` runs after each hand-over.
fn send(tx: &mut dyn TxQueue, all: &[Vec<u8>], between: &mut dyn FnMut() -> Check) -> Check {
    let longest = all.iter().map(Vec::len).max().unwrap_or(60);
    let mut batch = Batch::new(longest);
    let mut rest = all;
    let mut size = 1;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(size));
        for data in now {
            ensure(tx.takes(data), || format!("a frame of {} bytes does not fit", data.len()))?;
            let pushed = batch.push(data, FrameMeta::local(data.len()));
            ensure(pushed, || format!("an empty batch does not take {size} frames"))?;
        }
        hand_over(tx, &mut batch, between)?;
        rest = later;
        size = size % crate::BATCH_FRAMES + 1;
    }
    Ok(())
}

fn hand_over(tx: &mut dyn TxQueue, batch: &mut Batch, between: &mut dyn FnMut() -> Check) -> Check {
    for _ in 0..HAND_OVERS_MAX {
        let before = batch.len();
        let accepted = tx.transmit(batch)?;
        ensure_equal("frames left in the batch", batch.len(), before - accepted)?;
        between()?;
        if batch.is_empty() {
            return Ok(());
        }
        tx.wait(Duration::from_millis(1))?;
    }
    Err(Failure::Outcome("the port does not take frames any more".into()))
}

fn take(rx: &mut dyn RxQueue, received: &mut Vec<Vec<u8>>) -> Check {
    let mut batch = Batch::default();
    while rx.receive(&mut batch)? > 0 {
        for frame in batch.frames() {
            ensure_equal("captured bytes", frame.data.len(), frame.meta.wire_length as usize)?;
            received.push(frame.data.to_vec());
        }
    }
    Ok(())
}

fn collect(rx: &mut dyn RxQueue, wanted: usize, received: &mut Vec<Vec<u8>>) -> Check {
    for _ in 0..PATIENCE_ROUNDS {
        take(rx, received)?;
        if received.len() >= wanted {
            return Ok(());
        }
        rx.wait(PATIENCE)?;
    }
    Err(Failure::Outcome(format!("{} of {wanted} frames arrive in time", received.len())))
}

fn finish_tx(tx: &mut dyn TxQueue, packets: u64, bytes: u64) -> Check {
    ensure(tx.flush(Duration::from_secs(5))?, || "accepted frames do not leave".into())?;
    let counters = tx.counters()?;
    ensure_equal("accepted packets", counters.accepted_packets, packets)?;
    ensure_equal("accepted bytes", counters.accepted_bytes, bytes)?;
    match counters.device {
        Some(device) => ensure_equal("packets of the device", device.packets_max, packets),
        None => Ok(()),
    }
}

fn finish_rx(rx: &mut dyn RxQueue, count: u32, bytes: u64, received: &mut Vec<Vec<u8>>) -> Check {
    take(rx, received)?;
    for _ in 0..PATIENCE_ROUNDS {
        if rx.is_finished()? {
            break;
        }
        rx.wait(PATIENCE)?;
        take(rx, received)?;
    }
    ensure(rx.is_finished()?, || "a stopped queue does not finish".into())?;
    let counters = rx.counters()?;
    ensure_equal("delivered packets", counters.delivered_packets, u64::from(count))?;
    ensure_equal("delivered bytes", counters.delivered_bytes, bytes)?;
    let passed_over = counters.filtered_packets + counters.beyond_count_packets;
    let left = passed_over + counters.delivered_packets + counters.dropped.total();
    ensure_equal("the sum of the account", left, counters.wire_packets + counters.added_packets)
}

fn an_empty_batch_is_nothing<M: Medium>(medium: &mut M) -> Check {
    let mut tx = medium.open_tx()?;
    let mut batch = Batch::new(60);
    ensure_equal("frames of an empty batch", tx.transmit(&mut batch)?, 0)?;
    ensure_equal("accepted packets", tx.counters()?.accepted_packets, 0)?;
    if !medium.is_sequential() {
        let mut rx = medium.open_rx()?;
        rx.start()?;
        ensure_equal("frames of a silent port", rx.receive(&mut batch)?, 0)?;
        rx.wait(Duration::from_millis(1))?;
        rx.stop()?;
    }
    Ok(())
}

fn a_frame_too_long_is_an_error<M: Medium>(medium: &mut M) -> Check {
    let length = medium.frame_bytes_max() + 8;
    let mut tx = medium.open_tx()?;
    let mut batch = Batch::new(length);
    let data = frame(0, length);
    ensure(batch.push(&data, FrameMeta::local(data.len())), || "a slot is too short".into())?;
    ensure(!tx.takes(&data), || format!("a frame of {length} bytes fits"))?;
    match tx.transmit(&mut batch) {
        Err(PortError::FrameTooLong { frame_bytes, frame_bytes_max, .. }) => {
            let expected = (length, medium.frame_bytes_max());
            ensure_equal("lengths in the error", (frame_bytes, frame_bytes_max), expected)?;
        }
        other => {
            let text = format!("a frame of {length} bytes is not refused by name: {other:?}");
            return Err(Failure::Outcome(text));
        }
    }
    ensure_equal("a refused frame in its batch", batch.len(), 1)?;
    ensure_equal("accepted packets", tx.counters()?.accepted_packets, 0)
}
