//! What is missing from an answer: losses that the recorder noted, chunks that cannot be read, times
//! of which nobody knows.
//!
//! Each chunk carries the recorder's cumulative account. What the account grew by since the chunk
//! before was lost between the latest packet of that chunk and the latest of this one, so every
//! such span that touches the window is told, with all of its losses: the sums are upper bounds
//! for the window.

use crate::ledger::{LOSS_SLOTS, Ledger};
use crate::selection::Selection;
use crate::trailer::ChunkTrailer;

/// Spans told one by one; the sums go on beyond.
const SPANS_MAX: usize = 1000;

/// A span of time that touches the window and in which packets were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossSpan {
    /// Latest packet before it, in ns since the Unix epoch.
    pub from_ns: u64,
    /// Latest packet of it; `u64::MAX` if it is not known when it ended.
    pub to_ns: u64,
    /// Packets that the recorder counted as lost, by place of
    /// [`LOSS_REASONS`](crate::ledger::LOSS_REASONS), then others.
    pub lost_packets: [u64; LOSS_SLOTS],
    /// Packets that were stored and are in no whole chunk.
    pub unreadable_packets: u64,
    /// Whether an unknown number of packets more may be missing: the recorder was interrupted.
    pub interrupted: bool,
}

/// How complete an answer is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completeness {
    /// The first 1000 spans with losses.
    pub spans: Vec<LossSpan>,
    /// Packets lost in all spans, by place of [`LOSS_REASONS`](crate::ledger::LOSS_REASONS).
    pub lost_packets: [u64; LOSS_SLOTS],
    /// Packets of all spans that were stored and cannot be read.
    pub unreadable_packets: u64,
    /// Interruptions of a recorder in the window.
    pub interruptions: u64,
}

impl Completeness {
    /// Whether nothing is known to be missing. Says nothing of times when nobody recorded.
    pub fn is_complete(&self) -> bool {
        self.spans.is_empty()
    }

    fn add(&mut self, span: LossSpan) {
        for (sum, lost) in self.lost_packets.iter_mut().zip(span.lost_packets) {
            *sum += lost;
        }
        self.unreadable_packets += span.unreadable_packets;
        self.interruptions += u64::from(span.interrupted);
        if self.spans.len() < SPANS_MAX {
            self.spans.push(span);
        }
    }
}

/// Follows the accounts of the chunks of one directory, in the order of streams and numbers.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// Session and stream, account, latest time so far.
    before: Option<(u64, u16, Ledger, u64)>,
}

impl Accounts {
    /// Takes the account of the next chunk that is not a header; tells what was lost before it.
    pub(super) fn follow(
        &mut self,
        chunk: &ChunkTrailer,
        selection: &Selection,
        completeness: &mut Completeness,
    ) {
        let (session, stream) = (chunk.session, chunk.stream);
        let (earlier, from_ns) = match self.before {
            Some((s, t, ledger, latest)) if (s, t) == (session, stream) => (ledger, latest),
            _ => (Ledger::default(), session),
        };
        let to_ns = if chunk.is_filler() { u64::MAX } else { chunk.time_max_ns.max(from_ns) };
        let stored_before = chunk.ledger.stored_packets.saturating_sub(u64::from(chunk.packets));
        let span = LossSpan {
            from_ns,
            to_ns,
            lost_packets: chunk.ledger.lost_since(&earlier),
            unreadable_packets: stored_before.saturating_sub(earlier.stored_packets),
            interrupted: chunk.is_filler(),
        };
        let counts = span.lost_packets.iter().any(|lost| *lost > 0)
            || span.unreadable_packets > 0
            || span.interrupted;
        if counts && selection.overlaps(span.from_ns, span.to_ns) {
            completeness.add(span);
        }
        let latest = if chunk.is_filler() { from_ns } else { to_ns };
        self.before = Some((session, stream, chunk.ledger, latest));
    }

    /// Passes over a segment whose last chunk is `last`, none of whose losses touch the window.
    pub(super) fn pass_over(&mut self, last: &ChunkTrailer, time_max_ns: u64) {
        self.before = Some((last.session, last.stream, last.ledger, time_max_ns));
    }

    /// Latest time before a segment of this session and stream.
    pub(super) fn latest(&self, session: u64, stream: u16) -> u64 {
        match self.before {
            Some((s, t, _, latest)) if (s, t) == (session, stream) => latest,
            _ => session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::Reason;

    fn chunk(time: u64, packets: u32, stored: u64, lost: u64) -> ChunkTrailer {
        let mut ledger = Ledger { stored_packets: stored, ..Ledger::default() };
        ledger.lose(Reason::Storage, lost);
        ChunkTrailer { session: 5, packets, time_max_ns: time, ledger, ..ChunkTrailer::default() }
    }

    fn follow(from: u64, to: u64, chunks: &[ChunkTrailer]) -> Completeness {
        let mut completeness = Completeness::default();
        let mut accounts = Accounts::default();
        for chunk in chunks {
            accounts.follow(chunk, &Selection::between(from, to), &mut completeness);
        }
        completeness
    }

    #[test]
    fn losses_are_told_where_they_touch_the_window() {
        let chunks = [chunk(100, 10, 10, 0), chunk(200, 10, 20, 7), chunk(300, 10, 30, 7)];
        assert!(follow(0, 100, &chunks).is_complete());
        assert_eq!(follow(150, 160, &chunks).lost_packets.iter().sum::<u64>(), 7);
        assert_eq!(follow(150, 160, &chunks).spans[0].from_ns, 100);
        assert!(follow(201, 400, &chunks).is_complete());
    }

    #[test]
    fn a_missing_chunk_and_an_interruption_are_told() {
        let mut filler = chunk(0, 0, 10, 0);
        filler.flags = crate::trailer::FLAG_FILLER;
        let whole = [chunk(100, 10, 10, 0), chunk(300, 10, 35, 0)];
        assert_eq!(follow(0, 400, &whole).unreadable_packets, 15);
        let cut = [chunk(100, 10, 10, 0), filler];
        assert_eq!(follow(200, 400, &cut).interruptions, 1);
        assert!(follow(0, 90, &cut).is_complete());
    }

    #[test]
    fn another_session_begins_from_nothing() {
        let mut other = chunk(900, 10, 10, 3);
        other.session = 800;
        let found = follow(850, 860, &[chunk(100, 10, 10, 2), other]);
        assert_eq!(found.spans.len(), 1);
        assert_eq!((found.spans[0].from_ns, found.lost_packets[4]), (800, 3));
    }
}
