//! Writes through both engines against what the file system holds afterwards.

#![allow(clippy::unwrap_used, clippy::panic)]

mod writing;

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use sys::Kind;
use sys::direct_io::{
    Completion, DirectFile, DirectWriter, Engine, Mode, Preallocation, Refusal, Wait,
};
use sys::memory::Buffer;
use writing::{CHUNK_BYTES, engines, pool};

const BLOCK_BYTES: usize = 4096;

/// A small generator with a fixed seed (xorshift64*): the same sizes and orders in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn fill(buffer: &mut Buffer, seed: u64) {
    for (index, word) in buffer.chunks_exact_mut(8).enumerate() {
        let value = (seed << 32 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&value.to_le_bytes());
    }
}

fn errors(completions: &[Completion]) -> Vec<String> {
    completions.iter().filter_map(|it| it.result.as_ref().err().map(ToString::to_string)).collect()
}

#[test]
fn what_is_written_in_any_size_and_order_is_what_the_file_holds() {
    const WRITES: usize = 300;
    for engine in engines("what_is_written_in_any_size_and_order_is_what_the_file_holds") {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..2)
            .map(|index| {
                let file = DirectFile::create(directory.path().join(format!("{index}"))).unwrap();
                file.preallocate((WRITES * CHUNK_BYTES) as u64).unwrap();
                Arc::new(file)
            })
            .collect();
        let mut expected = vec![vec![0u8; WRITES * CHUNK_BYTES]; 2];
        let (mut free, region) = pool(12);
        let (foreign, _) = pool(2);
        free.extend(foreign); // not registered with the ring
        let mut writer = DirectWriter::new(engine, 8, &[region]).unwrap();
        assert_eq!(writer.engine(), engine);

        let mut random = Random(42);
        let mut order: Vec<usize> = (0..WRITES).collect();
        for index in (1..WRITES).rev() {
            order.swap(index, random.below(index + 1));
        }
        let mut completions = Vec::new();
        let mut seen = HashMap::new();
        for (tag, slot) in order.into_iter().enumerate() {
            while free.is_empty() || writer.in_flight() == writer.depth() {
                assert!(writer.complete(Wait::One, &mut completions).unwrap() >= 1);
                for completion in completions.drain(..) {
                    assert_eq!(completion.result.unwrap(), completion.length);
                    assert!(seen.insert(completion.tag, completion.length).is_none());
                    free.push(completion.buffer);
                }
            }
            let mut buffer = free.swap_remove(random.below(free.len()));
            fill(&mut buffer, tag as u64);
            let length = (1 + random.below(CHUNK_BYTES / BLOCK_BYTES)) * BLOCK_BYTES;
            let (file, offset) = (random.below(2), slot * CHUNK_BYTES);
            expected[file][offset..offset + length].copy_from_slice(&buffer[..length]);
            writer.submit(&files[file], offset as u64, buffer, length, tag as u64).unwrap();
        }
        writer.complete_all(&mut completions).unwrap();
        assert_eq!(errors(&completions), Vec::<String>::new());
        assert_eq!(seen.len() + completions.len(), WRITES);
        assert_eq!(free.len() + completions.len(), 14, "every buffer came back");
        assert_eq!(writer.in_flight(), 0);
        for (file, expected) in files.iter().zip(&expected) {
            file.sync_data().unwrap();
            assert!(
                fs::read(file.path()).unwrap() == *expected,
                "{engine:?} {}",
                file.path().display()
            );
        }
    }
}

#[test]
fn a_full_queue_gives_the_buffer_back_untouched() {
    for engine in engines("a_full_queue_gives_the_buffer_back_untouched") {
        let directory = tempfile::tempdir().unwrap();
        let file = Arc::new(DirectFile::create(directory.path().join("file")).unwrap());
        let (mut buffers, region) = pool(3);
        let mut writer = DirectWriter::new(engine, 2, &[region]).unwrap();
        let mut third = buffers.pop().unwrap();
        fill(&mut third, 9);
        let content = third.to_vec();
        for (tag, buffer) in buffers.into_iter().enumerate() {
            let offset = (tag * CHUNK_BYTES) as u64;
            writer.submit(&file, offset, buffer, CHUNK_BYTES, tag as u64).unwrap();
        }
        let refused = writer.submit(&file, 1 << 20, third, CHUNK_BYTES, 2).unwrap_err();
        assert!(matches!(refused.reason, Refusal::QueueFull));
        assert_eq!((refused.buffer.index(), refused.buffer.to_vec()), (2, content));
        let mut completions = Vec::new();
        writer.complete_all(&mut completions).unwrap();
        let mut tags: Vec<_> = completions.iter().map(|completion| completion.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1]);
    }
}

