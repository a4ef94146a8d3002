//! What others read: tshark, capinfos, tcpdump and the pcap-parser crate, on files written here and
//! on files put together byte by byte. A tool that is missing skips its test by name.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod bytes;

use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::{File, Owned, read};
use pcap_parser::{Block, PcapBlockOwned, PcapError};
use store::pcapng::{ByteOrder, CustomOption, options};
use store::{
    Interface, InterfaceStatistics, LinkType, PcapPrecision, PcapWriter, PcapngWriter, Section,
    TimeResolution,
};

/// The tool's standard output, or None if it is not installed.
fn run(test: &str, tool: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let output = match Command::new(tool).args(arguments).arg(file).output() {
        Ok(output) => output,
        Err(error) => {
            testing::say_skipped(test, format_args!("{tool}: {error}"));
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Packets of an experimental Ethernet type, of all lengths modulo 4, some cut, some with options.
fn records() -> Vec<Owned> {
    (0..200_u32)
        .map(|n| {
            let length = 15 + (n * 37 % 1500) as usize;
            let mut data: Vec<u8> = (0..length).map(|at| (at as u32 * 7 + n) as u8).collect();
            data[12..14].copy_from_slice(&[0x88, 0xb5]);
            let time_ns = 1_700_000_000_000_000_000 + u64::from(n) * 1_000_000_007;
            let original_length = data.len() as u32 + n % 3 * 100;
            let with_options = n.is_multiple_of(5);
            Owned {
                time_ns,
                data,
                original_length,
                interface: 0,
                flags: if with_options { 1 + n % 2 } else { 0 },
                queue: with_options.then_some(n),
                drop_count: (n % 10 == 0).then_some(u64::from(n)),
            }
        })
        .collect()
}

fn interface() -> Interface {
    let mut interface = Interface::new(LinkType::ETHERNET, 262_144);
    interface.name = Some("eth0".into());
    interface.description = Some("a link".into());
    interface.filter = Some("ether proto 0x88b5".into());
    interface.hardware = Some("a card".into());
    interface.operating_system = Some("Linux".into());
    interface.mac = Some([2, 0, 0, 0, 0, 1]);
    interface.speed_bits_per_second = Some(10_000_000_000);
    interface
}

fn written_pcapng() -> Vec<u8> {
    let section = Section {
        hardware: Some("a machine".into()),
        operating_system: Some("Linux".into()),
        application: Some("linerate".into()),
        comment: Some("for the oracles".into()),
    };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    writer.add_interface(&interface()).unwrap();
    let padding = vec![0xa5; 60_000];
    let custom = CustomOption {
        code: options::CUSTOM_BYTES_NOT_COPIED,
        enterprise: 0xffff_ffff,
        data: &padding,
    };
    for (n, record) in records().iter().enumerate() {
        writer.write_record(&record.record()).unwrap();
        if n.is_multiple_of(50) {
            let statistics = InterfaceStatistics {
                time_ns: record.time_ns,
                received_packets: Some(n as u64 + 1000),
                interface_dropped_packets: Some(3),
                start_time_ns: Some(1_700_000_000_000_000_000),
                ..InterfaceStatistics::default()
            };
            writer.write_statistics(&statistics, &[custom]).unwrap();
        }
    }
    writer.finish().unwrap()
}

fn written_pcap(precision: PcapPrecision) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 262_144, precision).unwrap();
    for record in records() {
        writer.write_record(&record.record()).unwrap();
    }
    writer.finish().unwrap()
}

/// Each file that is written here, its name, and the unit of its times in nanoseconds.
fn written() -> [(Vec<u8>, &'static str, u64); 3] {
    [
        (written_pcapng(), "a.pcapng", 1),
        (written_pcap(PcapPrecision::Nanoseconds), "ns.pcap", 1),
        (written_pcap(PcapPrecision::Microseconds), "us.pcap", 1000),
    ]
}

/// `1700000000.123456789` in nanoseconds.
fn epoch_ns(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<9}");
    seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction[..9].parse::<u64>().unwrap()
}

/// The bytes of hex dumps such as `0x0010:  0102 0304` or `0010  01 02 03 04   ....`, one packet
/// after another; each packet's dump begins at offset 0.
fn hex_dumps(text: &str) -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("0x");
        let Some((offset, rest)) = line.split_once("  ") else { continue };
        let Ok(offset) = usize::from_str_radix(offset.trim_end_matches(':'), 16) else { continue };
        if offset == 0 {
            packets.push(Vec::new());
        }
        let digits: String = rest.split("   ").next().unwrap().split_whitespace().collect();
        let packet = packets.last_mut().unwrap();
        assert_eq!(packet.len(), offset, "{line}");
        for at in (0..digits.len()).step_by(2) {
            packet.push(u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        }
    }
    packets
}

