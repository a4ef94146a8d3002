//! All ways in which the appending and the writing thread can meet (loom).

use std::collections::VecDeque;
use std::time::Duration;

use loom::thread;

use super::{AppendEnd, WriteEnd, hand_over};

type Appending = AppendEnd<u32, u32, u32>;
type WritingEnd = WriteEnd<u32, u32, u32>;

const CHUNKS: u32 = 2;

/// Appends as a recorder does: without a free buffer a chunk is lost. Ends with the number of the
/// chunks that were given. Wakes nobody: in a model a wake also shows all that was done before it,
/// and would hide what the flag and the rings fail to show.
fn append(mut end: Appending) {
    let mut given = 0;
    for _ in 0..CHUNKS {
        if end.take().is_some() {
            given += 1;
            end.give(given, || ());
        }
    }
    end.finish(given, || ());
}

/// Appends and waits for each buffer to come back, and wakes the writer.
fn append_patiently(mut end: Appending, writer: &thread::Thread) {
    for number in 1..=CHUNKS {
        while end.take().is_none() {
            thread::yield_now();
        }
        end.give(number, || writer.unpark());
    }
    end.finish(CHUNKS, || writer.unpark());
}

/// Writes until the end, with `wait` whenever there is nothing to do.
fn write(mut end: WritingEnd, wait: impl Fn(&WritingEnd)) -> (Vec<u32>, u32) {
    let mut written = Vec::new();
    let mut queue = VecDeque::new();
    loop {
        let finishing = end.take_into(&mut queue);
        let idle = queue.is_empty();
        for chunk in queue.drain(..) {
            written.push(chunk);
            end.give_back(0);
        }
        if finishing {
            return (written, end.account());
        }
        if idle {
            wait(&end);
        }
    }
}

#[test]
fn each_chunk_given_before_the_end_is_written_once_and_in_order() {
    loom::model(|| {
        let (append_end, write_end) = hand_over(vec![0]);
        let appending = thread::spawn(move || append(append_end));
        let (written, account) = write(write_end, |_| thread::yield_now());
        appending.join().unwrap();
        assert_eq!(written, (1..=account).collect::<Vec<_>>());
        assert!(account >= 1, "there was a free buffer at the start");
    });
}

#[test]
fn a_writer_that_sleeps_is_woken_by_each_chunk_and_by_the_end() {
    loom::model(|| {
        let (append_end, write_end) = hand_over(vec![0]);
        let writer = thread::current();
        let appending = thread::spawn(move || append_patiently(append_end, &writer));
        let (written, account) = write(write_end, |end| end.wait(Duration::MAX));
        appending.join().unwrap();
        assert_eq!((written, account), (vec![1, 2], CHUNKS));
    });
}
