//! How fast packets are recorded and found, next to a loop that only writes.
//!
//! `cargo bench -p store --bench recorder [-- DIRECTORY…]`; without directories /dev/shm and the
//! temporary directory. Each line is one run; ratios are to the plain loop of the same directory in
//! the same run.
#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::chunk::CHUNK_BYTES;
use store::{Append, Find, Interface, LinkType, Recorder, RecorderConfig, Selection};
use sys::direct_io::{DirectFile, DirectWriter, Engine, Wait};
use sys::memory::Buffers;

/// Bytes written in each run.
const RUN_BYTES: u64 = 3 << 30;
const SEGMENT_BYTES: u64 = 1 << 30;
const DEPTH: usize = 16;

fn main() {
    let named: Vec<PathBuf> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).map(PathBuf::from).collect();
    let directories =
        if named.is_empty() { vec!["/dev/shm".into(), std::env::temp_dir()] } else { named };
    for directory in directories {
        for length in [60, 1514] {
            let plain = plain_gigabytes_per_second(&directory);
            println!("{}: plain loop {plain:.2} GB/s", directory.display());
            run(&directory, length, plain);
        }
    }
    append_alone(60);
    append_alone(1514);
}

fn scratch(directory: &Path) -> PathBuf {
    let scratch = directory.join(format!("linerate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("the directory can be written");
    scratch
}

/// Writes the same amount in chunks of 1 MiB to preallocated files, flushed at their ends.
fn plain_gigabytes_per_second(directory: &Path) -> f64 {
    let scratch = scratch(directory);
    let pool = Buffers::new(DEPTH as u32, CHUNK_BYTES).expect("memory");
    let region = Arc::clone(pool.region());
    let mut buffers = pool.split();
    buffers.iter_mut().for_each(|buffer| buffer.fill(0x5a));
    let mut writer = DirectWriter::new(Engine::Auto, DEPTH, &[region]).expect("a writer");
    let begin = Instant::now();
    let mut done = Vec::new();
    for number in 0..RUN_BYTES / SEGMENT_BYTES {
        let file = DirectFile::create(scratch.join(number.to_string())).expect("a file");
        file.preallocate(SEGMENT_BYTES).expect("room");
        let file = Arc::new(file);
        for offset in (0..SEGMENT_BYTES).step_by(CHUNK_BYTES) {
            if buffers.is_empty() {
                writer.complete(Wait::One, &mut done).expect("completions");
                buffers.extend(done.drain(..).map(|completion| completion.buffer));
            }
            let buffer = buffers.pop().expect("a buffer");
            writer.submit(&file, offset, buffer, CHUNK_BYTES, 0).expect("a write");
        }
        writer.complete_all(&mut done).expect("completions");
        buffers.extend(done.drain(..).map(|completion| completion.buffer));
        file.sync_data().expect("a flush");
    }
    let seconds = begin.elapsed().as_secs_f64();
    std::fs::remove_dir_all(scratch).expect("the files can be removed");
    RUN_BYTES as f64 / seconds / 1e9
}

fn config(directory: &Path, pool_bytes: u64) -> RecorderConfig {
    let mut config = RecorderConfig::new(directory, Interface::new(LinkType::ETHERNET, 262_144));
    config.segment_bytes = SEGMENT_BYTES;
    config.pool_bytes = pool_bytes;
    config
}

/// Appends packets as fast as the pool allows, waiting where it is used up, then finds them.
fn run(directory: &Path, length: usize, plain: f64) {
    let scratch = scratch(directory);
    let (mut recorder, _) = Recorder::open(config(&scratch, 256 << 20)).expect("a recorder");
    let engine = recorder.engine().to_string();
    let data = vec![0x45; length];
    let packets = RUN_BYTES / (length as u64 + 35);
    let begin = Instant::now();
    for number in 0..packets {
        while recorder.append(number, &data, length as u32) != Append::Stored {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    let summary = recorder.finish().expect("a summary");
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!(summary.counters.stored.packets, packets);
    let bytes: u64 = summary.segments.iter().map(|segment| segment.bytes).sum();
    let rate = bytes as f64 / seconds / 1e9;
    println!(
        "  record {length} bytes: {:.2} Mpps, {rate:.2} GB/s = {:.0} % of the plain loop ({engine})",
        packets as f64 / seconds / 1e6,
        100.0 * rate / plain,
    );
    for (what, selection) in [
        ("all", Selection::default()),
        ("a missing port of all", Selection { ports: vec![9], ..Selection::default() }),
        ("the middle third", Selection::between(packets / 3, packets * 2 / 3)),
    ] {
        let begin = Instant::now();
        let mut find = Find::open(&[&scratch], selection).expect("a search");
        let mut captured_bytes = 0;
        while let Some(record) = find.next_record().expect("a record") {
            captured_bytes += record.data.len() as u64;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let report = find.report();
        assert_eq!(captured_bytes, report.packets_found * length as u64);
        println!(
            "  find {what}: {} of {} packets, {:.2} Mpps, {:.2} GB/s",
            report.packets_found,
            report.packets_examined,
            report.packets_examined as f64 / seconds / 1e6,
            report.bytes_read as f64 / seconds / 1e9
        );
    }
    std::fs::remove_dir_all(scratch).expect("the files can be removed");
}

/// The cost of appending while the pool is large enough for everything: no waiting for a disk.
fn append_alone(length: usize) {
    let scratch = scratch(Path::new("/dev/shm"));
    let pool_bytes = 1 << 30;
    let (mut recorder, _) = Recorder::open(config(&scratch, pool_bytes)).expect("a recorder");
    let data = vec![0x45; length];
    let packets = (pool_bytes - (2 << 20)) / (length as u64 + 35);
    let begin = Instant::now();
    let mut stored = 0;
    for number in 0..packets {
        stored += u64::from(recorder.append(number, &data, length as u32) == Append::Stored);
    }
    let seconds = begin.elapsed().as_secs_f64();
    recorder.finish().expect("a summary");
    println!(
        "append alone, {length} bytes: {:.1} ns per packet, {:.2} Mpps, {} of {packets} stored",
        seconds * 1e9 / packets as f64,
        packets as f64 / seconds / 1e6,
        stored
    );
    std::fs::remove_dir_all(scratch).expect("the files can be removed");
}