fn datas() -> Vec<Vec<u8>> {
    records().into_iter().map(|record| record.data).collect()
}

#[test]
fn tshark_reads_times_lengths_options_and_bytes_as_written() {
    const TEST: &str = "tshark_reads_times_lengths_options_and_bytes_as_written";
    let directory = tempfile::tempdir().unwrap();
    for (bytes, name, unit) in written() {
        let file = directory.path().join(name);
        fs::write(&file, bytes).unwrap();
        let fields = [
            "-T",
            "fields",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.cap_len",
            "-e",
            "frame.len",
            "-e",
            "frame.packet_flags_direction",
            "-e",
            "frame.drop_count",
            "-e",
            "frame.interface_queue",
            "-r",
        ];
        let Some(text) = run(TEST, "tshark", &fields, &file) else { return };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), records().len(), "{name}");
        for (line, record) in lines.iter().zip(records()) {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(epoch_ns(columns[0]), record.time_ns / unit * unit, "{name}");
            assert_eq!(columns[1], record.data.len().to_string());
            assert_eq!(columns[2], record.original_length.to_string());
            if name.ends_with("pcapng") && record.flags != 0 {
                let direction = columns[3].trim_start_matches("0x").trim_start_matches('0');
                assert_eq!(direction, record.flags.to_string());
                let queue = record.queue.unwrap().to_string();
                assert_eq!(columns[5], queue);
                let drops = record.drop_count.map(|count| count.to_string());
                assert_eq!(columns[4], drops.unwrap_or_default());
            }
        }
        let Some(text) = run(TEST, "tshark", &["-x", "-r"], &file) else { return };
        assert_eq!(hex_dumps(&text), datas(), "{name}");
    }
}

#[test]
fn tcpdump_reads_times_and_bytes_as_written() {
    const TEST: &str = "tcpdump_reads_times_and_bytes_as_written";
    let directory = tempfile::tempdir().unwrap();
    for (bytes, name, unit) in written() {
        let file = directory.path().join(name);
        fs::write(&file, bytes).unwrap();
        let arguments = ["-tt", "-n", "-xx", "--time-stamp-precision=nano", "-r"];
        let Some(text) = run(TEST, "tcpdump", &arguments, &file) else { return };
        assert_eq!(hex_dumps(&text), datas(), "{name}");
        let times: Vec<u64> = text
            .lines()
            .filter(|line| !line.starts_with('\t'))
            .map(|line| epoch_ns(line.split(' ').next().unwrap()))
            .collect();
        let expected: Vec<u64> = records().iter().map(|r| r.time_ns / unit * unit).collect();
        assert_eq!(times, expected, "{name}");
    }
}

