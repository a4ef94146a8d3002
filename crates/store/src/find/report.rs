//! What a search read, found and passed over: an account that balances at every moment.

use super::losses::{Accounts, Completeness};
use super::pending::Pending;
use crate::selection::Verdict;

/// What was read, found and missing. Counters grow while packets are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FindReport {
    /// Segments with chunks in the window.
    pub segments_read: u64,
    /// Segments without.
    pub segments_skipped: u64,
    /// Segments deleted after they were listed.
    pub segments_vanished: u64,
    /// Chunks read.
    pub chunks_read: u64,
    /// Chunks outside the window, by their trailers.
    pub chunks_skipped: u64,
    /// Chunks whose checksum is wrong; their packets are missing.
    pub chunks_damaged: u64,
    /// Captures read that are no segments.
    pub captures_read: u64,
    /// Bytes read of chunks and captures.
    pub bytes_read: u64,
    /// Packets in what was read, by the chunks' own accounts and the captures' readers: those found
    /// or waiting, outside the window, unmatched, undecided, or unreadable. Those that are in no
    /// chunk any more, by the accounts of the chunks around, are among them.
    pub packets_read: u64,
    /// Packets looked at.
    pub packets_examined: u64,
    /// Packets whose times are not looked for.
    pub packets_outside_window: u64,
    /// Packets of the window without what is looked for.
    pub packets_unmatched: u64,
    /// Packets of the window that were cut when captured, before the headers that decide.
    pub packets_undecided: u64,
    /// Packets in chunks that were to be read and are damaged or gone.
    pub packets_unreadable: u64,
    /// Packets delivered.
    pub packets_found: u64,
    /// Packets delivered after a packet of a later time.
    pub late_packets: u64,
    /// What is known to be missing from the window.
    pub completeness: Completeness,
    /// Captures that could not be read to their ends, and damaged chunks, in words; the first 100.
    pub problems: Vec<String>,
    /// What was passed over and takes nothing from the answer, in words.
    pub warnings: Vec<String>,
}

impl FindReport {
    /// Takes note of a packet of the window that is not found.
    pub(super) fn pass_over(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Undecided => self.packets_undecided += 1,
            _ => self.packets_unmatched += 1,
        }
    }

    /// Charges the packets of a chunk that cannot be read, but for those delivered before.
    pub(super) fn lose(&mut self, chunk: &Pending) {
        if chunk.waiting.is_none() {
            self.packets_read += u64::from(chunk.packets);
        }
        self.packets_unreadable += chunk.missing_packets();
        self.completeness.add(chunk.loss());
    }

    /// The accounts have come to their end: what is missing between chunks is charged as unreadable,
    /// like what is in damaged ones.
    pub(super) fn end(&mut self, accounts: Accounts<'_>) {
        accounts.end(&mut self.completeness);
        // Both grow together but for what this adds.
        let missing = self.completeness.unreadable_packets.saturating_sub(self.packets_unreadable);
        self.packets_read = self.packets_read.saturating_add(missing);
        self.packets_unreadable = self.packets_unreadable.saturating_add(missing);
    }

    pub(super) fn problem(&mut self, text: String) {
        if self.problems.len() < 100 {
            self.problems.push(text);
        }
    }
}
