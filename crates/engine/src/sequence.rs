//! Loss, reordering and duplicates of one numbered stream, exact within a window.
//!
//! A frame is *reordered* when a higher number came before it (RFC 4737, section 3), *duplicate* when
//! its number was seen, *lost* when it lies between the lowest and the highest number seen and never
//! came. Which numbers were seen is remembered for the last [`WINDOW`] numbers; a frame older than
//! that can be told neither duplicate nor late, and is counted as `beyond_window`.

/// Numbers that are remembered: 128 KiB of bits, 0.2 s at 5 Mpps.
pub const WINDOW: u64 = 1 << 20;

const WORD_BITS: u64 = u64::BITS as u64;

/// A sender begins at 0 and stamps a batch at a time: a number this small with a newer time than
/// any before is the beginning of another run, not a very late frame.
const RESTART_BELOW: u64 = 64;

/// What a numbered stream went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SequenceCounters {
    /// Numbered frames seen, all of them.
    pub received_packets: u64,
    /// Numbers between the lowest and the highest that never came.
    pub lost_packets: u64,
    /// Frames that came after one with a higher number.
    pub reordered_packets: u64,
    /// How far behind the highest number a reordered frame was, at most (RFC 4737, 4.2.2).
    pub reorder_extent_max: u64,
    /// Frames whose number had been seen.
    pub duplicate_packets: u64,
    /// Frames too old to tell whether they were late or duplicate.
    pub beyond_window_packets: u64,
    /// Times that the sender began again.
    pub restarts: u64,
}

/// Follows one stream of numbers.
#[derive(Debug)]
pub struct Sequence {
    seen: Vec<u64>,
    lowest: u64,
    highest: Option<u64>,
    newest_time_ns: u64,
    unique: u64,
    /// Of runs that ended by a restart.
    lost_before: u64,
    counters: SequenceCounters,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            seen: vec![0; (WINDOW / WORD_BITS) as usize],
            lowest: 0,
            highest: None,
            newest_time_ns: 0,
            unique: 0,
            lost_before: 0,
            counters: SequenceCounters::default(),
        }
    }
}

impl Sequence {
    /// Sees frame `number`, sent at `time_ns` by the sender's clock.
    #[inline]
    pub fn see(&mut self, number: u64, time_ns: u64) {
        self.counters.received_packets += 1;
        match self.highest {
            Some(highest) if number == highest + 1 => {
                self.advance(number, highest);
                self.newest_time_ns = self.newest_time_ns.max(time_ns);
            }
            Some(highest) => self.see_unexpected(number, time_ns, highest),
            None => self.begin(number, time_ns),
        }
    }

    /// The account so far.
    pub fn counters(&self) -> SequenceCounters {
        SequenceCounters { lost_packets: self.lost_before + self.missing(), ..self.counters }
    }

    fn missing(&self) -> u64 {
        self.highest.map_or(0, |highest| highest - self.lowest + 1 - self.unique)
    }

    fn begin(&mut self, number: u64, time_ns: u64) {
        self.seen.fill(0);
        self.lowest = number;
        self.highest = Some(number);
        self.newest_time_ns = time_ns;
        self.unique = 1;
        self.mark(number);
    }

    #[cold]
    fn see_unexpected(&mut self, number: u64, time_ns: u64, highest: u64) {
        if number > highest {
            self.advance(number, highest);
        } else if number < RESTART_BELOW && highest > number && time_ns > self.newest_time_ns {
            self.lost_before += self.missing();
            self.counters.restarts += 1;
            self.begin(number, time_ns);
            return;
        } else if highest - number >= WINDOW {
            self.counters.beyond_window_packets += 1;
        } else if self.is_marked(number) {
            self.counters.duplicate_packets += 1;
        } else {
            self.mark(number);
            self.unique += 1;
            self.lowest = self.lowest.min(number);
            self.counters.reordered_packets += 1;
            let extent = highest - number;
            self.counters.reorder_extent_max = self.counters.reorder_extent_max.max(extent);
        }
        self.newest_time_ns = self.newest_time_ns.max(time_ns);
    }

