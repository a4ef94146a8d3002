//! Writes through both engines onto a disk that is full.

#![allow(clippy::unwrap_used)]

mod writing;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sys::Kind;
use sys::direct_io::{DirectFile, DirectWriter, Engine};
use testing::{Outcome, on_small_disk, tests};
use writing::{CHUNK_BYTES, engines, pool};

fn a_full_disk_ends_the_write_with_no_space_and_the_disk_works_again_after_room_is_made() -> Outcome
{
    const NAME: &str =
        "a_full_disk_ends_the_write_with_no_space_and_the_disk_works_again_after_room_is_made";
    for engine in engines(NAME) {
        // Room for 8.5 chunks: one write is cut in the middle.
        let bytes = CHUNK_BYTES * 8 + CHUNK_BYTES / 2;
        on_small_disk(bytes as u64, |directory| {
            fill_and_make_room(engine, directory);
            Ok(())
        })?;
    }
    Ok(())
}

fn fill_and_make_room(engine: Engine, directory: &Path) {
    let file = Arc::new(DirectFile::create(directory.join("file")).unwrap());
    let error = file.preallocate(64 * CHUNK_BYTES as u64).unwrap_err();
    assert_eq!(error.kind(), Kind::NoSpace, "{error}");
    assert_eq!(file.size_bytes().unwrap(), 0);
    let (buffers, region) = pool(12);
    let mut writer = DirectWriter::new(engine, 12, &[region]).unwrap();
    for (tag, buffer) in buffers.into_iter().enumerate() {
        let offset = (tag * CHUNK_BYTES) as u64;
        writer.submit(&file, offset, buffer, CHUNK_BYTES, tag as u64).unwrap();
    }
    let mut completions = Vec::new();
    writer.complete_all(&mut completions).unwrap();
    assert_eq!(completions.len(), 12);
    let mut indexes: Vec<_> = completions.iter().map(|it| it.buffer.index()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (0..12).collect::<Vec<_>>());
    let failed: Vec<_> = completions.iter().filter_map(|it| it.result.as_ref().err()).collect();
    assert!((4..=12).contains(&failed.len()), "{} failed", failed.len());
    assert!(failed.iter().all(|it| it.kind() == Kind::NoSpace), "{failed:?}");
    assert!(failed[0].to_string().contains("free some space"), "{}", failed[0]);
    file.truncate(0).unwrap();
    let buffer = completions.pop().unwrap().buffer;
    writer.submit(&file, 0, buffer, CHUNK_BYTES, 99).unwrap();
    completions.clear();
    writer.complete_all(&mut completions).unwrap();
    assert_eq!(completions[0].result.as_ref().unwrap(), &CHUNK_BYTES);
}

fn main() -> ExitCode {
    testing::run(tests![
        a_full_disk_ends_the_write_with_no_space_and_the_disk_works_again_after_room_is_made
    ])
}
