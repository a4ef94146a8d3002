//! Gives segments whose chunks are all written their final form.
//!
//! The last segment of a recording gets the final account: what was lost behind the last chunk
//! stands nowhere else, and a full disk has room for it only where it was reserved
//! ([`ACCOUNT_BYTES`]). Which segment is the last shows only when another one is there or the
//! recording ends, so the newest is held back until then.
//!
//! A segment that somebody has removed or cut meanwhile shows by its links or its length: it was given
//! its full length in advance, which its chunks never reach. Only then is it read again, to tell which
//! chunks are left. Limit: bytes that somebody overwrites, or cuts off and puts zeros in their place, are
//! noticed by readers, not here.

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
use crate::recover::{plan_after_cut, seal_file, sync_directory};
use crate::time_index::TimeIndex;
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer};

/// Room that each segment has for a chunk which only carries the account, beside its length.
pub(super) const ACCOUNT_BYTES: u64 = ALIGNMENT_BYTES as u64;

/// A segment whose chunks are all written.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) file: Arc<DirectFile>,
    /// Length of the file, as long as nobody has cut it.
    pub(super) file_bytes: u64,
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

    /// Sets the length of the file.
    fn resize(&mut self, bytes: u64) -> Result<()> {
        self.file.truncate(bytes)?;
        self.file_bytes = bytes;
        Ok(())
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
        self.file_bytes = self.index.segment_length();
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
    /// What was in segments that somebody removed before they were sealed, or in the part of them
    /// that was cut off.
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
        if let Some(mut held) = self.held.take().and_then(|held| self.examine(held)) {
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
    fn hold(&mut self, ended: Ended) {
        let Some(mut ended) = self.examine(ended) else { return };
        let length = ended.index.segment_length() + ACCOUNT_BYTES;
        if let Err(error) = ended.resize(length) {
            self.fail(ended.file.path(), &error);
            return;
        }
        flush(&ended.file, std::mem::take(&mut ended.unflushed), &self.status);
        self.held = Some(ended);
    }

    fn seal(&mut self, ended: Ended) {
        let Some(ended) = self.examine(ended) else { return };
        self.unsealed.remove(&ended.number());
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

    /// What is left of a segment if somebody has removed or cut its file; what was in the rest is lost.
    fn examine(&mut self, mut ended: Ended) -> Option<Ended> {
        let path = ended.file.path().to_owned();
        if ended.file.is_removed() {
            self.unsealed.remove(&ended.number());
            let packets = self.lose(&mut ended, &TimeIndex::default());
            self.status.tell(RecorderEvent::SegmentRemoved { path, packets });
            return None;
        }
        if !ended.file.is_shorter_than(ended.file_bytes) {
            return Some(ended);
        }
        let mended = plan_after_cut(&path, &ended.index).and_then(|mut plan| {
            let packets = self.lose(&mut ended, &plan.index);
            self.status.tell(RecorderEvent::SegmentCut { path: path.clone(), packets });
            plan.carry_out(&path)?;
            Ok(plan.index)
        });
        match mended {
            Ok(index) => {
                ended.file_bytes = index.segment_length();
                ended.index = index;
                Some(ended)
            }
            Err(error) => {
                self.unsealed.remove(&ended.number());
                self.fail(&path, &error);
                None
            }
        }
    }

    /// Takes what was written and is not among what is `left` from what is stored; returns how many
    /// packets.
    fn lose(&mut self, ended: &mut Ended, left: &TimeIndex) -> u64 {
        // Counted as durable like all others, and taken back from that with the rest.
        flush(&ended.file, std::mem::take(&mut ended.unflushed), &self.status);
        let (before, after) = (content(&ended.index), content(left));
        let lost = Share {
            packets: before.packets.saturating_sub(after.packets),
            bytes: before.bytes.saturating_sub(after.bytes),
        };
        self.removed.packets += lost.packets;
        self.removed.bytes += lost.bytes;
        self.status.removed_packets.fetch_add(lost.packets, Ordering::Relaxed);
        self.status.removed_bytes.fetch_add(lost.bytes, Ordering::Relaxed);
        lost.packets
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

/// What is in the chunks.
fn content(index: &TimeIndex) -> Share {
    index.chunks.iter().fold(Share::default(), |sum, chunk| Share {
        packets: sum.packets + u64::from(chunk.packets),
        bytes: sum.bytes + chunk.captured_bytes,
    })
}

fn seal_on_disk(ended: &Ended, status: &Status) -> Result<SealedSegment> {
    let bytes = ended.index.segment_length();
    ended.file.truncate(bytes)?;
    flush(&ended.file, ended.unflushed, status);
    let path = seal_file(ended.file.path(), &ended.index)?;
    if let Some(directory) = path.parent() {
        sync_directory(directory)?;
    }
    Ok(SealedSegment { path, packets: content(&ended.index).packets, bytes })
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
