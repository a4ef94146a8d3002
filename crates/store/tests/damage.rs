//! Damaged, cut and foreign files: every good packet is delivered, the error is the right one, and
//! nothing panics or runs forever.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod bytes;

use std::io::{self, Cursor, Read};

use bytes::{File, Outcome, read, read_from};
use proptest::prelude::*;
use store::pcapng::ByteOrder;
use store::{
    CaptureReader, Interface, LinkType, MAXIMUM_CAPTURED_LENGTH, PcapPrecision, PcapWriter,
    PcapngWriter, Record, Section, StoreError, WarningKind,
};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn pcap(order: ByteOrder, magic: u32, extra: &[u8]) -> File {
    let mut file = File::new(order);
    file.pcap_header(magic, 65_535, 1);
    for n in 1..6_u32 {
        file.pcap_record(1_700_000_000 + n, n, &vec![n as u8; 7 * n as usize], 99, extra);
    }
    file
}

fn pcapng() -> File {
    let mut file = File::new(ByteOrder::Little);
    for order in ORDERS {
        file.section(order, &[(4, b"a test".to_vec())]);
        file.interface(1, 0, &[(9, vec![9])]);
        file.enhanced(0, 1 << 60, &[1; 5], 60, &[]).block(0x0bad, &[1; 9]);
        file.enhanced(0, 1 << 60, &[2; 14], 60, &[(1, b"hello".to_vec())]);
        file.statistics(0, 1 << 60, &[(4, vec![1; 8])]).simple(3, &[3; 3]);
        file.obsolete(0, 1, 1 << 60, &[4; 4], 4, &[]);
    }
    file
}

fn all_files() -> Vec<File> {
    let mut files = vec![pcapng()];
    for order in ORDERS {
        files.push(pcap(order, 0xa1b2_c3d4, &[]));
        files.push(pcap(order, 0xa1b2_3c4d, &[]));
        files.push(pcap(order, 0xa1b2_cd34, &[1; 8]));
    }
    files
}

#[test]
fn a_cut_at_every_byte_delivers_what_stands_before_it() {
    for file in all_files() {
        let whole = read(&file.bytes);
        assert!(whole.error.is_none());
        for cut in 0..file.bytes.len() {
            // Parts that begin before the cut: all but the last of them are whole.
            let begun = file.parts.iter().take_while(|(begin, _)| *begin < cut).count();
            let at_boundary = file.parts.iter().any(|(begin, _)| *begin == cut);
            let complete = if at_boundary { begun } else { begun.saturating_sub(1) };
            let packets = file.parts[..complete].iter().filter(|(_, packet)| *packet).count();
            let outcome = read(&file.bytes[..cut]);
            assert_eq!(outcome.records, whole.records[..packets], "cut at {cut}");
            match outcome.error {
                Some(StoreError::Empty { .. }) => assert_eq!(cut, 0),
                Some(StoreError::Truncated { offset, packets_before, .. }) => {
                    assert!(!at_boundary);
                    assert_eq!(offset, file.parts[begun - 1].0 as u64, "cut at {cut}");
                    assert_eq!(packets_before, packets as u64);
                }
                None => assert!(at_boundary && cut > 0, "cut at {cut} went unnoticed"),
                Some(other) => panic!("cut at {cut}: {other}"),
            }
        }
    }
}

/// Gives a few bytes at a time, with interruptions.
struct Dribble {
    bytes: Cursor<Vec<u8>>,
    step: usize,
    calls: usize,
}

impl Read for Dribble {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let room = into.len().min(self.step);
        self.bytes.read(&mut into[..room])
    }
}

#[test]
fn bytes_that_come_one_by_one_give_the_same() {
    for file in all_files() {
        let whole = read(&file.bytes);
        for step in [1, 3, 50] {
            let bytes = Cursor::new(file.bytes.clone());
            let outcome = read_from(Dribble { bytes, step, calls: 0 });
            assert!(outcome.error.is_none());
            assert_eq!(outcome.records, whole.records);
        }
    }
}

