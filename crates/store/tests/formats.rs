//! Reading and writing pcap and pcapng: every variant that other programs write, put together byte
//! by byte, and round trips through the crate's own writers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod bytes;

use bytes::{File, read};
use proptest::prelude::*;
use store::pcapng::ByteOrder;
use store::{
    CaptureFormat, Direction, Interface, LinkType, PcapPrecision, PcapWriter, PcapngWriter,
    Section, StoreError, TimeResolution, WarningKind,
};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
const SECONDS: u64 = 1_700_000_000;

#[test]
fn pcap_in_both_byte_orders_and_all_magics() {
    let variants: [(u32, u64, &[u8]); 3] =
        [(0xa1b2_c3d4, 1000, &[]), (0xa1b2_3c4d, 1, &[]), (0xa1b2_cd34, 1000, &[7; 8])];
    for order in ORDERS {
        for (magic, unit, extra) in variants {
            let mut file = File::new(order);
            file.pcap_header(magic, 96, 1);
            file.pcap_record(SECONDS as u32, 999_999, &[1, 2, 3], 60, extra);
            file.pcap_record(u32::MAX, 5, &[], 0, extra);
            let outcome = read(&file.bytes);
            assert!(outcome.error.is_none());
            let reader = outcome.reader.unwrap();
            assert_eq!(reader.format(), CaptureFormat::Pcap);
            assert_eq!(reader.offset(), file.bytes.len() as u64);
            assert_eq!(reader.interfaces()[0].snap_length, 96);
            assert!(reader.warnings().is_empty());
            let [first, second] = &outcome.records[..] else { panic!("2 records") };
            assert_eq!(first.time_ns, SECONDS * 1_000_000_000 + 999_999 * unit);
            assert_eq!((&first.data[..], first.original_length), (&[1, 2, 3][..], 60));
            assert_eq!(second.time_ns, u64::from(u32::MAX) * 1_000_000_000 + 5 * unit);
        }
    }
}

#[test]
fn pcap_junk_in_the_link_field_and_fractions_over_a_second_are_warnings() {
    for snap in [0, 65_535, 262_144, u32::MAX] {
        let mut file = File::new(ByteOrder::Big);
        file.pcap_header(0xa1b2_c3d4, snap, 0x3000_0114);
        file.pcap_record(1, 2_500_000, &[1], 1, &[]).pcap_record(4, 1_000_000, &[2], 1, &[]);
        let outcome = read(&file.bytes);
        let times: Vec<u64> = outcome.records.iter().map(|record| record.time_ns).collect();
        assert_eq!(times, [3_500_000_000, 5_000_000_000]);
        let reader = outcome.reader.unwrap();
        assert_eq!(reader.interfaces()[0].link_type, LinkType::LINUX_SLL2);
        let warnings: Vec<_> =
            reader.warnings().iter().map(|w| (w.kind, w.offset, w.count)).collect();
        let junk = WarningKind::LinkFieldJunk { field: 0x3000_0114 };
        assert_eq!(warnings, [(junk, 20, 1), (WarningKind::TimeFraction, 24, 2)]);
    }
}

#[test]
fn pcap_versions_with_swapped_lengths_are_read_and_unknown_ones_refused() {
    let mut file = File::new(ByteOrder::Little);
    file.pcap_header(0xa1b2_c3d4, 0, 1).pcap_record(9, 0, &[1, 2], 60, &[]);
    // Version 2.2 has the original length first; 2.3 either.
    for (minor, swap) in [(2, true), (3, true), (3, false)] {
        let mut bytes = file.bytes.clone();
        bytes[6] = minor;
        if swap {
            bytes[32..40].rotate_left(4);
        }
        let outcome = read(&bytes);
        assert_eq!((outcome.records[0].data.len(), outcome.records[0].original_length), (2, 60));
    }
    for version in [[1, 0, 4, 0], [2, 0, 5, 0], [3, 0, 0, 0]] {
        let mut bytes = file.bytes.clone();
        bytes[4..8].copy_from_slice(&version);
        assert!(matches!(read(&bytes).error, Some(StoreError::Unsupported { offset: 4, .. })));
    }
}

