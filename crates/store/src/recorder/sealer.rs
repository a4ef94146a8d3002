//! Gives segments whose chunks are all written their final form.
//!
//! The last segment of a recording gets the final account: what was lost behind the last chunk
//! stands nowhere else, and a full disk has room for it only where it was reserved
//! ([`ACCOUNT_BYTES`]). Which segment is the last shows only when another one is there or the
//! recording ends, so the newest is held back until then.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sys::direct_io::DirectFile;

use super::keeper::{SealedSegment, Share};
use super::status::{RecorderEvent, Status};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::recover::{seal_file, sync_directory};
use crate::time_index::TimeIndex;
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer};

/// Room that each segment has for a chunk which only carries the account, beside its length.
pub(super) const ACCOUNT_BYTES: u64 = ALIGNMENT_BYTES as u64;

/// A segment whose chunks are all written.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) file: Arc<DirectFile>,
    pub(super) index: TimeIndex,
    /// What no earlier flush covered.
    pub(super) unflushed: Share,
}

impl Ended {
    fn number(&self) -> u32 {
        self.index.chunks.first().map_or(0, |header| header.segment_number)
    }

    /// The account in its last chunk; `None` if nothing follows the header.
    fn ledger(&self) -> Option<Ledger> {
        self.index.chunks.last().filter(|last| !last.is_header()).map(|last| last.ledger)
    }

    fn content(&self) -> Share {
        let chunks = self.index.chunks.iter();
        chunks.fold(Share::default(), |sum, chunk| Share {
            packets: sum.packets + u64::from(chunk.packets),
            bytes: sum.bytes + chunk.captured_bytes,
        })
    }

    /// Writes a last chunk without packets into the room that was reserved for it.
    fn append_account(&mut self, account: &Ledger, memory: &mut [u8]) -> Result<()> {
        let Some(last) = self.index.chunks.last() else { return Ok(()) };
        let mut trailer = ChunkTrailer {
            flags: 0,
            sequence: last.sequence + 1,
            offset: last.end(),
            packets: 0,
            captured_bytes: 0,
            time_min_ns: 0,
            time_max_ns: super::now_ns(),
            packets_before: last.packets_before + u64::from(last.packets),
            ledger: *account,
            ..*last
        };
        let path = self.file.path();
        let length = trailer::seal(memory, 0, 0, &mut trailer).unwrap_or(0);
        let chunk = memory.get(..length).unwrap_or_default();
        self.file.file().write_all_at(chunk, trailer.offset).map_err(|source| {
            StoreError::Write { what: format!("the account in {}", path.display()), source }
        })?;
        self.index.chunks.push(trailer);
        Ok(())
    }
}

/// Seals the segments of one recording.
pub(super) struct Sealer {
    status: Arc<Status>,
    /// Numbers of the segments that are neither sealed nor removed.
    unsealed: BTreeSet<u32>,
    /// The newest segment, if all of its chunks are written.
    held: Option<Ended>,
    /// The account in the last chunk of a sealed segment.
    ledger: Ledger,
    /// What was in segments that somebody removed before they were sealed.
    removed: Share,
    sealed: Vec<SealedSegment>,
}

impl Sealer {
    pub(super) fn new(status: Arc<Status>, first_number: u32) -> Self {
        Self {
            status,
            unsealed: BTreeSet::from([first_number]),
            held: None,
            ledger: Ledger::default(),
            removed: Share::default(),
            sealed: Vec::new(),
        }
    }

    /// Another segment was made ready: the one before is not the last.
    pub(super) fn prepared(&mut self, number: u32) {
        self.unsealed.insert(number);
        if let Some(held) = self.held.take() {
            self.seal(held);
        }
    }

    /// Seals a segment, or holds it back while it is the newest.
    pub(super) fn end(&mut self, ended: Ended) {
        if self.unsealed.last().is_some_and(|newest| *newest > ended.number()) {
            self.seal(ended);
        } else {
            self.hold(ended);
        }
    }

