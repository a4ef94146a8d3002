//! Any bytes behind a pcap header: the reader ends, never panics, and never yields more than it read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
];

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (choice, mut bytes) = input;
    // One in six goes unchanged, so that the detection of formats is met too.
    if let (Some(magic), Some(head)) = (MAGICS.get(usize::from(choice % 6)), bytes.get_mut(..4)) {
        head.copy_from_slice(magic);
    }
    let length = bytes.len();
    let Ok(mut reader) = store::CaptureReader::new(Cursor::new(bytes), "input") else { return };
    let mut captured = 0;
    while let Ok(Some(record)) = reader.next_record() {
        captured += record.data.len();
        assert!(captured <= length);
    }
    assert!(matches!(reader.next_record(), Ok(None)), "after its end a reader stays ended");
});