/// Two sections in both byte orders, with every kind of block.
fn everything() -> File {
    let mut file = File::new(ByteOrder::Little);
    for order in ORDERS {
        file.section(order, &[(1, b"made by a test".to_vec()), (4, b"bytes".to_vec())]);
        file.interface(1, 4, &[(2, b"eth0".to_vec()), (9, vec![9]), (2988, vec![1; 9])]);
        let offset = file.n64(-3600_i64 as u64).to_vec();
        file.interface(276, 0, &[(14, offset), (15, b"card".to_vec()), (11, b"\0tcp".to_vec())]);
        let (flags, drops) = (file.n32(0x0100_0002).to_vec(), file.n64(77).to_vec());
        let queue = file.n32(5).to_vec();
        let options =
            [(1, b"odd".to_vec()), (3, vec![2, 1, 2, 3, 4]), (2, flags), (4, drops), (6, queue)];
        file.enhanced(0, SECONDS * 1_000_000_000 + 7, &[1, 2, 3], 60, &options);
        file.block(0x0bad, &[1; 12]).block(0x4000_0bad, &[0; 5]).block(0x8000_0abc, &[0xff; 400]);
        file.simple(60, &[9, 8, 7, 6]);
        file.block(4, &[0; 4]).block(9, b"__CURSOR=1\n").block(10, &[1; 21]).block(0x0bff, &[]);
        let flags = file.n32(1).to_vec();
        file.obsolete(1, 3, (SECONDS + 3600) * 1_000_000, &[5; 5], 5, &[(2, flags)]);
        file.obsolete(1, u16::MAX, (SECONDS + 3600) * 1_000_000, &[], 0, &[]);
        let (received, dropped) = (file.n64(100).to_vec(), file.n64(4).to_vec());
        let start = file.time(SECONDS * 1_000_000_000).to_vec();
        file.statistics(0, 5, &[(2, start), (4, received), (5, dropped.clone())]);
        file.statistics(0, 6, &[(5, file.n64(9).to_vec()), (7, dropped)]);
        file.enhanced(1, (SECONDS + 3600) * 1_000_000 + 1, &[1], 1, &[]);
    }
    file
}

#[test]
fn pcapng_with_every_kind_of_block_in_two_sections() {
    let file = everything();
    let outcome = read(&file.bytes);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let reader = outcome.reader.unwrap();
    assert!(reader.warnings().is_empty(), "{:?}", reader.warnings());
    assert_eq!((reader.format(), reader.interfaces().len()), (CaptureFormat::Pcapng, 4));
    assert_eq!(reader.sections().len(), 2);
    assert_eq!(reader.sections()[1].application.as_deref(), Some("bytes"));
    assert_eq!(outcome.records.len(), 10);
    for (section, records) in outcome.records.chunks(5).enumerate() {
        let first = 2 * section as u32;
        let eth0 = &reader.interfaces()[first as usize];
        assert_eq!((eth0.name.as_deref(), eth0.snap_length), (Some("eth0"), 4));
        let other = &reader.interfaces()[first as usize + 1];
        assert_eq!((other.time_offset_s, other.filter.as_deref()), (-3600, Some("tcp")));
        assert_eq!(other.link_type, LinkType::LINUX_SLL2);
        let of: Vec<u32> = records.iter().map(|record| record.interface - first).collect();
        assert_eq!(of, [0, 0, 1, 1, 1]);
        let base = SECONDS * 1_000_000_000;
        let times: Vec<u64> = records.iter().map(|record| record.time_ns).collect();
        assert_eq!(times, [base + 7, 0, base, base, base + 1000]);
        let datas: Vec<&[u8]> = records.iter().map(|record| &record.data[..]).collect();
        assert_eq!(datas, [&[1, 2, 3][..], &[9, 8, 7, 6], &[5; 5], &[], &[1]]);
        let record = records[0].record();
        assert_eq!(record.direction(), Some(Direction::Outbound));
        assert_eq!((record.flags.link_errors(), record.queue), (0x0100, Some(5)));
        let drops: Vec<_> = records.iter().map(|record| record.drop_count).collect();
        assert_eq!(drops, [Some(77), None, Some(3), None, None]);
        let statistics = reader.statistics()[section];
        assert_eq!((statistics.interface, statistics.time_ns), (first, 6));
        assert_eq!(statistics.start_time_ns, Some(base));
        assert_eq!(statistics.received_packets, Some(100));
        assert_eq!(statistics.interface_dropped_packets, Some(9));
        assert_eq!(statistics.system_dropped_packets, Some(4));
        assert_eq!(statistics.delivered_packets, None);
    }
}

