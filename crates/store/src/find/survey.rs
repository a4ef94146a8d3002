//! Follows the chunks of a store, segment by segment: what they say was lost, and what is missing
//! of sealed segments that were damaged since.

use std::path::Path;

use super::FindReport;
use super::losses::{Accounts, LossSpan};
use super::sealed::{Contents, End};
use crate::ledger::{LOSS_SLOTS, Ledger};
use crate::selection::Selection;
use crate::time_index::TimeSummary;
use crate::trailer::ChunkTrailer;

/// The damaged end of a sealed segment. Until when packets may be missing, and how many, the
/// segment behind it says.
#[derive(Debug)]
struct TornEnd {
    stream: u16,
    /// `None` if no chunk is left that says it.
    session: Option<u64>,
    from_ns: u64,
    text: String,
}

/// The way through the segments of a store, in the order of streams and numbers.
#[derive(Debug)]
pub(super) struct Survey<'s> {
    pub(super) selection: &'s Selection,
    pub(super) accounts: Accounts<'s>,
    /// The chunk that was followed last, whose account is believed.
    last: Option<ChunkTrailer>,
    torn: Option<TornEnd>,
}

impl<'s> Survey<'s> {
    pub(super) fn new(selection: &'s Selection) -> Self {
        Self { selection, accounts: Accounts::new(selection), last: None, torn: None }
    }

    /// Passes over a whole segment if nothing in it touches the window, nor do its losses.
    pub(super) fn passes_over(&mut self, summary: &TimeSummary, report: &mut FindReport) -> bool {
        let last = &summary.last;
        let latest = self.accounts.latest_ns(last.session, last.stream);
        let from = latest.min(summary.time_min_ns);
        let to = latest.max(summary.time_max_ns).max(last.time_max_ns);
        // Behind an interruption nobody knows how long packets were missing.
        if last.is_filler() || self.selection.overlaps(from, to) {
            return false;
        }
        self.accounts.pass_over(last, to, &mut report.completeness);
        self.settle(last, to, report);
        self.last = Some(*last);
        report.chunks_skipped += u64::from(summary.chunk_count);
        true
    }

    /// Takes the account of the next chunk that is no header.
    pub(super) fn follow(&mut self, chunk: &ChunkTrailer, report: &mut FindReport) {
        self.accounts.follow(chunk, &mut report.completeness);
        if !chunk.is_filler() {
            self.settle(chunk, chunk.time_max_ns, report);
        }
        self.last = Some(*chunk);
    }

    /// Whether the account of a chunk says no more than that its packets were stored behind those
    /// of the chunk before.
    pub(super) fn is_expected(&self, chunk: &ChunkTrailer) -> bool {
        let stored =
            |last: &ChunkTrailer| last.ledger.stored_packets.checked_add(u64::from(chunk.packets));
        self.last.as_ref().is_some_and(|last| {
            (last.session, last.stream) == (chunk.session, chunk.stream)
                && last.ledger.lost_packets == chunk.ledger.lost_packets
                && stored(last) == Some(chunk.ledger.stored_packets)
        })
    }

    /// Follows a chunk that is not to be believed: its packets are missing, which is told when it
    /// is read, and of losses it says nothing.
    pub(super) fn follow_damaged(&mut self, chunk: &ChunkTrailer, report: &mut FindReport) {
        let Some(last) = self.last.filter(|last| last.segment_id == chunk.segment_id) else {
            return;
        };
        let stored_packets = last.ledger.stored_packets.saturating_add(u64::from(chunk.packets));
        let ledger = Ledger { stored_packets, ..last.ledger };
        self.follow(&ChunkTrailer { packets: chunk.packets, ledger, ..last }, report);
    }

