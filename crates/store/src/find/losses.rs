//! What is missing from an answer: losses that the recorder noted, chunks that cannot be read, times
//! of which nobody knows.
//!
//! Each chunk carries the recorder's cumulative account. What the account grew by since the chunk
//! before was lost between the latest packet of that chunk and the latest of this one, so every
//! such span that touches the window is told, with all of its losses: the sums are upper bounds
//! for the window.
//!
//! What lay in a segment that was removed while it was recorded to is first missing between two
//! chunks, and then lost to the storage in the recorder's last account, which takes it from the stored
//! packets. It is told once: as lost, in the span where it is missing.

use port::Reason;

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
    /// Streams that were being recorded and had not come to the end of the window: what their
    /// recorders had not written yet is nowhere to be found.
    pub recordings_going_on: u64,
}

impl Completeness {
    /// Whether nothing is known to be missing. Says nothing of times when nobody recorded.
    pub fn is_complete(&self) -> bool {
        self.spans.is_empty()
    }

    /// Packets lost for any reason.
    pub fn lost_total(&self) -> u64 {
        self.lost_packets.iter().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    pub(super) fn add(&mut self, span: LossSpan) {
        for (sum, lost) in self.lost_packets.iter_mut().zip(span.lost_packets) {
            *sum = sum.saturating_add(lost);
        }
        self.unreadable_packets = self.unreadable_packets.saturating_add(span.unreadable_packets);
        self.interruptions += u64::from(span.interrupted);
        if self.spans.len() < SPANS_MAX {
            self.spans.push(span);
        }
    }

    /// Of the packets told as unreadable since `spans_before` spans, at most `packets` are known to
    /// be lost to the storage.
    fn explain(&mut self, spans_before: usize, packets: u64) {
        let mut moved = Ledger { lost_packets: self.lost_packets, ..Ledger::default() };
        moved.lose(Reason::Storage, packets);
        self.lost_packets = moved.lost_packets;
        self.unreadable_packets = self.unreadable_packets.saturating_sub(packets);
        let mut left = packets;
        for span in self.spans.iter_mut().skip(spans_before) {
            let share = left.min(span.unreadable_packets);
            let mut lost = Ledger { lost_packets: span.lost_packets, ..Ledger::default() };
            lost.lose(Reason::Storage, share);
            span.lost_packets = lost.lost_packets;
            span.unreadable_packets -= share;
            left -= share;
        }
    }
}

/// What comes behind the last chunk of a session that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Nothing that the account does not tell.
    Nothing,
    /// Nobody knows: the recorder was interrupted, unless it goes on.
    Unknown,
    /// What is recorded at present.
    Future,
}

/// Where the account of a session stands.
#[derive(Debug, Clone, Copy)]
struct Standing {
    session: u64,
    stream: u16,
    ledger: Ledger,
    /// Latest packet so far, or the session's beginning.
    latest_ns: u64,
    behind: Behind,
    /// Spans that had been told when the session began.
    spans_before: usize,
    /// Packets of the session told as unreadable so far.
    unreadable_packets: u64,
}

/// Follows the accounts of the chunks of one directory, in the order of streams and numbers.
#[derive(Debug)]
pub(super) struct Accounts<'s> {
    selection: &'s Selection,
    standing: Option<Standing>,
}

impl<'s> Accounts<'s> {
    pub(super) fn new(selection: &'s Selection) -> Self {
        Self { selection, standing: None }
    }

    /// Takes the account of the next chunk that is not a header; tells what was lost before it.
    pub(super) fn follow(&mut self, chunk: &ChunkTrailer, completeness: &mut Completeness) {
        let mut before = self.enter(chunk, completeness);
        if chunk.is_filler() {
            self.standing = Some(Standing { behind: Behind::Unknown, ..before });
            return;
        }
        let to_ns = chunk.time_max_ns.max(before.latest_ns);
        let packets = u64::from(chunk.packets);
        let given_up = before.give_up(packets, &chunk.ledger, completeness);
        let mut told_before = before.ledger;
        told_before.lose(Reason::Storage, given_up);
        let stored_before = chunk.ledger.stored_packets.saturating_sub(packets);
        let span = LossSpan {
            from_ns: before.latest_ns,
            to_ns,
            lost_packets: chunk.ledger.lost_since(&told_before),
            unreadable_packets: stored_before.saturating_sub(before.ledger.stored_packets),
            interrupted: false,
        };
        if self.tell(span, completeness) {
            before.unreadable_packets += span.unreadable_packets;
        }
        let (ledger, latest_ns) = (chunk.ledger, to_ns);
        self.standing = Some(Standing { ledger, latest_ns, behind: Behind::Nothing, ..before });
    }