/// What a time means, by dividing as often as the exponent says: none of the crate's shortcuts.
fn expected_ns(raw: u8, offset_s: i64, ticks: u64) -> u64 {
    let base = if raw & 0x80 == 0 { 10 } else { 2 };
    let ns = (0..raw & 0x7f).fold(u128::from(ticks) * 1_000_000_000, |ns, _| ns / base);
    let shifted = ns as i128 + i128::from(offset_s) * 1_000_000_000;
    u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
}

#[test]
fn pcapng_times_in_every_unit_and_with_any_offset() {
    for order in ORDERS {
        for raw in 0..=u8::MAX {
            for offset in [0, -3600, 7, i64::MIN, i64::MAX] {
                let mut file = File::new(order);
                file.section(order, &[]);
                let offset_bytes = file.n64(offset as u64).to_vec();
                file.interface(1, 0, &[(9, vec![raw]), (14, offset_bytes)]);
                let all = [0, 1, SECONDS, SECONDS << 32 | 0x8000_0001, u64::MAX];
                for ticks in all {
                    file.enhanced(0, ticks, &[], 0, &[]);
                }
                let records = read(&file.bytes).records;
                let times: Vec<u64> = records.iter().map(|record| record.time_ns).collect();
                assert_eq!(times, all.map(|ticks| expected_ns(raw, offset, ticks)), "{raw:#x}");
            }
        }
    }
}

#[test]
fn a_simple_packet_follows_the_snap_length_of_interface_0() {
    for (snap, original, room, expected) in
        [(0, 5, 5, Some(5)), (3, 60, 4, Some(3)), (96, 5, 5, Some(5)), (96, 60, 8, None)]
    {
        let mut file = File::new(ByteOrder::Big);
        file.section(ByteOrder::Big, &[]).interface(1, snap, &[]);
        file.simple(original, &vec![1; room]);
        let outcome = read(&file.bytes);
        assert_eq!(outcome.records.first().map(|record| record.data.len()), expected);
        assert_eq!(outcome.error.is_some(), expected.is_none());
    }
}

