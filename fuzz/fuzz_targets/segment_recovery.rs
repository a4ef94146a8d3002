//! A good segment with damage anywhere: recovery ends, keeps only chunks that are whole, and what it
//! leaves is read to its end without an error. Where not a chunk is left, the file stays as it is.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use store::recover::{Repair, recover_directory};
use store::{CaptureReader, Interface, LinkType, Recorder, RecorderConfig};

/// The bytes of a segment of a few chunks, and how many packets it holds.
fn segment() -> &'static (Vec<u8>, u64) {
    static SEGMENT: OnceLock<(Vec<u8>, u64)> = OnceLock::new();
    SEGMENT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let interface = Interface::new(LinkType::ETHERNET, 0);
        let mut config = RecorderConfig::new(directory.path(), interface);
        config.segment_bytes = 4 << 20;
        config.pool_bytes = 8 << 20;
        let (mut recorder, _) = Recorder::open(config).unwrap();
        let mut packets = 0;
        for round in 0..3u64 {
            for number in 0..50 {
                recorder.append(1_000_000 * (round * 50 + number + 1), &[round as u8; 300], 300);
                packets += 1;
            }
            recorder.flush();
        }
        let summary = recorder.finish().unwrap();
        (std::fs::read(&summary.segments[0].path).unwrap(), packets)
    })
}

fuzz_target!(|damage: (u32, Vec<(u32, u8)>)| {
    let (cut, changes) = damage;
    let (bytes, packets) = segment();
    let mut bytes = bytes.clone();
    for (at, value) in changes {
        let at = at as usize % bytes.len();
        bytes[at] = value;
    }
    if cut != 0 {
        bytes.truncate(cut as usize % bytes.len());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(store::segment::open_name(0, 1));
    std::fs::write(&path, &bytes).unwrap();
    let Ok(report) = recover_directory(directory.path(), Repair::Seal) else { return };
    assert!(report.packets_kept() <= *packets);
    let mut read = 0;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if report.passed_over.contains(&path) {
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        } else if path.extension().is_some_and(|extension| extension == "pcapng") {
            let mut reader = CaptureReader::open(&path).unwrap();
            while reader.next_record().unwrap().is_some() {
                read += 1;
            }
        }
    }
    assert_eq!(read, report.packets_kept(), "what recovery keeps is what is read");
});