#[test]
fn capinfos_counts_packets_and_shows_interface_and_statistics() {
    const TEST: &str = "capinfos_counts_packets_and_shows_interface_and_statistics";
    let directory = tempfile::tempdir().unwrap();
    for (bytes, name, _) in written() {
        let file = directory.path().join(name);
        fs::write(&file, bytes).unwrap();
        let Some(text) = run(TEST, "capinfos", &["-M"], &file) else { return };
        let has = |label: &str, value: &str| {
            let found = text.lines().any(|line| {
                line.split_once([':', '='])
                    .is_some_and(|(l, v)| l.trim() == label && v.trim() == value)
            });
            assert!(found, "{label} {value} in {text}");
        };
        has("Number of packets", "200");
        let bytes: u32 = records().iter().map(|record| record.original_length).sum();
        has("Data size", &format!("{bytes} bytes"));
        if name.ends_with("pcapng") {
            has("Capture application", "linerate");
            has("Capture comment", "for the oracles");
            has("Name", "eth0");
            has("Filter string", "ether proto 0x88b5");
            has("Speed", "10000000000");
            has("Time precision", "nanoseconds (9)");
            has("Number of stat entries", "4");
        }
    }
}

/// All packets that pcap-parser finds: interface ticks or time, captured bytes, original length.
fn with_pcap_parser(bytes: &[u8]) -> Vec<(u64, Vec<u8>, u32)> {
    let mut found = Vec::new();
    let mut reader = pcap_parser::create_reader(1 << 20, bytes).unwrap();
    let mut unit = 1;
    loop {
        match reader.next() {
            Ok((length, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        unit = if header.is_nanosecond_precision() { 1 } else { 1000 };
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let fraction = u64::from(packet.ts_usec) * unit;
                        let time_ns = u64::from(packet.ts_sec) * 1_000_000_000 + fraction;
                        found.push((time_ns, packet.data.to_vec(), packet.origlen));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        let data = &packet.data[..packet.caplen as usize];
                        found.push((ticks, data.to_vec(), packet.origlen));
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return found,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn pcap_parser_reads_what_was_written_and_so_does_the_crate_itself() {
    for (bytes, name, unit) in written() {
        let expected: Vec<_> = records()
            .into_iter()
            .map(|record| (record.time_ns / unit * unit, record.data, record.original_length))
            .collect();
        assert_eq!(with_pcap_parser(&bytes), expected, "{name}");
        let own: Vec<_> = read(&bytes)
            .records
            .into_iter()
            .map(|record| (record.time_ns, record.data, record.original_length))
            .collect();
        assert_eq!(own, expected, "{name}");
    }
}

/// Compares the crate's reading of a made file, all of whose sections have as many interfaces, with
/// tshark's: times, lengths, interfaces (which tshark counts within the section).
fn compare_with_tshark(test: &str, file: &Path, bytes: &[u8]) -> Option<usize> {
    fs::write(file, bytes).unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.len",
        "-e",
        "frame.interface_id",
        "-e",
        "frame.section_number",
        "-r",
    ];
    let text = run(test, "tshark", &fields, file)?;
    let outcome = read(bytes);
    assert!(outcome.error.is_none());
    assert_eq!(text.lines().count(), outcome.records.len());
    let reader = outcome.reader.unwrap();
    let per_section = (reader.interfaces().len() / reader.sections().len().max(1)) as u32;
    for (line, record) in text.lines().zip(&outcome.records) {
        let columns: Vec<&str> = line.split('\t').collect();
        if record.time_ns != 0 {
            assert_eq!(epoch_ns(columns[0]), record.time_ns, "{line}");
        }
        let lengths = [record.data.len() as u32, record.original_length].map(|n| n.to_string());
        assert_eq!(columns[1..3], lengths, "{line}");
        if !columns[3].is_empty() {
            let within: u32 = columns[3].parse().unwrap();
            let section: u32 = columns[4].parse().unwrap();
            let before = (section - 1) * per_section;
            assert_eq!(before + within, record.interface, "{line}");
        }
    }
    Some(outcome.records.len())
}

#[test]
fn tshark_agrees_on_times_in_every_unit_of_both_byte_orders() {
    const TEST: &str = "tshark_agrees_on_times_in_every_unit_of_both_byte_orders";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("units.pcapng");
    const SECONDS: u64 = 1_700_000_000;
    // The exponents with which 64 bits reach today.
    let units = (0..=10).chain((0..=33).map(|exponent| exponent | 0x80));
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut made = File::new(order);
        made.section(order, &[]);
        let mut interface = 0;
        for raw in units.clone() {
            for offset in [0, 3600, -86_400_i64] {
                let offset = made.n64(offset as u64).to_vec();
                made.interface(1, 0, &[(9, vec![raw]), (14, offset)]);
                let exponent = u32::from(raw & 0x7f);
                let base: u64 = if raw & 0x80 == 0 { 10 } else { 2 };
                let per_second = base.pow(exponent);
                for part in [0, 1, per_second / 3, per_second - 1] {
                    made.enhanced(interface, SECONDS * per_second + part, &[0; 60], 64, &[]);
                }
                interface += 1;
            }
        }
        let Some(packets) = compare_with_tshark(TEST, &file, &made.bytes) else { return };
        assert_eq!(packets, 45 * 3 * 4);
    }
}

#[test]
fn tshark_agrees_on_sections_and_every_kind_of_packet_block() {
    const TEST: &str = "tshark_agrees_on_sections_and_every_kind_of_packet_block";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sections.pcapng");
    let mut made = File::new(ByteOrder::Little);
    for order in [ByteOrder::Little, ByteOrder::Big, ByteOrder::Little] {
        made.section(order, &[(4, b"a test".to_vec())]);
        made.interface(1, 40, &[(2, b"eth0".to_vec())]).interface(1, 0, &[(9, vec![9])]);
        made.enhanced(1, 1_700_000_000_000_000_001, &[0; 61], 62, &[(1, b"odd".to_vec())]);
        made.simple(90, &[0; 40]).simple(15, &[0; 15]);
        made.block(0x8000_0abc, &[1; 8]).block(4, &[0; 4]);
        made.obsolete(0, 5, 1_700_000_000_000_002, &[0; 33], 34, &[]);
    }
    let packets = compare_with_tshark(TEST, &file, &made.bytes);
    assert!(matches!(packets, None | Some(12)), "{packets:?}");
}

#[test]
fn tshark_agrees_on_pcap_in_both_byte_orders_and_with_junk_in_the_link_field() {
    const TEST: &str = "tshark_agrees_on_pcap_in_both_byte_orders_and_with_junk_in_the_link_field";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.pcap");
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
            for link_field in [1, 0x3000_0001, 0x0400_0001] {
                let extra: &[u8] = if magic == 0xa1b2_cd34 { &[0; 8] } else { &[] };
                let mut made = File::new(order);
                made.pcap_header(magic, 262_144, link_field);
                for n in 0..20_u32 {
                    let data = vec![1; 14 + n as usize];
                    made.pcap_record(1_700_000_000 + n, 999_999 - n, &data, 99, extra);
                }
                let Some(packets) = compare_with_tshark(TEST, &file, &made.bytes) else { return };
                assert_eq!(packets, 20);
            }
        }
    }
}

#[test]
fn times_written_in_any_unit_are_what_tshark_reads() {
    const TEST: &str = "times_written_in_any_unit_are_what_tshark_reads";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("units.pcapng");
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    for (raw, offset) in [(9, 0), (6, 0), (9, -3600), (0x80 | 32, 0), (0x80 | 30, 500), (0, 0)] {
        let mut interface = Interface::new(LinkType::ETHERNET, 0);
        interface.time_resolution = TimeResolution::from_raw(raw);
        interface.time_offset_s = offset;
        let index = writer.add_interface(&interface).unwrap();
        for n in 0..50_u64 {
            let time_ns = 1_700_000_000_000_000_000 + n * 20_408_163;
            let record =
                store::Record { interface: index, ..store::Record::new(time_ns, &[0; 60]) };
            writer.write_record(&record).unwrap();
        }
    }
    let packets = compare_with_tshark(TEST, &file, &writer.finish().unwrap());
    assert!(matches!(packets, None | Some(300)), "{packets:?}");
}
