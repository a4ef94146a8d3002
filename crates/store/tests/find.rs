//! Finding against a linear scan of what was recorded, in many stores at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use port::{Losses, Reason};
use proptest::prelude::*;
use recording::{Numbers, Packet, append, config, files};
use store::find::Completeness;
use store::ledger::InputCounters;
use store::trailer::ChunkTrailer;
use store::{
    Find, FindReport, Interface, LinkType, PcapngWriter, Record, Recorder, Section, Selection,
};

/// An Ethernet frame with UDP in IPv4: a few hosts, a few ports, maybe a VLAN.
fn frame(numbers: &mut Numbers) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if numbers.below(4) == 0 {
        frame.extend([0x81, 0, 0, 1 + numbers.below(3) as u8]);
    }
    let length = numbers.below(200) as usize;
    let total = (28 + length) as u16;
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, numbers.below(5) as u8]);
    frame.extend([10, 0, 1, numbers.below(5) as u8]);
    frame.extend((numbers.below(6) as u16).to_be_bytes());
    frame.extend((numbers.below(6) as u16).to_be_bytes());
    frame.extend(((8 + length) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(frame.len() + length, numbers.next() as u8);
    frame
}

fn frames(seed: u64, count: usize, start_ns: u64, disorder: u64) -> Vec<Packet> {
    let mut numbers = Numbers(seed | 1);
    let mut time_ns = start_ns;
    (0..count)
        .map(|_| {
            time_ns += numbers.below(1000);
            let data = frame(&mut numbers);
            let length = data.len() as u32;
            (time_ns - numbers.below(disorder + 1).min(time_ns), data, length)
        })
        .collect()
}

fn record(directory: &Path, stream: u16, packets: &[Packet], flush_every: usize) {
    let mut config = config(directory);
    config.stream = stream;
    let (mut recorder, _) = Recorder::open(config).unwrap();
    for (index, (time_ns, data, original)) in packets.iter().enumerate() {
        append(&mut recorder, *time_ns, data, *original);
        if index % flush_every == flush_every - 1 {
            recorder.flush();
        }
    }
    recorder.finish().unwrap();
}

fn write_capture(path: &Path, packets: &[Packet]) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    let mut interface = Interface::new(LinkType::ETHERNET, 0);
    interface.name = Some("file0".into());
    writer.add_interface(&interface).unwrap();
    for (time_ns, data, original_length) in packets {
        let original_length = *original_length;
        let record = Record { original_length, ..Record::new(*time_ns, data) };
        writer.write_record(&record).unwrap();
    }
    writer.finish().unwrap();
}

fn find<P: AsRef<Path>>(paths: &[P], selection: &Selection) -> (Vec<Packet>, FindReport) {
    let mut find = Find::open(paths, selection.clone()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = find.next_record().unwrap() {
        packets.push((record.time_ns, record.data.to_vec(), record.original_length));
    }
    assert_balanced(&find);
    assert_eq!((find.packets_waiting(), find.report().packets_found), (0, packets.len() as u64));
    (packets, find.report().clone())
}

/// What was read is found or waits, or was passed over for a reason.
fn assert_balanced(find: &Find) {
    let report = find.report();
    let passed_over = report.packets_outside_window
        + report.packets_unmatched
        + report.packets_undecided
        + report.packets_unreadable;
    let left = report.packets_found + find.packets_waiting() + passed_over;
    assert_eq!(report.packets_read, left, "{report:?}");
}

fn expected(packets: &[Packet], selection: &Selection) -> Vec<Packet> {
    let mut expected: Vec<Packet> = packets
        .iter()
        .filter(|packet| {
            selection.holds_time(packet.0) && selection.holds_packet(LinkType::ETHERNET, &packet.1)
        })
        .cloned()
        .collect();
    expected.sort_by_key(|packet| packet.0);
    expected
}

/// Equal as a set, and in the order of time.
fn assert_same(found: &[Packet], expected: &[Packet]) {
    assert!(found.is_sorted_by_key(|packet| packet.0));
    assert_eq!(found.len(), expected.len());
    let mut counts: BTreeMap<&Packet, i64> = BTreeMap::new();
    for packet in expected {
        *counts.entry(packet).or_default() += 1;
    }
    for packet in found {
        *counts.entry(packet).or_default() -= 1;
    }
    assert!(counts.values().all(|count| *count == 0));
}

fn host(third: u8, last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, third, last).into()
}