    /// Moves the window up to `number` and marks it.
    #[inline]
    fn advance(&mut self, number: u64, highest: u64) {
        self.forget(highest + 1, number);
        self.mark(number);
        self.highest = Some(number);
        self.unique += 1;
    }

    /// Clears the places of the numbers `from..=to`, which reuse those of numbers a window ago.
    #[inline]
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.seen.fill(0);
            return;
        }
        let mut number = from;
        while number <= to {
            let within = number % WORD_BITS;
            let count = (WORD_BITS - within).min(to - number + 1);
            let bits = if count == WORD_BITS { u64::MAX } else { (1 << count) - 1 };
            if let Some(word) = self.seen.get_mut(word_of(number)) {
                *word &= !(bits << within);
            }
            number += count;
        }
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        if let Some(word) = self.seen.get_mut(word_of(number)) {
            *word |= 1 << (number % WORD_BITS);
        }
    }

    fn is_marked(&self, number: u64) -> bool {
        self.seen.get(word_of(number)).is_some_and(|word| word & (1 << (number % WORD_BITS)) != 0)
    }
}

fn word_of(number: u64) -> usize {
    ((number % WINDOW) / WORD_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(numbers: impl IntoIterator<Item = u64>) -> SequenceCounters {
        let mut sequence = Sequence::default();
        for number in numbers {
            // One clock for the whole stream: a late frame carries an old time.
            sequence.see(number, 1_000 + number);
        }
        sequence.counters()
    }

    #[test]
    fn a_clean_stream_has_nothing_to_report() {
        let seen = counters(100..5_000_000);
        assert_eq!(
            seen,
            SequenceCounters { received_packets: 4_999_900, ..SequenceCounters::default() }
        );
    }

    #[test]
    fn loss_reorder_and_duplicates_are_told_apart() {
        let seen = counters([0, 1, 2, 5, 3, 3, 7, 5]);
        assert_eq!(seen.lost_packets, 2, "4 and 6");
        assert_eq!(seen.reordered_packets, 1, "the first 3");
        assert_eq!(seen.reorder_extent_max, 2);
        assert_eq!(seen.duplicate_packets, 2, "the second 3, the second 5");
        assert_eq!(seen.received_packets, 8);
    }

    #[test]
    fn a_number_below_the_first_counts_as_late_not_as_lost() {
        let seen = counters([100, 99, 98, 101]);
        assert_eq!((seen.lost_packets, seen.reordered_packets), (0, 2));
    }

    #[test]
    fn places_are_reused_after_a_window() {
        // Everything but every 7th number, far beyond the window.
        let all = (0..3 * WINDOW).filter(|number| number % 7 != 3);
        let seen = counters(all);
        let expected = (0..3 * WINDOW).filter(|number| number % 7 == 3).count() as u64;
        assert_eq!((seen.lost_packets, seen.duplicate_packets), (expected, 0));
    }

    #[test]
    fn a_jump_over_the_window_forgets_all_of_it() {
        let seen = counters([0, 1, 2, 10 * WINDOW, 10 * WINDOW - 1, 3]);
        assert_eq!(seen.lost_packets, 10 * WINDOW + 1 - 5);
        assert_eq!((seen.reordered_packets, seen.beyond_window_packets), (1, 1));
    }

    #[test]
    fn a_second_run_is_a_restart() {
        let mut sequence = Sequence::default();
        for time in [10, 20] {
            for number in (0..1_000).filter(|number| *number != 500) {
                sequence.see(number, time);
            }
        }
        let seen = sequence.counters();
        assert_eq!((seen.restarts, seen.lost_packets, seen.duplicate_packets), (1, 2, 0));
    }
}