#[test]
fn sizes_and_offsets_that_direct_io_cannot_do_are_refused_in_words() {
    for engine in engines("sizes_and_offsets_that_direct_io_cannot_do_are_refused_in_words") {
        let directory = tempfile::tempdir().unwrap();
        let file = Arc::new(DirectFile::create(directory.path().join("file")).unwrap());
        let mut writer = DirectWriter::new(engine, 2, &[]).unwrap();
        let mut buffer = pool(1).0.pop().unwrap();
        let mut cases =
            vec![(0, 0), (0, CHUNK_BYTES + BLOCK_BYTES), (i64::MAX as u64 - 4095, BLOCK_BYTES)];
        if matches!(file.mode(), Mode::Direct { .. }) {
            cases.extend([(0, 100), (0, BLOCK_BYTES + 1), (100, BLOCK_BYTES), (1, CHUNK_BYTES)]);
        } else {
            testing::say_skipped(
                "sizes_and_offsets_that_direct_io_cannot_do_are_refused_in_words (alignment part)",
                format_args!("the temporary directory has no direct I/O: {:?}", file.mode()),
            );
        }
        for (offset, length) in cases {
            let refused = writer.submit(&file, offset, buffer, length, 0).unwrap_err();
            let Refusal::Failed(error) = refused.reason else { panic!("the queue is not full") };
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
            let start = format!("writing {length} bytes at offset {offset} of ");
            assert!(error.to_string().starts_with(&start), "{error}");
            buffer = refused.buffer;
        }
        assert_eq!((writer.in_flight(), file.size_bytes().unwrap()), (0, 0));
    }
}

#[test]
fn a_dropped_writer_has_written_what_was_in_flight() {
    for engine in engines("a_dropped_writer_has_written_what_was_in_flight") {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = Arc::new(DirectFile::create(&path).unwrap());
        let (buffers, region) = pool(16);
        let mut writer = DirectWriter::new(engine, 16, &[Arc::clone(&region)]).unwrap();
        let mut expected = Vec::new();
        for (tag, mut buffer) in buffers.into_iter().enumerate() {
            fill(&mut buffer, tag as u64);
            expected.extend_from_slice(&buffer);
            let offset = (tag * CHUNK_BYTES) as u64;
            writer.submit(&file, offset, buffer, CHUNK_BYTES, tag as u64).unwrap();
        }
        drop(writer);
        assert_eq!(Arc::strong_count(&region), 1, "buffers and registration are gone");
        assert_eq!(Arc::strong_count(&file), 1);
        assert!(fs::read(path).unwrap() == expected, "{engine:?}");
    }
}

#[test]
fn a_writer_made_here_works_in_another_thread_and_can_be_dropped_in_a_third() {
    for engine in
        engines("a_writer_made_here_works_in_another_thread_and_can_be_dropped_in_a_third")
    {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = Arc::new(DirectFile::create(&path).unwrap());
        let (mut buffers, region) = pool(1);
        let mut writer = DirectWriter::new(engine, 4, &[region]).unwrap();
        let mut buffer = buffers.pop().unwrap();
        fill(&mut buffer, 5);
        let expected = buffer.to_vec();
        let writer = std::thread::spawn(move || {
            let mut completions = Vec::new();
            writer.submit(&file, 0, buffer, CHUNK_BYTES, 1).unwrap();
            writer.complete_all(&mut completions).unwrap();
            let buffer = completions.pop().unwrap().buffer;
            writer.submit(&file, CHUNK_BYTES as u64, buffer, CHUNK_BYTES, 2).unwrap();
            writer
        })
        .join()
        .unwrap();
        drop(writer);
        let written = fs::read(path).unwrap();
        // The second write may be cancelled by the end of its thread; the first was complete.
        assert!(written[..CHUNK_BYTES] == expected, "{engine:?}");
    }
}

