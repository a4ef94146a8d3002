//! All ways in which the two ends of a ring in memory can meet (loom).

use std::time::Duration;

use loom::thread;

use super::{MemoryRx, MemoryTx, pair};
use crate::batch::Batch;
use crate::frame::FrameMeta;
use crate::queue::{RxQueue, TxQueue};

/// Sends frames that hold 1 to `frames`, one a batch, and waits while the ring is full.
fn send(tx: &mut MemoryTx, frames: u8) {
    let mut batch = Batch::new(64);
    for number in 1..=frames {
        assert!(batch.push(&[number; 60], FrameMeta::local(60)));
        while tx.transmit(&mut batch).unwrap() == 0 {
            thread::yield_now();
        }
        assert!(batch.is_empty(), "what comes back is empty");
    }
}

/// Receives until the sender is gone and nothing is left.
fn receive(rx: &mut MemoryRx) -> Vec<u8> {
    let mut seen = Vec::new();
    let mut batch = Batch::new(64);
    while !rx.is_finished().unwrap() {
        if rx.receive(&mut batch).unwrap() == 0 {
            thread::yield_now();
        }
        seen.extend(batch.frames().map(|frame| frame.data[0]));
    }
    seen
}

#[test]
fn all_that_was_sent_before_the_sender_went_is_received_in_order() {
    loom::model(|| {
        let (mut tx, mut rx) = pair("model", 1);
        let sender = thread::spawn(move || send(&mut tx, 2));
        assert_eq!(receive(&mut rx), [1, 2]);
        sender.join().unwrap();
        assert_eq!(rx.counters().unwrap().delivered_packets, 2);
    });
}

#[test]
fn what_is_flushed_is_with_the_receiver() {
    loom::model(|| {
        let (mut tx, mut rx) = pair("model", 2);
        let receiver = thread::spawn(move || {
            let mut batch = Batch::new(64);
            (rx.receive(&mut batch).unwrap(), rx)
        });
        send(&mut tx, 1);
        let flushed = tx.flush(Duration::ZERO).unwrap();
        let (received, rx) = receiver.join().unwrap();
        assert!(!flushed || received == 1, "flushed, and still in the ring");
        drop(rx);
    });
}
