//! Any bytes behind a section header: the reader ends, never panics, and never yields more than it read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// A section header and an Ethernet interface, little-endian: what follows is the input.
const HEAD: [u8; 48] = [
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20,
    0, 0, 0,
];

fuzz_target!(|input: (bool, &[u8])| {
    let (behind_head, rest) = input;
    let mut bytes = if behind_head { HEAD.to_vec() } else { HEAD[..4].to_vec() };
    bytes.extend_from_slice(rest);
    let length = bytes.len();
    let Ok(mut reader) = store::CaptureReader::new(Cursor::new(bytes), "input") else { return };
    let mut captured = 0;
    while let Ok(Some(record)) = reader.next_record() {
        captured += record.data.len();
        assert!(captured <= length);
        let interface = record.interface as usize;
        assert!(interface < reader.interfaces().len());
    }
    assert!(matches!(reader.next_record(), Ok(None)), "after its end a reader stays ended");
});
