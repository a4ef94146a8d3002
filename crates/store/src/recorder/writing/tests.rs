use super::*;
use std::sync::Arc;

use sys::direct_io::DirectFile;
use sys::memory::Buffers;

use crate::chunk::{CHUNK_BYTES, OpenChunk};
use crate::record::{Interface, LinkType, Section};
use crate::segment::SegmentFacts;

fn writing(directory: &tempfile::TempDir, capacity: u64) -> Writing {
    let file = DirectFile::create(directory.path().join("s00-000001.open.pcapng")).unwrap();
    let interface = Interface::new(LinkType::ETHERNET, 262_144);
    let facts = SegmentFacts { id: [1; 16], number: 1, stream: 0, session: 1, interface };
    let header = facts.header_chunk(&Section::default(), 4096, &mut vec![0; 8192]).unwrap();
    Writing::new(Prepared { file: Arc::new(file), facts, header, capacity })
}

fn chunks(count: u32) -> Vec<FullChunk> {
    let fill = |(index, buffer)| {
        let mut chunk = OpenChunk::new(buffer);
        for _ in 0..=index {
            assert!(chunk.push(100, &[7; 60], 60));
        }
        let (buffer, content) = chunk.close();
        FullChunk { buffer, content, ledger: Ledger::default() }
    };
    Buffers::new(count, CHUNK_BYTES).unwrap().split().into_iter().enumerate().map(fill).collect()
}

/// Places all chunks and ends their writes in the order given, those in `failed` badly.
fn write(writing: &mut Writing, chunks: Vec<FullChunk>, order: &[u64], failed: &[u64]) {
    let mut buffers = std::collections::BTreeMap::new();
    for mut chunk in chunks {
        let (offset, length, sequence) = writing.place(&mut chunk).unwrap();
        assert_eq!((offset, length), (sequence * 4096, 4096));
        buffers.insert(sequence, chunk.buffer);
    }
    for sequence in order {
        let failure = failed.contains(sequence).then(|| format!("broken {sequence}"));
        writing.completed(*sequence, buffers.remove(sequence).unwrap(), failure);
    }
}

#[test]
fn buffers_come_back_in_order_and_only_behind_whole_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let mut segment = writing(&directory, 1 << 20);
    write(&mut segment, chunks(4), &[2, 4], &[]);
    assert!(segment.release().is_none());
    assert!(segment.has_in_flight());
    let mut segment = writing(&tempfile::tempdir().unwrap(), 1 << 20);
    write(&mut segment, chunks(4), &[3, 1, 2], &[]);
    let packets: Vec<u64> =
        std::iter::from_fn(|| segment.release()).map(|(_, share)| share.packets).collect();
    assert_eq!(packets, [1, 2, 3]);
    assert!(segment.has_in_flight() && segment.failure().is_none());
    assert_eq!(segment.take_unflushed().packets, 6);
    assert_eq!(segment.take_unflushed().packets, 0);
}

#[test]
fn after_a_failure_the_segment_ends_and_the_rest_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut segment = writing(&directory, 1 << 20);
    write(&mut segment, chunks(5), &[5, 3, 2, 4, 1], &[3]);
    let released = std::iter::from_fn(|| segment.release()).count();
    assert_eq!((released, segment.failure()), (2, Some("broken 3")));
    assert!(!segment.has_in_flight() && segment.has_chunks());
    let (ended, again, lost) = segment.end();
    assert_eq!(ended.index.segment_length(), 3 * 4096);
    assert_eq!(ended.unflushed.packets, 1 + 2);
    assert_eq!(lost.packets, 0);
    let packets: Vec<u32> = again.iter().map(|chunk| chunk.content.packets).collect();
    assert_eq!(packets, [3, 4, 5]);

    // The same chunks are whole in their new places.
    let mut next = writing(&tempfile::tempdir().unwrap(), 1 << 20);
    for (mut chunk, sequence) in again.into_iter().zip(1..) {
        let (offset, length, _) = next.place(&mut chunk).unwrap();
        let trailer = trailer::verify(&chunk.buffer[..length]).unwrap();
        assert_eq!((trailer.sequence, trailer.offset), (sequence, offset));
    }
}

#[test]
fn a_broken_engine_costs_what_it_held_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut segment = writing(&directory, 1 << 20);
    write(&mut segment, chunks(5), &[1, 4], &[]);
    segment.lose_in_flight("gone");
    assert_eq!(std::iter::from_fn(|| segment.release()).count(), 1);
    let (ended, again, lost) = segment.end();
    assert_eq!(ended.index.segment_length(), 2 * 4096);
    assert_eq!(lost.packets, 2 + 3 + 5);
    assert_eq!(again.len(), 1);
}

#[test]
fn a_full_segment_takes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let segment = writing(&directory, 3 * 4096);
    assert!(segment.fits(8192) && !segment.fits(12_288));
}