    /// Removes a segment that was made ready in vain, unless it is all that the account can go to.
    pub(super) fn spare(&mut self, ended: Ended) {
        let number = ended.number();
        if self.unsealed.iter().any(|other| *other != number) {
            self.unsealed.remove(&number);
            self.remove(ended.file.path());
        } else {
            self.hold(ended);
        }
    }

    /// The recording ends with `account`: seals what was held back. `memory` has room for a chunk.
    pub(super) fn finish(mut self, account: &Ledger, memory: &mut [u8]) -> Vec<SealedSegment> {
        if let Some(mut held) = self.held.take() {
            let mut account = *account;
            account.give_up(self.removed.packets, self.removed.bytes);
            let told = held.ledger().unwrap_or(self.ledger);
            let added =
                if told == account { Ok(()) } else { held.append_account(&account, memory) };
            match added {
                Ok(()) => self.seal(held),
                // Without its account it would pass for whole. Recovery says that it is not.
                Err(error) => self.fail(held.file.path(), &error),
            }
        }
        self.sealed
    }

    /// Room that was not used goes back to the disk, which may need it for the next segment.
    fn hold(&mut self, mut ended: Ended) {
        let length = ended.index.segment_length() + ACCOUNT_BYTES;
        if let Err(error) = ended.file.truncate(length) {
            self.fail(ended.file.path(), &error.into());
            return;
        }
        flush(&ended.file, std::mem::take(&mut ended.unflushed), &self.status);
        self.held = Some(ended);
    }

    fn seal(&mut self, ended: Ended) {
        self.unsealed.remove(&ended.number());
        if ended.file.is_removed() {
            self.lose(ended);
            return;
        }
        let Some(ledger) = ended.ledger() else {
            self.remove(ended.file.path());
            return;
        };
        self.ledger = ledger;
        match seal_on_disk(&ended, &self.status) {
            Ok(sealed) => {
                let (path, packets) = (sealed.path.clone(), sealed.packets);
                self.status.tell(RecorderEvent::SegmentSealed { path, packets });
                self.sealed.push(sealed);
            }
            Err(error) => self.fail(ended.file.path(), &error),
        }
    }

    /// What was written to a segment that has no name any more is gone.
    fn lose(&mut self, ended: Ended) {
        let content = ended.content();
        // Counted as durable like all others, and taken back from that with the rest.
        flush(&ended.file, ended.unflushed, &self.status);
        self.removed.packets += content.packets;
        self.removed.bytes += content.bytes;
        self.status.removed_packets.fetch_add(content.packets, Ordering::Relaxed);
        self.status.removed_bytes.fetch_add(content.bytes, Ordering::Relaxed);
        let (path, packets) = (ended.file.path().to_owned(), content.packets);
        self.status.tell(RecorderEvent::SegmentRemoved { path, packets });
    }

    fn fail(&self, path: &Path, error: &StoreError) {
        let (path, reason): (PathBuf, _) = (path.into(), error.to_string());
        self.status.tell(RecorderEvent::SealFailed { path, reason });
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = fs::remove_file(path)
            && error.kind() != ErrorKind::NotFound
        {
            let (path, reason) = (path.to_path_buf(), format!("removing it: {error}"));
            self.status.tell(RecorderEvent::SealFailed { path, reason });
        }
    }
}

fn seal_on_disk(ended: &Ended, status: &Status) -> Result<SealedSegment> {
    let bytes = ended.index.segment_length();
    ended.file.truncate(bytes)?;
    flush(&ended.file, ended.unflushed, status);
    let path = seal_file(ended.file.path(), &ended.index)?;
    if let Some(directory) = path.parent() {
        sync_directory(directory)?;
    }
    let packets = ended.index.chunks.iter().map(|chunk| u64::from(chunk.packets)).sum();
    Ok(SealedSegment { path, packets, bytes })
}

/// Brings what was written down to the disk.
pub(super) fn flush(file: &DirectFile, share: Share, status: &Status) {
    match file.sync_data() {
        Ok(()) => {
            status.durable_packets.fetch_add(share.packets, Ordering::Relaxed);
            status.durable_bytes.fetch_add(share.bytes, Ordering::Relaxed);
        }
        Err(error) => status.tell(RecorderEvent::FlushFailed { reason: error.to_string() }),
    }
}