#[test]
fn records_that_straddle_the_buffer_and_huge_blocks_are_read() {
    let mut file = File::new(ByteOrder::Big);
    file.section(ByteOrder::Big, &[]).interface(1, 0, &[]);
    file.block(0x8000_0001, &vec![1; (16 << 20) - 12]);
    for n in 0..60_u32 {
        let length = [MAXIMUM_CAPTURED_LENGTH, 65_537, 1, 0][n as usize % 4] as usize;
        file.enhanced(0, u64::from(n), &vec![n as u8; length], u32::MAX, &[]);
    }
    let outcome = read(&file.bytes);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.records.len(), 60);
    for (n, record) in outcome.records.iter().enumerate() {
        assert_eq!(record.data.len(), [262_144, 65_537, 1, 0][n % 4]);
        assert!(record.data.iter().all(|byte| *byte == n as u8));
    }
}

#[test]
fn a_tail_of_zeros_is_a_warning_and_no_packet() {
    for (file, phantom) in all_files().into_iter().zip([false, true, true, true, true, true, true])
    {
        let whole = read(&file.bytes).records;
        let to_sector = file.bytes.len().next_multiple_of(512) - file.bytes.len();
        for zeros in [to_sector, 24, 48, 4096, 5_000_000] {
            let mut bytes = file.bytes.clone();
            bytes.resize(bytes.len() + zeros, 0);
            let outcome = read(&bytes);
            assert!(outcome.error.is_none(), "{zeros}: {:?}", outcome.error);
            assert_eq!(outcome.records, whole, "{zeros}");
            let reader = outcome.reader.unwrap();
            let [warning] = reader.warnings() else { panic!("{:?}", reader.warnings()) };
            assert_eq!(warning.kind, WarningKind::ZeroTail);
            assert_eq!(warning.offset, file.bytes.len() as u64);
            assert_eq!(warning.count, zeros as u64);
            assert_eq!(reader.offset(), bytes.len() as u64);
        }
        // Seven zeros are the end of a preallocated file only at the end of a sector.
        if phantom {
            let mut bytes = file.bytes.clone();
            bytes.resize(bytes.len() + 7, 0);
            let error = read(&bytes).error;
            assert!(matches!(error, Some(StoreError::Truncated { .. })), "{error:?}");
        }
    }
}

#[test]
fn a_short_zero_tail_that_ends_a_sector_is_recognised_in_pcap() {
    let mut file = pcap(ByteOrder::Little, 0xa1b2_c3d4, &[]);
    let room = 1024 - 7 - file.bytes.len() - 16;
    file.pcap_record(1, 1, &vec![1; room], 1, &[]);
    file.bytes.resize(1024, 0);
    let outcome = read(&file.bytes);
    assert!(outcome.error.is_none());
    assert_eq!(outcome.records.len(), 6);
    assert_eq!(outcome.reader.unwrap().warnings()[0].count, 7);
}