    /// Tells what is missing where no whole chunk lies between `before` and `next` of a segment.
    pub(super) fn cross_hole(
        &mut self,
        path: &Path,
        before: Option<&ChunkTrailer>,
        next: &ChunkTrailer,
        report: &mut FindReport,
    ) {
        let end = before.map_or(0, ChunkTrailer::end);
        let begin =
            before.map_or(0, |chunk| chunk.packets_before.saturating_add(chunk.packets.into()));
        let missing = next.packets_before.saturating_sub(begin);
        if next.offset <= end || missing == 0 {
            return;
        }
        let from_ns = self.accounts.latest_ns(next.session, next.stream);
        let to_ns = next.time_max_ns.max(from_ns);
        // Stands for all that is missing, so that the account does not tell it again.
        let stored_packets = next.ledger.stored_packets.saturating_sub(next.packets.into());
        let packets = u32::try_from(missing).unwrap_or(u32::MAX);
        let ledger = Ledger { stored_packets, ..next.ledger };
        self.follow(&ChunkTrailer { packets, flags: 0, ledger, ..*next }, report);
        if !self.selection.overlaps(from_ns, to_ns) {
            return;
        }
        let first = before.map_or(0, |chunk| chunk.sequence.saturating_add(1));
        report.chunks_damaged += next.sequence.saturating_sub(first).max(1);
        report.completeness.add(LossSpan {
            from_ns,
            to_ns,
            lost_packets: [0; LOSS_SLOTS],
            unreadable_packets: missing,
            interrupted: false,
        });
        report.problem(format!(
            "{}: no whole chunk lies from byte {end} to byte {}; {missing} packets are missing",
            path.display(),
            next.offset
        ));
    }

    /// Tells, now or when more is known, that a sealed segment does not end as it should.
    pub(super) fn leave_sealed(
        &mut self,
        stream: u16,
        contents: &Contents,
        report: &mut FindReport,
    ) {
        match &contents.end {
            End::Whole => {}
            End::Known { first, text } => {
                let (there, missing) =
                    contents.chunks.split_at((*first).min(contents.chunks.len()));
                let known = !missing.is_empty() && !missing.iter().any(ChunkTrailer::is_filler);
                let to_ns = if known { latest_of(missing, u64::MAX) } else { u64::MAX };
                if self.selection.overlaps(latest_of(there, 0).min(to_ns), to_ns) {
                    report.problem(text.clone());
                }
            }
            End::Unknown { text } => {
                self.settle_at_end(report);
                let session = contents.chunks.last().map(|chunk| chunk.session);
                let before = self.last.filter(|last| last.stream == stream);
                let from_ns = latest_of(&contents.chunks, latest_of(before.as_slice(), 0));
                self.torn = Some(TornEnd { stream, session, from_ns, text: text.clone() });
            }
        }
    }

    /// The end of the store.
    pub(super) fn end(mut self, report: &mut FindReport) {
        self.settle_at_end(report);
        report.end(self.accounts);
    }

    /// Tells of the damaged end before `next`, whose account has said what was stored in between.
    fn settle(&mut self, next: &ChunkTrailer, time_max_ns: u64, report: &mut FindReport) {
        let Some(torn) = self.torn.take() else { return };
        let same_session = torn.session.is_none_or(|session| session == next.session);
        let until_ns = match (torn.stream == next.stream, same_session) {
            (true, true) => time_max_ns,
            (true, false) => next.session,
            (false, _) => u64::MAX,
        };
        self.tell_torn(torn, until_ns, report);
    }

    fn settle_at_end(&mut self, report: &mut FindReport) {
        if let Some(torn) = self.torn.take() {
            self.tell_torn(torn, u64::MAX, report);
        }
    }

    fn tell_torn(&self, torn: TornEnd, until_ns: u64, report: &mut FindReport) {
        if self.selection.overlaps(torn.from_ns, until_ns.max(torn.from_ns)) {
            report.chunks_damaged += 1;
            report.problem(torn.text);
        }
    }
}

/// Latest time that any of the chunks names.
fn latest_of(chunks: &[ChunkTrailer], without: u64) -> u64 {
    let times = chunks.iter().map(|chunk| chunk.time_max_ns.max(chunk.session));
    times.max().unwrap_or(without)
}