#[test]
fn packets_and_statistics_of_unknown_interfaces_are_corruption() {
    let mut file = File::new(ByteOrder::Little);
    file.section(ByteOrder::Little, &[]).interface(1, 0, &[]).enhanced(0, 1, &[1], 1, &[]);
    let mut later = file.clone();
    let at = file.bytes.len() as u64;
    file.enhanced(1, 2, &[1], 1, &[]);
    later.statistics(7, 2, &[]);
    for (file, said) in [(file, "a packet of interface 1"), (later, "statistics of interface 7")] {
        match read(&file.bytes).error {
            Some(StoreError::Corrupt { offset, packets_before: 1, what, .. }) => {
                assert_eq!(offset, at);
                assert!(what.contains(said), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
    // A new section forgets the interfaces of the one before.
    let mut file = File::new(ByteOrder::Little);
    file.section(ByteOrder::Little, &[]).interface(1, 0, &[]).section(ByteOrder::Big, &[]);
    file.enhanced(0, 1, &[1], 1, &[]);
    assert!(matches!(read(&file.bytes).error, Some(StoreError::Corrupt { .. })));
}

#[test]
fn options_that_do_not_fit_are_a_warning_and_the_packet_is_kept() {
    let mut file = File::new(ByteOrder::Little);
    file.section(ByteOrder::Little, &[]).interface(1, 0, &[(9, vec![])]);
    file.enhanced(0, 1, &[1], 1, &[(4, vec![1, 2])]);
    let mut body = [0_u32, 0, 1, 0, 0].map(u32::to_le_bytes).concat();
    body.extend([4, 0, 200, 0]);
    file.block(6, &body);
    let outcome = read(&file.bytes);
    assert_eq!((outcome.records.len(), outcome.error.is_none()), (2, true));
    let reader = outcome.reader.unwrap();
    let [warning] = reader.warnings() else { panic!("{:?}", reader.warnings()) };
    assert_eq!(
        (warning.kind, warning.offset, warning.count),
        (WarningKind::MalformedOptions, 28, 3)
    );
}

#[test]
fn a_capture_of_odd_units_can_be_copied_in_nanoseconds() {
    let whole = read(&everything().bytes);
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    for interface in whole.reader.unwrap().interfaces() {
        writer.add_interface(&interface.in_nanoseconds()).unwrap();
    }
    for record in &whole.records {
        writer.write_record(&record.record()).unwrap();
    }
    assert_eq!(read(&writer.finish().unwrap()).records, whole.records);
}

fn interface_of(link_type: LinkType, resolution: u8) -> Interface {
    let mut interface = Interface::new(link_type, 0);
    interface.time_resolution = TimeResolution::from_raw(resolution);
    interface
}

fn any_record() -> impl Strategy<Value = bytes::Owned> {
    let data = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(any::<u8>(), 1500..1600),
    ];
    let times = 1_u64..4_294_967_295_999_999_999;
    let known = (any::<u32>(), any::<Option<u32>>(), any::<Option<u64>>());
    (times, data, any::<u32>(), 0_u32..2, prop_oneof![Just((0, None, None)), known]).prop_map(
        |(time_ns, data, original_length, interface, (flags, queue, drop_count))| bytes::Owned {
            time_ns,
            data,
            original_length,
            interface,
            flags,
            queue,
            drop_count,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pcapng_gives_back_what_was_written(
        records in prop::collection::vec(any_record(), 0..40),
        comment in any::<Option<String>>(),
    ) {
        // A text ends at its first zero on reading, as libpcap's do.
        let comment = comment.map(|text| text.replace('\0', " "));
        let section = Section { comment, ..Section::default() };
        let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
        let interfaces =
            [interface_of(LinkType::ETHERNET, 9), interface_of(LinkType::RAW, 0x80 | 31)];
        for interface in &interfaces {
            writer.add_interface(interface).unwrap();
        }
        for record in &records {
            writer.write_record(&record.record()).unwrap();
        }
        let outcome = read(&writer.finish().unwrap());
        prop_assert!(outcome.error.is_none());
        let reader = outcome.reader.unwrap();
        prop_assert_eq!(reader.interfaces(), &interfaces[..]);
        prop_assert_eq!(&reader.sections()[0], &section);
        prop_assert_eq!(outcome.records, records);
    }

    #[test]
    fn pcap_gives_back_what_was_written(
        records in prop::collection::vec(any_record(), 0..40),
        microseconds: bool,
    ) {
        let (precision, unit) = match microseconds {
            true => (PcapPrecision::Microseconds, 1000),
            false => (PcapPrecision::Nanoseconds, 1),
        };
        let mut writer =
            PcapWriter::new(Vec::new(), LinkType::LINUX_SLL2, 65_535, precision).unwrap();
        for record in &records {
            writer.write_record(&record.record()).unwrap();
        }
        let outcome = read(&writer.finish().unwrap());
        prop_assert!(outcome.error.is_none());
        prop_assert_eq!(outcome.reader.unwrap().interfaces()[0].link_type, LinkType::LINUX_SLL2);
        let expected: Vec<_> = records
            .into_iter()
            .map(|record| bytes::Owned {
                time_ns: record.time_ns / unit * unit,
                interface: 0,
                flags: 0,
                queue: None,
                drop_count: None,
                ..record
            })
            .collect();
        prop_assert_eq!(outcome.records, expected);
    }
}