#[test]
fn a_hole_of_zeros_is_corruption_where_it_begins() {
    for file in all_files() {
        let whole = read(&file.bytes).records;
        let mut bytes = file.bytes.clone();
        let hole = bytes.len() as u64;
        bytes.resize(bytes.len() + 8192, 0);
        bytes.extend([6, 0, 0, 0].repeat(10));
        let outcome = read(&bytes);
        assert_eq!(outcome.records, whole);
        match outcome.error {
            Some(StoreError::Corrupt { offset, what, .. }) => {
                assert_eq!(offset, hole);
                assert!(what.contains("zero bytes"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn pcap_packets_without_time_and_bytes_are_packets_if_others_follow() {
    let mut file = File::new(ByteOrder::Little);
    file.pcap_header(0xa1b2_c3d4, 0, 1).pcap_record(0, 0, &[], 0, &[]).pcap_record(
        0,
        0,
        &[],
        0,
        &[],
    );
    file.pcap_record(0, 0, &[], 60, &[]).pcap_record(5, 0, &[1], 1, &[]);
    let outcome = read(&file.bytes);
    assert!(outcome.error.is_none());
    let lengths: Vec<u32> = outcome.records.iter().map(|record| record.original_length).collect();
    assert_eq!(lengths, [0, 0, 60, 1]);
}

#[test]
fn absurd_lengths_are_named() {
    let said = |bytes: &[u8], text: &str| {
        let Outcome { records, error, .. } = read(bytes);
        match error {
            Some(StoreError::Corrupt { what, packets_before, .. }) => {
                assert!(what.contains(text), "{what}");
                assert_eq!(packets_before, records.len() as u64);
            }
            other => panic!("{text}: {other:?}"),
        }
    };
    let mut file = File::new(ByteOrder::Little);
    file.pcap_header(0xa1b2_c3d4, 0, 1).pcap_record(1, 1, &vec![0; 300_000], 300_000, &[]);
    said(&file.bytes, "captured length 300000; the longest accepted is 262144");

    let mut start = File::new(ByteOrder::Little);
    start.section(ByteOrder::Little, &[]).interface(1, 0, &[]).enhanced(0, 1, &[1], 1, &[]);
    let mut file = start.clone();
    file.enhanced(0, 1, &vec![0; 262_145], 300_000, &[]);
    said(&file.bytes, "captured length 262145; the longest accepted is 262144");
    let mut file = start.clone();
    file.block(6, &[0_u32, 0, 0, 9, 9, 0, 0].map(u32::to_le_bytes).concat());
    said(&file.bytes, "captured length 9 in a block with room for 8 bytes");
    said(&[&start.bytes[..], &[6, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]].concat(), "length 8;");
    said(&[&start.bytes[..], &[6, 0, 0, 0, 34, 0, 0, 0, 0, 0, 0, 0]].concat(), "length 34;");
    said(&[&start.bytes[..], &[6, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0, 0]].concat(), "length 16777220;");
    let mut file = start.clone();
    let end = file.bytes.len();
    file.bytes[end - 4] = 40;
    said(&file.bytes, "begins with length 36 and ends with length 40");
    let mut file = start;
    file.bytes.extend([0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4]);
    said(&file.bytes, "byte-order magic 0x04030201");
}

#[test]
fn files_that_are_no_captures_are_refused_with_what_they_are() {
    let refused = |bytes: &[u8]| read(bytes).error.unwrap().to_string();
    assert!(refused(&[]).contains("is empty"));
    let compressed: [(&[u8], &str, &str); 6] = [
        (&[0x1f, 0x8b, 8, 0], "gzip", "`zcat made.pcap > FILE`"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstdcat"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4cat"),
        (b"\xfd7zXZ\0", "xz", "xzcat"),
        (b"BZh9", "bzip2", "bzcat"),
        (&[0x1f, 0x9d, 0], "compress", "zcat"),
    ];
    for (bytes, compression, command) in compressed {
        let text = refused(bytes);
        assert!(text.contains(&format!("compressed with {compression};")), "{text}");
        assert!(text.contains(command), "{text}");
    }
    let text = refused(b"hello, world");
    assert!(text.contains("begins with 68 65 6c 6c 6f 2c 20 77;"), "{text}");
    assert!(text.contains("a1b2c3d4") && text.contains("0a0d0d0a"), "{text}");
    assert!(refused(b"\x7fELF").contains("a program"));
    assert!(refused(&[0; 4096]).contains("nothing was written"));
    assert!(refused(b"x").contains("begins with 78;"));
    let version: Vec<u8> = [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 2, u32::MAX, u32::MAX, 28]
        .map(u32::to_le_bytes)
        .concat();
    assert!(refused(&version).contains("pcapng version 2.0 is not supported"));
}

#[test]
fn what_the_kernel_refuses_names_file_and_place() {
    let missing = CaptureReader::open("/nonexistent/a.pcap").unwrap_err();
    assert_eq!(missing.io_kind(), Some(io::ErrorKind::NotFound));
    assert!(missing.to_string().contains("/nonexistent/a.pcap"));
    let directory = tempfile::tempdir().unwrap();
    let error = CaptureReader::open(directory.path()).unwrap_err();
    assert_eq!(error.io_kind(), Some(io::ErrorKind::IsADirectory), "{error}");

    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let bytes = pcap(ByteOrder::Little, 0xa1b2_c3d4, &[]).bytes;
    let length = bytes.len() as u64;
    let outcome = read_from(Cursor::new(bytes).chain(Failing));
    assert_eq!(outcome.records.len(), 5);
    assert!(matches!(outcome.error, Some(StoreError::Read { offset, .. }) if offset == length));
}

#[test]
fn a_reader_that_went_away_shows_as_a_broken_pipe() {
    struct Closed;
    impl io::Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let record = Record::new(1, &[0; 1000]);
    let mut writer = PcapngWriter::new(Closed, &Section::default()).unwrap();
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
    let error = (0..2000).find_map(|_| writer.write_record(&record).err()).unwrap();
    assert_eq!(error.io_kind(), Some(io::ErrorKind::BrokenPipe));
    let mut writer =
        PcapWriter::new(Closed, LinkType::ETHERNET, 0, PcapPrecision::Nanoseconds).unwrap();
    writer.write_record(&record).unwrap();
    assert_eq!(writer.finish().err().unwrap().io_kind(), Some(io::ErrorKind::BrokenPipe));
}

#[test]
fn what_a_format_cannot_hold_is_refused_before_anything_is_written() {
    let longest = vec![1; MAXIMUM_CAPTURED_LENGTH as usize];
    let too_long = vec![1; MAXIMUM_CAPTURED_LENGTH as usize + 1];
    let mut pcap =
        PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0, PcapPrecision::Nanoseconds).unwrap();
    let mut pcapng = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    let mut interface = Interface::new(LinkType::ETHERNET, 0);
    interface.time_offset_s = 10;
    pcapng.add_interface(&interface).unwrap();
    let time_ns = 20_000_000_000;
    pcap.write_record(&Record::new(time_ns, &longest)).unwrap();
    pcapng.write_record(&Record::new(time_ns, &longest)).unwrap();
    let long = Record::new(time_ns, &too_long);
    let refused = |result: Result<(), StoreError>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(pcap.write_record(&long), "262145 captured bytes");
    refused(pcapng.write_record(&long), "262145 captured bytes");
    refused(pcap.write_record(&Record::new(u64::MAX, &[])), "ends in 2106");
    refused(pcapng.write_record(&Record::new(1, &[])), "the time 1 ns");
    let elsewhere = Record { interface: 1, ..Record::new(time_ns, &[]) };
    refused(pcapng.write_record(&elsewhere), "a packet of interface 1; 1 interfaces were added");
    for bytes in [pcap.finish().unwrap(), pcapng.finish().unwrap()] {
        let outcome = read(&bytes);
        assert!(outcome.error.is_none());
        assert_eq!(outcome.records.len(), 1);
        assert_eq!(outcome.records[0].data, longest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mutated_files_never_panic_and_always_end(
        which in 0_usize..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..12),
    ) {
        let mut bytes = all_files().swap_remove(which).bytes;
        for (place, value, kind) in changes {
            let place = place.index(bytes.len());
            match kind {
                0 => bytes[place] = value,
                1 => bytes.insert(place, value),
                _ => drop(bytes.remove(place)),
            }
        }
        let length = bytes.len();
        let outcome = read(&bytes);
        prop_assert!(outcome.records.len() <= length / 16);
        if let Some(error) = outcome.error {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn random_bytes_after_a_good_header_never_panic(
        which in 0_usize..7,
        tail in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let file = all_files().swap_remove(which);
        let keep = file.parts[2].0;
        let outcome = read(&[&file.bytes[..keep], &tail[..]].concat());
        prop_assert!(outcome.records.len() <= (keep + tail.len()) / 16);
    }
}