fn any_selection() -> impl Strategy<Value = Selection> {
    (
        prop_oneof![Just(0u64), 0u64..2_000_000],
        prop_oneof![Just(u64::MAX), 0u64..2_000_000],
        proptest::collection::vec((0u8..2, 0u8..6), 0..3),
        proptest::collection::vec(0u16..7, 0..3),
        proptest::collection::vec(1u16..5, 0..2),
        prop_oneof![Just(None), (0u8..33).prop_map(Some)],
        prop_oneof![Just(vec![]), Just(vec![17u8]), Just(vec![6])],
    )
        .prop_map(|(from_ns, to_ns, hosts, ports, vlans, prefix, protocols)| Selection {
            from_ns,
            to_ns,
            hosts: hosts.into_iter().map(|(third, last)| host(third, last)).collect(),
            networks: prefix
                .into_iter()
                .filter_map(|length| store::IpNetwork::new(host(0, 3), length))
                .collect(),
            ports,
            protocols,
            vlans,
            ethertypes: Vec::new(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn finding_agrees_with_a_linear_scan(
        seed: u64,
        streams in proptest::collection::vec((1usize..4000, 0u64..1_000_000, 0u64..5000), 1..4),
        flush_every in prop_oneof![Just(usize::MAX), 50usize..700],
        captured in 0usize..500,
        selections in proptest::collection::vec(any_selection(), 4),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        let mut all = Vec::new();
        for (stream, (count, start_ns, disorder)) in streams.iter().enumerate() {
            let packets = frames(seed ^ stream as u64, *count, *start_ns, *disorder);
            record(&store, stream as u16, &packets, flush_every);
            all.extend(packets);
        }
        let capture = directory.path().join("capture.pcapng");
        let packets = frames(seed ^ 99, captured, 500_000, 100);
        write_capture(&capture, &packets);
        all.extend(packets);
        for selection in &selections {
            let (found, report) = find(&[store.clone(), capture.clone()], selection);
            assert_same(&found, &expected(&all, selection));
            prop_assert_eq!(report.late_packets, 0);
            prop_assert_eq!(&report.problems, &Vec::<String>::new());
            prop_assert!(report.completeness.is_complete());
        }
    }
}

#[test]
fn packets_of_equal_time_keep_the_order_of_their_file() {
    let directory = tempfile::tempdir().unwrap();
    let packets: Vec<Packet> =
        (0..30_000u32).map(|n| (7, n.to_be_bytes().repeat(20), 80)).collect();
    record(directory.path(), 0, &packets, 1000);
    let (found, _) = find(&[directory.path()], &Selection::default());
    assert!(found == packets);
}

#[test]
fn segments_that_were_moved_are_found_where_they_are() {
    let place = tempfile::tempdir().unwrap();
    let [home, away] = ["home", "away"].map(|name| place.path().join(name));
    std::fs::create_dir(&away).unwrap();
    // Two recorders one after the other, each of several segments.
    let packets = frames(7, 200_000, 1_000, 0);
    let (first, second) = packets.split_at(100_000);
    record(&home, 0, first, 500);
    record(&home, 0, second, 500);
    let whole = files(&home, ".pcapng");
    assert!(whole.len() > 6, "{whole:?}");
    for path in whole.iter().step_by(2) {
        std::fs::rename(path, away.join(path.file_name().unwrap())).unwrap();
    }
    let one = away.join(whole[2].file_name().unwrap());
    for paths in [vec![&home, &away], vec![&away, &home], vec![&away, &one, &home, &home]] {
        let (found, report) = find(&paths, &Selection::default());
        assert_same(&found, &packets);
        assert!(report.completeness.is_complete(), "{report:?}");
        assert_eq!((report.packets_read, report.segments_read), (200_000, whole.len() as u64));
    }
    // What is not named is missing.
    let away = files(&away, ".pcapng");
    let others: Vec<_> = away.iter().chain(&whole).filter(|path| path.exists()).collect();
    assert_eq!(others.len(), whole.len());
    let others: Vec<_> = others.into_iter().filter(|path| **path != whole[1]).collect();
    let (found, report) = find(&others, &Selection::default());
    assert!(found.len() < 190_000);
    assert_eq!(found.len() as u64 + report.completeness.unreadable_packets, 200_000);
}

#[test]
fn a_narrow_window_reads_few_chunks_with_and_without_index() {
    let directory = tempfile::tempdir().unwrap();
    let packets: Vec<Packet> =
        (0..40_000u64).map(|n| (1_000_000 + n * 1000, vec![n as u8; 500], 500)).collect();
    record(directory.path(), 0, &packets, usize::MAX);
    let window = Selection::between(20_000_000, 20_010_000);
    let (found, report) = find(&[directory.path()], &window);
    assert_eq!(found, packets[19_000..19_010]);
    assert!((1..=2).contains(&report.chunks_read), "{report:?}");
    assert_eq!(report.segments_read, 1);
    for index in files(directory.path(), ".time-index") {
        std::fs::remove_file(index).unwrap();
    }
    let (again, without) = find(&[directory.path()], &window);
    assert_eq!((again, without.chunks_read), (found, report.chunks_read));
}

#[test]
fn reversed_future_and_empty_windows_find_nothing() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), 0, &frames(1, 1000, 1_000_000, 0), usize::MAX);
    for (from, to) in [(2_000_000, 1_000_000), (u64::MAX - 1, u64::MAX), (5, 5), (0, 1_000_000)] {
        let (found, report) = find(&[directory.path()], &Selection::between(from, to));
        assert_eq!((found.len(), report.chunks_read), (0, 0), "{from}..{to}");
    }
    assert_eq!(find(&[directory.path()], &Selection::default()).0.len(), 1000);
}

