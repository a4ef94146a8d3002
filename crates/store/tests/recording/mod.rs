//! What the tests of recordings share.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use store::{Append, CaptureReader, Interface, LinkType, Recorder, RecorderConfig};

/// A packet as it was appended or read.
pub type Packet = (u64, Vec<u8>, u32);

/// Small segments and a small pool, so that tests meet their ends.
pub fn config(directory: &Path) -> RecorderConfig {
    let mut interface = Interface::new(LinkType::ETHERNET, 262_144);
    interface.name = Some("test0".into());
    interface.filter = Some("ip or arp".into());
    let mut config = RecorderConfig::new(directory, interface);
    config.segment_bytes = 4 << 20;
    config.pool_bytes = 8 << 20;
    config.sync_interval = Some(Duration::from_millis(50));
    config
}

/// Appends a packet, after waiting for the disk if the pool is used up, so that none is lost.
pub fn append(recorder: &mut Recorder, time_ns: u64, data: &[u8], original_length: u32) {
    while recorder.free_chunks() == 0 {
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(recorder.append(time_ns, data, original_length), Append::Stored);
}

/// Files of a directory with this ending, sorted by name.
pub fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

/// All packets of a capture, in its order.
pub fn packets(path: &Path) -> Vec<Packet> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        packets.push((record.time_ns, record.data.to_vec(), record.original_length));
    }
    assert_eq!(reader.warnings(), []);
    packets
}

/// All packets of all sealed segments, in the order of their names.
pub fn all_packets(directory: &Path) -> Vec<Packet> {
    files(directory, ".pcapng").iter().flat_map(|path| packets(path)).collect()
}

/// Whether a program is there; says so by name if not.
pub fn has_program(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        testing::say_skipped(test, format_args!("{program} is not installed"));
    }
    found
}

/// Runs a program that must succeed and say nothing on standard error beyond what is expected.
pub fn run(program: &str, arguments: &[&str], quiet: bool) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    let relevant: Vec<&str> =
        errors.lines().filter(|line| !line.contains("Running as user")).collect();
    assert!(!quiet || relevant.is_empty(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A simple generator of numbers, the same everywhere for one seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