    /// Takes note of a segment that was not sealed when it was looked at, by any of its chunks.
    pub(super) fn leave_open(
        &mut self,
        chunk: &ChunkTrailer,
        being_recorded: bool,
        completeness: &mut Completeness,
    ) {
        let before = self.enter(chunk, completeness);
        let behind = if being_recorded { Behind::Future } else { Behind::Unknown };
        self.standing = Some(Standing { behind, ..before });
    }

    /// Passes over a segment none of whose losses touch the window.
    pub(super) fn pass_over(
        &mut self,
        last: &ChunkTrailer,
        time_max_ns: u64,
        completeness: &mut Completeness,
    ) {
        let mut before = self.enter(last, completeness);
        let packets = last.packets_before + u64::from(last.packets);
        before.give_up(packets, &last.ledger, completeness);
        let (ledger, latest_ns) = (last.ledger, time_max_ns);
        self.standing = Some(Standing { ledger, latest_ns, behind: Behind::Nothing, ..before });
    }

    /// Latest time before the next chunk of this session and stream.
    pub(super) fn latest_ns(&self, session: u64, stream: u16) -> u64 {
        let known = self.standing.filter(|now| (now.session, now.stream) == (session, stream));
        known.map_or(session, |standing| standing.latest_ns)
    }

    /// The end of the directory: what was interrupted then never went on.
    pub(super) fn end(mut self, completeness: &mut Completeness) {
        if let Some(before) = self.standing.take() {
            self.tell_behind(&before, u64::MAX, completeness);
        }
    }

    /// Where the account of the chunk's session stands before it. An interruption of the session
    /// before lasted at most until this one began.
    fn enter(&mut self, chunk: &ChunkTrailer, completeness: &mut Completeness) -> Standing {
        let (session, stream) = (chunk.session, chunk.stream);
        if let Some(before) = self.standing.take() {
            if (before.session, before.stream) == (session, stream) {
                return before;
            }
            let until = if before.stream == stream { session } else { u64::MAX };
            self.tell_behind(&before, until, completeness);
        }
        let ledger = Ledger::default();
        Standing {
            session,
            stream,
            ledger,
            latest_ns: session,
            behind: Behind::Nothing,
            spans_before: completeness.spans.len(),
            unreadable_packets: 0,
        }
    }

    fn tell_behind(&self, before: &Standing, until: u64, completeness: &mut Completeness) {
        if before.behind == Behind::Future && self.selection.overlaps(before.latest_ns, until) {
            completeness.recordings_going_on += 1;
        }
        let span = LossSpan {
            from_ns: before.latest_ns,
            to_ns: until.max(before.latest_ns),
            lost_packets: [0; LOSS_SLOTS],
            unreadable_packets: 0,
            interrupted: before.behind == Behind::Unknown,
        };
        self.tell(span, completeness);
    }

    /// Whether the span is one of losses and touches the window; then it is told.
    fn tell(&self, span: LossSpan, completeness: &mut Completeness) -> bool {
        let lost = span.lost_packets.iter().any(|lost| *lost > 0) || span.unreadable_packets > 0;
        let told = (lost || span.interrupted) && self.selection.overlaps(span.from_ns, span.to_ns);
        if told {
            completeness.add(span);
        }
        told
    }
}