#[test]
fn what_is_missing_is_an_error_or_an_empty_answer() {
    let directory = tempfile::tempdir().unwrap();
    let error = Find::open(&[directory.path()], Selection::default()).err().unwrap();
    assert!(error.to_string().starts_with("no recording in "), "{error}");
    let store = directory.path().join("store");
    record(&store, 0, &[], usize::MAX);
    assert_eq!(find(&[store], &Selection::default()).0, []);
    let missing = directory.path().join("missing");
    let error = Find::open(&[&missing], Selection::default()).err().unwrap();
    assert!(error.to_string().contains("missing"), "{error}");
    let text = directory.path().join("text");
    std::fs::write(&text, "no capture at all").unwrap();
    assert!(Find::open(&[&text], Selection::default()).is_err());
}

#[test]
fn a_recording_is_searched_while_it_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    let packets = frames(3, 60_000, 1000, 0);
    let mut seen = 0;
    for (index, (time_ns, data, original)) in packets.iter().enumerate() {
        append(&mut recorder, *time_ns, data, *original);
        if index % 7000 == 6999 {
            recorder.flush();
            let stored = recorder.counters().stored.packets;
            while recorder.counters().written.packets < stored {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let (found, report) = find(&[directory.path()], &Selection::default());
            assert!(found == packets[..=index], "{} of {}", found.len(), index + 1);
            assert_eq!(report.chunks_damaged, 0);
            let told = report.completeness;
            assert_eq!((told.recordings_going_on, told.interruptions), (1, 0));
            seen = found.len();
        }
    }
    assert_eq!(seen, 56_000);
    recorder.finish().unwrap();
    let (found, report) = find(&[directory.path()], &Selection::default());
    assert!(found == packets);
    assert_eq!(report.completeness, Completeness::default());
}

