use filter::Link;
use port::conformance::{self, Medium};
use port::fault::{Faults, FaultyRx};
use port::limit::LimitedRx;
use port::memory::{self, MemoryRx, MemoryTx};
use port::null::{FRAME_BYTES_MAX, Null};
use port::snap::SnapRx;
use port::{FrameMeta, Reason, TxQueue};

use super::*;

fn filtered<Q: RxQueue>(inner: Q, text: &str) -> FilteredRx<Q> {
    let filter = Filter::new(text, Link::Ethernet).unwrap();
    FilteredRx::new(inner, &filter, Facts::default())
}

/// A ring with `count` frames, each with its number as the first byte; its sender is gone.
fn filled(count: u32) -> MemoryRx {
    let (mut tx, rx) = memory::pair("filtered", 64);
    let mut batch = Batch::new(64);
    for number in 0..count {
        assert!(batch.push(&[number as u8; 60], FrameMeta::local(60)));
        if batch.is_full() || number == count - 1 {
            tx.transmit(&mut batch).unwrap();
        }
    }
    rx
}

/// All frames' first bytes and lengths.
fn drain(rx: &mut dyn RxQueue) -> Vec<(u8, usize)> {
    let mut batch = Batch::default();
    let mut seen = Vec::new();
    loop {
        let count = rx.receive(&mut batch).unwrap();
        assert_eq!(count, batch.len());
        seen.extend(batch.frames().map(|frame| (frame.data[0], frame.data.len())));
        if count == 0 && rx.is_finished().unwrap() {
            return seen;
        }
    }
}

fn balanced(counters: &RxCounters) -> bool {
    let passed_over = counters.filtered_packets + counters.beyond_count_packets;
    counters.wire_packets + counters.added_packets
        == passed_over + counters.delivered_packets + counters.dropped.total()
}

#[test]
fn frames_that_match_are_given_out_in_order_and_the_others_counted() {
    for (text, keeps) in [
        ("ether[0] & 1 = 1", (|number| number % 2 == 1) as fn(u8) -> bool),
        ("ether[0] < 3", |number| number < 3),
        ("ether[0] = 199", |number| number == 199),
        ("ether[0] = 201", |_| false),
        ("ether[59] >= 0", |_| true),
        ("ether[60] >= 0", |_| false),
        ("", |_| true),
    ] {
        let mut rx = filtered(filled(200), text);
        rx.start().unwrap();
        let expected: Vec<(u8, usize)> =
            (0..200).filter(|number| keeps(*number)).map(|number| (number, 60)).collect();
        assert_eq!(drain(&mut rx), expected, "{text}");
        let counters = rx.counters().unwrap();
        let matching = expected.len() as u64;
        assert_eq!((counters.wire_packets, counters.delivered_packets), (200, matching));
        assert_eq!(counters.filtered_packets, 200 - matching, "{text}");
        assert_eq!(counters.delivered_bytes, matching * 60, "{text}");
    }
}

#[test]
fn many_batches_without_a_match_end_a_call_and_not_the_queue() {
    let count = 64 * (EMPTY_BATCHES_MAX as u32 + 2);
    let mut rx = filtered(filled(count), "ether[0] = 300 or len > 60");
    let mut batch = Batch::default();
    assert_eq!(rx.receive(&mut batch).unwrap(), 0);
    assert_eq!(rx.counters().unwrap().filtered_packets, 64 * EMPTY_BATCHES_MAX as u64);
    assert!(!rx.is_finished().unwrap());
    // There is more: this does not sleep.
    rx.wait(Duration::from_secs(3600)).unwrap();
    assert!(drain(&mut rx).is_empty());
    assert_eq!(rx.counters().unwrap().filtered_packets, u64::from(count));
}

#[test]
fn a_count_is_one_of_matches() {
    let mut rx = LimitedRx::new(filtered(filled(200), "ether[0] & 1 = 1"), Some(40));
    rx.start().unwrap();
    let seen = drain(&mut rx);
    assert_eq!((seen.len(), seen[39].0), (40, 79));
    let counters = rx.counters().unwrap();
    assert_eq!((counters.filtered_packets, counters.beyond_count_packets), (100, 60));
    assert!(balanced(&counters), "{counters:?}");
}

#[test]
fn frames_are_cut_behind_the_filter_and_hurt_before_it() {
    let mut rx = SnapRx::new(filtered(filled(200), "ether[59] < 50"), 20);
    let expected: Vec<(u8, usize)> = (0..50).map(|number| (number, 20)).collect();
    assert_eq!(drain(&mut rx), expected);
    assert_eq!(rx.counters().unwrap().delivered_bytes, 50 * 20);

    let faults = Faults { drop: 0.2, duplicate: 0.1, seed: 1, ..Faults::default() };
    let mut rx = filtered(FaultyRx::new(filled(200), faults), "ether[0] < 100");
    let seen = drain(&mut rx).len() as u64;
    let counters = rx.counters().unwrap();
    assert!(counters.dropped.get(Reason::Injected) > 0 && counters.added_packets > 0);
    assert!(counters.filtered_packets > 0 && counters.delivered_packets == seen);
    assert!(balanced(&counters), "{counters:?}");
}

#[test]
fn facts_are_those_of_the_port() {
    let delivered = |text: &str, facts: Facts| {
        let filter = Filter::new(text, Link::Ethernet).unwrap();
        drain(&mut FilteredRx::new(filled(10), &filter, facts)).len()
    };
    let known = Facts { outbound: Some(false), interface: Some(3) };
    for (text, expected, unknown) in [
        ("inbound", 10, 0),
        ("outbound", 0, 0),
        ("ifindex 3", 10, 0),
        ("not ifindex 4", 10, 0),
        ("len = 60", 10, 10),
    ] {
        assert_eq!(delivered(text, known), expected, "{text}");
        assert_eq!(delivered(text, Facts::default()), unknown, "{text}");
    }
}

/// A ring behind a filter that all frames of the suite match.
struct Ring(Option<MemoryTx>, Option<MemoryRx>);

impl Medium for Ring {
    fn open_tx(&mut self) -> Result<Box<dyn TxQueue>> {
        Ok(Box::new(self.0.take().unwrap()))
    }
    fn open_rx(&mut self) -> Result<Box<dyn RxQueue>> {
        Ok(Box::new(filtered(self.1.take().unwrap(), "ether proto 0x88b5")))
    }
    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }
}

#[test]
fn a_filter_that_all_match_conforms() {
    conformance::check(|| {
        let (tx, rx) = memory::pair("conformance", 3);
        Ring(Some(tx), Some(rx))
    })
    .unwrap();
}

/// A queue whose time is over.
struct Expired(Null);

impl RxQueue for Expired {
    fn start(&mut self) -> Result<()> {
        Ok(())
    }
    fn receive(&mut self, _batch: &mut Batch) -> Result<usize> {
        Ok(0)
    }
    fn wait(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
    fn is_finished(&mut self) -> Result<bool> {
        Ok(true)
    }
    fn is_expired(&mut self) -> bool {
        true
    }
    fn counters(&mut self) -> Result<RxCounters> {
        Ok(RxCounters::default())
    }
    fn next_event(&mut self) -> Option<Event> {
        Some(Event::Gone)
    }
    fn describe(&self) -> PortDescription {
        RxQueue::describe(&self.0)
    }
}

#[test]
fn what_the_port_says_is_passed_on() {
    let mut rx = filtered(Expired(Null::default()), "ip");
    assert!(rx.is_expired());
    assert_eq!(rx.next_event(), Some(Event::Gone));
    assert_eq!(rx.describe(), RxQueue::describe(&Null::default()));
}