impl Standing {
    /// Packets that had been stored, and that the account `now`, `packets` packets on, counts as lost
    /// to the storage. Those that were told as missing are told as lost instead.
    fn give_up(&mut self, packets: u64, now: &Ledger, completeness: &mut Completeness) -> u64 {
        let stored = self.ledger.stored_packets.saturating_add(packets);
        let lost = now.lost(Reason::Storage).saturating_sub(self.ledger.lost(Reason::Storage));
        let given_up = stored.saturating_sub(now.stored_packets).min(lost);
        let explained = given_up.min(self.unreadable_packets);
        completeness.explain(self.spans_before, explained);
        self.unreadable_packets -= explained;
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(time: u64, packets: u32, stored: u64, lost: u64) -> ChunkTrailer {
        let mut ledger = Ledger { stored_packets: stored, ..Ledger::default() };
        ledger.lose(Reason::Storage, lost);
        ChunkTrailer { session: 5, packets, time_max_ns: time, ledger, ..ChunkTrailer::default() }
    }

    fn follow(from: u64, to: u64, chunks: &[ChunkTrailer]) -> Completeness {
        let mut completeness = Completeness::default();
        let selection = Selection::between(from, to);
        let mut accounts = Accounts::new(&selection);
        for chunk in chunks {
            accounts.follow(chunk, &mut completeness);
        }
        accounts.end(&mut completeness);
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
    fn what_a_removed_segment_held_is_told_once_and_where_it_is_missing() {
        // 15 packets are missing before the second chunk; the last account counts them as lost, and
        // two more that never were in a chunk.
        let chunks = [chunk(100, 10, 10, 0), chunk(300, 10, 35, 0), chunk(400, 0, 20, 17)];
        let told = |from, to| {
            let told = follow(from, to, &chunks);
            let spans =
                told.spans.iter().map(|span| (span.lost_packets[4], span.unreadable_packets));
            (told.lost_packets[4], told.unreadable_packets, spans.collect::<Vec<_>>())
        };
        assert_eq!(told(0, 500), (17, 0, vec![(15, 0), (2, 0)]));
        assert_eq!(told(200, 250), (15, 0, vec![(15, 0)]));
        assert_eq!(told(350, 500), (2, 0, vec![(2, 0)]));
        assert_eq!(told(0, 90), (0, 0, vec![]));
        // What is damaged beside it remains so, and so does all until the last account.
        let more = [chunks[0], chunks[1], chunk(400, 0, 25, 10)];
        let partly = follow(0, 500, &more);
        assert_eq!((partly.lost_packets[4], partly.unreadable_packets), (10, 5));
        assert_eq!(follow(0, 500, &chunks[..2]).unreadable_packets, 15);
    }

    #[test]
    fn a_last_account_that_is_passed_over_explains_what_is_missing() {
        let mut completeness = Completeness::default();
        let selection = Selection::between(200, 250);
        let mut accounts = Accounts::new(&selection);
        accounts.follow(&chunk(100, 10, 10, 0), &mut completeness);
        accounts.follow(&chunk(300, 10, 35, 0), &mut completeness);
        let mut last = chunk(400, 0, 24, 15);
        last.packets_before = 4;
        accounts.pass_over(&last, 400, &mut completeness);
        accounts.end(&mut completeness);
        assert_eq!((completeness.lost_packets[4], completeness.unreadable_packets), (15, 0));
    }

    #[test]
    fn an_interruption_lasts_until_the_next_session() {
        let mut filler = chunk(0, 0, 10, 0);
        filler.flags = crate::trailer::FLAG_FILLER;
        let mut next = chunk(900, 10, 10, 0);
        next.session = 800;
        let cut = [chunk(100, 10, 10, 0), filler, next];
        assert_eq!(follow(200, 300, &cut).spans[0].to_ns, 800);
        assert!(follow(801, 1000, &cut).is_complete());
        // A hole in a session that goes on is told by its packets.
        let hole = [chunk(100, 10, 10, 0), filler, chunk(300, 10, 35, 0)];
        let told = follow(0, 400, &hole);
        assert_eq!((told.interruptions, told.unreadable_packets), (0, 15));
    }

    #[test]
    fn an_open_segment_is_an_interruption_unless_it_is_being_recorded() {
        let told = |from, being_recorded| {
            let mut completeness = Completeness::default();
            let selection = Selection::between(from, from + 10);
            let mut accounts = Accounts::new(&selection);
            let last = chunk(100, 10, 10, 0);
            accounts.follow(&last, &mut completeness);
            accounts.leave_open(&last, being_recorded, &mut completeness);
            accounts.end(&mut completeness);
            (completeness.interruptions, completeness.recordings_going_on)
        };
        assert_eq!((told(200, false), told(200, true)), ((1, 0), (0, 1)));
        // What lies before its latest packet is as complete as ever.
        assert_eq!((told(50, false), told(50, true)), ((0, 0), (0, 0)));
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