#[test]
fn an_open_segment_without_a_recorder_is_an_interruption() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let (mut recorder, _) = Recorder::open(config(&store)).unwrap();
    for (time_ns, data, original) in frames(3, 1000, 1000, 0) {
        append(&mut recorder, time_ns, &data, original);
    }
    recorder.flush();
    while recorder.counters().written.packets < 1000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // As kill -9 leaves it: the segment open, the lock free.
    let left = directory.path().join("left");
    std::fs::create_dir(&left).unwrap();
    let open = files(&store, ".open.pcapng").pop().unwrap();
    let name = open.file_name().unwrap();
    std::fs::copy(&open, left.join(name)).unwrap();
    std::fs::write(left.join(".s00.lock"), "").unwrap();
    let told = |paths: &[PathBuf], selection: &Selection| {
        let told = find(paths, selection).1.completeness;
        (told.interruptions, told.recordings_going_on)
    };
    for (left, live) in [(left.clone(), store.clone()), (left.join(name), open.clone())] {
        assert_eq!(told(std::slice::from_ref(&left), &Selection::default()), (1, 0), "{left:?}");
        assert_eq!(told(&[live], &Selection::default()), (0, 1));
        assert_eq!(told(&[left], &Selection::between(0, 2000)), (0, 0));
    }
    recorder.finish().unwrap();
    assert_eq!(told(&[store], &Selection::default()), (0, 0));
    // Before any packet was written, too.
    let (recorder, _) = Recorder::open(config(&directory.path().join("empty"))).unwrap();
    let open = files(&directory.path().join("empty"), ".open.pcapng").pop().unwrap();
    let header = directory.path().join("header");
    std::fs::create_dir(&header).unwrap();
    std::fs::copy(&open, header.join(name)).unwrap();
    drop(recorder);
    assert_eq!(told(&[header], &Selection::default()), (1, 0));
}

#[test]
fn readers_and_the_recorder_do_not_disturb_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    let packets = frames(4, 100_000, 1000, 0);
    let path: PathBuf = directory.path().into();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) || rounds == 0 {
                let (found, report) = find(&[&path], &Selection::default());
                assert_eq!(report.chunks_damaged, 0);
                let chunk = found.iter().zip(&packets).take_while(|(a, b)| a == b).count();
                // In flight, a later chunk may be on disk before an earlier one; nothing else
                // may be missing, and nothing be found twice or wrong.
                let rest = &found[chunk..];
                let mut expected = packets[chunk..].iter();
                assert!(rest.iter().all(|packet| expected.any(|other| other == packet)));
                rounds += 1;
            }
        });
        for (time_ns, data, original) in &packets {
            append(&mut recorder, *time_ns, data, *original);
        }
        recorder.finish().unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(find(&[directory.path()], &Selection::default()).0 == packets);
}

#[test]
fn losses_are_told_for_the_windows_that_they_touch() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    let session = std::time::SystemTime::now();
    let session = session.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut dropped = Losses::default();
    for (second, lost) in [(1, 0), (2, 0), (3, 9), (4, 0)] {
        dropped.add(Reason::KernelRing, lost);
        recorder.note_input(InputCounters { wire_packets: 0, filtered_packets: 0, dropped });
        recorder.append(session + second * 1_000_000_000, &[1; 60], 60);
        recorder.flush();
    }
    recorder.finish().unwrap();
    let lost = |from: u64, to: u64| {
        let window =
            Selection::between(session + from * 1_000_000_000, session + to * 1_000_000_000);
        find(&[directory.path()], &window).1.completeness.lost_packets[1]
    };
    assert_eq!((lost(0, 2), lost(2, 3), lost(3, 4), lost(4, 9)), (0, 9, 9, 0));
}