#[test]
fn polling_and_limited_waits_return_and_lose_nothing() {
    for engine in engines("polling_and_limited_waits_return_and_lose_nothing") {
        let directory = tempfile::tempdir().unwrap();
        let file = Arc::new(DirectFile::create(directory.path().join("file")).unwrap());
        let (mut buffers, region) = pool(1);
        let mut writer = DirectWriter::new(engine, 4, &[region]).unwrap();
        let mut completions = Vec::new();
        for wait in [Wait::Poll, Wait::limit(Duration::ZERO), Wait::One] {
            assert_eq!(writer.complete(wait, &mut completions).unwrap(), 0, "none in flight");
        }
        for wait in [Wait::Poll, Wait::limit(Duration::from_millis(20))] {
            let buffer = buffers.pop().unwrap();
            writer.submit(&file, 0, buffer, CHUNK_BYTES, 3).unwrap();
            while writer.in_flight() > 0 {
                writer.complete(wait, &mut completions).unwrap();
            }
            let completion = completions.pop().unwrap();
            assert_eq!((completion.tag, completion.result.unwrap()), (3, CHUNK_BYTES));
            assert!(completion.latency_ns > 0);
            buffers.push(completion.buffer);
        }
    }
}

#[test]
fn errors_of_the_device_come_back_with_the_buffer() {
    for engine in engines("errors_of_the_device_come_back_with_the_buffer") {
        let file = Arc::new(DirectFile::open("/dev/full").unwrap());
        assert!(matches!(file.mode(), Mode::Buffered { .. }), "{:?}", file.mode());
        let (mut buffers, region) = pool(1);
        let mut writer = DirectWriter::new(engine, 2, &[region]).unwrap();
        let mut buffer = buffers.pop().unwrap();
        fill(&mut buffer, 77);
        let content = buffer.to_vec();
        writer.submit(&file, 0, buffer, 1000, 11).unwrap();
        let mut completions = Vec::new();
        writer.complete_all(&mut completions).unwrap();
        let completion = completions.pop().unwrap();
        let error = completion.result.unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace, "{engine:?}: {error}");
        assert!(error.to_string().contains("/dev/full"), "{error}");
        assert_eq!((completion.tag, completion.buffer.to_vec()), (11, content));
    }
}

#[test]
fn files_are_never_overwritten_by_creating_and_kept_by_opening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, b"precious").unwrap();
    let error = DirectFile::create(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy, "{error}");
    let file = DirectFile::open(&path).unwrap();
    assert_eq!((file.size_bytes().unwrap(), fs::read(&path).unwrap()), (8, b"precious".to_vec()));
    let missing = DirectFile::open(directory.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound, "{missing}");
}

#[test]
fn preallocation_sets_the_size_and_truncation_cuts_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = DirectFile::create(directory.path().join("file")).unwrap();
    match file.preallocate(1 << 20).unwrap() {
        Preallocation::Reserved => {
            use std::os::unix::fs::MetadataExt;
            assert!(file.file().metadata().unwrap().blocks() * 512 >= 1 << 20);
        }
        Preallocation::Sparse { reason } => assert!(!reason.is_empty()),
    }
    assert_eq!(file.size_bytes().unwrap(), 1 << 20);
    file.preallocate(4096).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 1 << 20, "a smaller wish takes nothing away");
    file.truncate(8192).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 8192);
    assert_eq!(file.file().metadata().unwrap().len(), 8192);
}

#[test]
fn senseless_writers_are_refused() {
    for (engine, depth) in [
        (Engine::Auto, 0),
        (Engine::IoUring, 5000),
        (Engine::PwritePool { threads: 0 }, 4),
        (Engine::PwritePool { threads: 2 }, 0),
    ] {
        let error = DirectWriter::new(engine, depth, &[]).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
    }
}

#[test]
fn a_writer_says_what_it_uses() {
    let (_, region) = pool(1);
    let auto = DirectWriter::new(Engine::Auto, 4, &[region]).unwrap();
    match auto.engine() {
        Engine::IoUring => assert!(auto.description().starts_with("io_uring, depth 4, ")),
        Engine::PwritePool { .. } => assert!(auto.description().contains(", since "), "{auto:?}"),
        Engine::Auto => panic!("the engine in use is never Auto"),
    }
    let pool = DirectWriter::new(Engine::PwritePool { threads: 9 }, 4, &[]).unwrap();
    assert_eq!(pool.engine(), Engine::PwritePool { threads: 4 });
    assert_eq!(pool.description(), "pwrite pool of 4 threads, depth 4");
}