#[test]
fn damage_in_a_sealed_segment_costs_its_chunk_only() {
    let directory = tempfile::tempdir().unwrap();
    let packets = frames(5, 5000, 1000, 0);
    record(directory.path(), 0, &packets, 1000);
    let path = &files(directory.path(), ".pcapng")[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[4096 + 100] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let (found, report) = find(&[directory.path()], &Selection::default());
    assert!(found == packets[1000..]);
    assert_eq!((report.chunks_damaged, report.problems.len()), (1, 1));
    assert_eq!(report.completeness.unreadable_packets, 1000);
    assert!(!report.completeness.is_complete());
    // Only in windows that it touches.
    let (_, report) = find(&[directory.path()], &Selection::between(packets[2000].0, u64::MAX));
    assert!(report.completeness.is_complete() && report.problems.is_empty(), "{report:?}");
}

#[test]
fn the_neighbours_say_how_many_packets_a_damaged_chunk_held() {
    let directory = tempfile::tempdir().unwrap();
    let packets = frames(6, 5000, 1000, 0);
    record(directory.path(), 0, &packets, 1000);
    for index in files(directory.path(), ".time-index") {
        std::fs::remove_file(index).unwrap();
    }
    let path = &files(directory.path(), ".pcapng")[0];
    let mut bytes = std::fs::read(path).unwrap();
    // The second chunk's own count of packets, in its trailer.
    let second = (4096..bytes.len())
        .step_by(4096)
        .filter_map(|end| ChunkTrailer::at_end_of(&bytes[..end]))
        .find(|trailer| trailer.sequence == 2)
        .unwrap();
    let fields = second.encode();
    let at = bytes.windows(fields.len()).position(|bytes| bytes == fields).unwrap();
    bytes[at + 56..at + 58].copy_from_slice(&77u16.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
    let (found, report) = find(&[directory.path()], &Selection::default());
    assert_eq!((found.len(), report.chunks_damaged), (4000, 1));
    assert_eq!(report.completeness.unreadable_packets, 1000, "{report:?}");
}

#[test]
fn captures_far_out_of_order_deliver_late_but_everything() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("c.pcapng");
    let mut packets: Vec<Packet> =
        (0..20_000u64).map(|n| (1_000_000 + n, vec![n as u8; 1000], 1000)).collect();
    packets.push((5, vec![5; 60], 60));
    write_capture(&capture, &packets);
    let (found, report) = find(&[&capture], &Selection::default());
    assert_eq!((found.len(), report.late_packets), (20_001, 1));
    packets.truncate(3000);
    packets.push((5, vec![5; 60], 60));
    write_capture(&capture, &packets);
    let (found, report) = find(&[&capture], &Selection::default());
    assert_eq!((found[0].0, report.late_packets), (5, 0));
}

#[test]
fn more_overlapping_chunks_than_fit_in_memory_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    let mut all = Vec::new();
    for round in 0..400u64 {
        for step in 0..5u64 {
            let packet = (1000 + step * 1000 + round, vec![round as u8; 60], 60);
            append(&mut recorder, packet.0, &packet.1, 60);
            all.push(packet);
        }
        recorder.flush();
    }
    recorder.finish().unwrap();
    let (found, report) = find(&[directory.path()], &Selection::default());
    assert_same(&found, &expected(&all, &Selection::default()));
    assert!(report.chunks_read > 400 && report.packets_examined == 2000, "{report:?}");
    // Those put back before any of their packets was delivered are counted once, too; at every
    // moment the account balances.
    let late = |packet: &Packet| packet.0 >= 5000;
    assert_eq!(all.iter().filter(|packet| late(packet)).count(), 400);
    let selection = Selection { from_ns: 5000, ..Selection::default() };
    let mut find = Find::open(&[directory.path()], selection).unwrap();
    while find.next_record().unwrap().is_some() {
        assert_balanced(&find);
    }
    let report = find.report();
    assert!(report.chunks_read > 400, "{report:?}");
    assert_eq!((report.packets_examined, report.packets_read), (2000, 2000));
    assert_eq!((report.packets_found, report.packets_outside_window), (400, 1600));
}
