//! Loss, reordering and duplicates of one numbered stream, exact within a window.
//!
//! A frame is *reordered* when a higher number came before it (RFC 4737, section 3), *duplicate* when
//! its number was seen, *lost* when it lies between the lowest and the highest number seen and never
//! came. Which numbers were seen is remembered for the last [`WINDOW`] numbers; a frame older than
//! that can be told neither duplicate nor late, and is counted as `beyond_window`.

/// Numbers that are remembered: 128 KiB of bits, 0.2 s at 5 Mpps.
pub const WINDOW: u64 = 1 << 20;

const WORD_BITS: u64 = u64::BITS as u64;

/// Where a sender begins. A number below with a newer time than any before is the beginning of another
/// run if it was seen, or if none of these numbers was; if others were, it is a late frame of a
/// worker that shares the numbers with others and begins after them.
const RESTART_BELOW: u64 = 64;

/// So many frames of a possible beginning are remembered: each number once, and some twice.
const BEGINNING_FRAMES: usize = 2 * RESTART_BELOW as usize;

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

/// Frames that were taken as late and may be the beginning of another run whose first numbers the
/// present one had lost: the next frame that belongs to one or the other tells.
#[derive(Debug)]
struct Beginning {
    /// Number and time of these frames, which came one behind the other.
    frames: Vec<(u64, u64)>,
    highest: u64,
    // What they are taken back to if another run begins.
    low: u64,
    lowest: u64,
    unique: u64,
    newest_time_ns: u64,
    counters: SequenceCounters,
}

/// Follows one stream of numbers.
#[derive(Debug)]
pub struct Sequence {
    seen: Vec<u64>,
    lowest: u64,
    highest: Option<u64>,
    /// Which of the numbers below [`RESTART_BELOW`] this run has seen, however long ago.
    low: u64,
    newest_time_ns: u64,
    unique: u64,
    beginning: Option<Beginning>,
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
            low: 0,
            newest_time_ns: 0,
            unique: 0,
            beginning: None,
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
        self.place(number, time_ns);
    }

    #[inline]
    fn place(&mut self, number: u64, time_ns: u64) {
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
        self.low = low_bit(number);
        self.mark(number);
    }

    #[cold]
    fn see_unexpected(&mut self, number: u64, time_ns: u64, highest: u64) {
        // Frames with the highest number plus 1 came in between: it was no beginning.
        self.beginning.take_if(|beginning| beginning.highest != highest);
        let newest_time_ns = match &self.beginning {
            Some(beginning) => beginning.newest_time_ns,
            None => self.newest_time_ns,
        };
        if number < RESTART_BELOW && number <= highest && time_ns > newest_time_ns {
            self.see_low(number, time_ns, highest);
            return;
        }
        self.beginning = None;
        if number > highest {
            self.advance(number, highest);
        } else {
            self.see_late(number, highest);
        }
        self.newest_time_ns = self.newest_time_ns.max(time_ns);
    }

    /// A low number with a new time: another run, or the first frames of a worker of this one.
    fn see_low(&mut self, number: u64, time_ns: u64, highest: u64) {
        let low = self.beginning.as_ref().map_or(self.low, |beginning| beginning.low);
        if low == 0 || low & low_bit(number) != 0 {
            self.restart(number, time_ns);
            return;
        }
        let beginning = self.beginning.get_or_insert_with(|| Beginning {
            frames: Vec::new(),
            highest,
            low,
            lowest: self.lowest,
            unique: self.unique,
            newest_time_ns: self.newest_time_ns,
            counters: self.counters,
        });
        beginning.frames.push((number, time_ns));
        let is_too_long = beginning.frames.len() >= BEGINNING_FRAMES;
        self.see_late(number, highest);
        self.newest_time_ns = self.newest_time_ns.max(time_ns);
        if is_too_long {
            self.beginning = None;
        }
    }

    /// Another run, which began with the frames of the beginning if there are any.
    fn restart(&mut self, number: u64, time_ns: u64) {
        let frames = self.beginning.take().map_or_else(Vec::new, |beginning| {
            self.lowest = beginning.lowest;
            self.unique = beginning.unique;
            self.counters = SequenceCounters {
                received_packets: self.counters.received_packets,
                ..beginning.counters
            };
            beginning.frames
        });
        self.lost_before += self.missing();
        self.counters.restarts += 1;
        self.highest = None;
        for (number, time_ns) in frames.into_iter().chain([(number, time_ns)]) {
            self.place(number, time_ns);
        }
    }

    fn see_late(&mut self, number: u64, highest: u64) {
        self.low |= low_bit(number);
        if highest - number >= WINDOW {
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
    }

    /// Moves the window up to `number` and marks it.
    #[inline]
    fn advance(&mut self, number: u64, highest: u64) {
        self.forget(highest + 1, number);
        self.mark(number);
        self.low |= low_bit(number);
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

/// The place of a number below [`RESTART_BELOW`] among those.
#[inline]
fn low_bit(number: u64) -> u64 {
    if number < RESTART_BELOW { 1 << number } else { 0 }
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

    /// The account of frames `(number, time)`.
    fn timed(frames: impl IntoIterator<Item = (u64, u64)>) -> SequenceCounters {
        let mut sequence = Sequence::default();
        for (number, time_ns) in frames {
            sequence.see(number, time_ns);
        }
        sequence.counters()
    }

    /// Workers 0 and 1 stamp batches of 64, each with every other number; bit `n` of `order` says
    /// whose the `n`-th batch is.
    fn batches(order: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut made = [0, 0];
        (0..count).flat_map(move |time| {
            let worker = (order >> time) & 1;
            let first = made[worker as usize] * 128 + worker;
            made[worker as usize] += 1;
            (0..64).map(move |frame| (first + 2 * frame, 1_000 + time))
        })
    }

    #[test]
    fn workers_in_any_order_lose_nothing_and_restart_nothing() {
        let mut orders = 0;
        for order in (0u64..1 << 10).filter(|order| order.count_ones() == 5) {
            let seen = timed(batches(order, 10));
            assert_eq!((seen.lost_packets, seen.restarts), (0, 0), "{order:b}");
            let (received, duplicate) = (seen.received_packets, seen.duplicate_packets);
            assert_eq!((received, duplicate), (640, 0), "{order:b}");
            orders += 1;
        }
        assert_eq!(orders, 252);
        // One begins when the other is 2 windows ahead: its frames are too old to tell, no run.
        let ahead = (0..WINDOW).map(|number| (2 * number, 1_000 + number / 64));
        let seen = timed(ahead.chain((0..64).map(|frame| (1 + 2 * frame, WINDOW))));
        assert_eq!((seen.restarts, seen.beyond_window_packets), (0, 64));
    }

    #[test]
    fn a_second_run_of_workers_is_one_restart() {
        let order = 0b0110_1001;
        let second = batches(order, 8).map(|(number, time_ns)| (number, time_ns + 1_000));
        let seen = timed(batches(order, 8).chain(second));
        assert_eq!((seen.restarts, seen.lost_packets, seen.duplicate_packets), (1, 0, 0));
        assert_eq!(seen.received_packets, 1_024);
    }

    #[test]
    fn a_second_run_is_one_whatever_was_lost_of_the_first_numbers() {
        // First number seen of the first run, the one lost of it, reordered in the second.
        for (first, lost) in [(0, 0), (0, 1), (40, 50), (100, 200), (3 * WINDOW, 3 * WINDOW + 9)] {
            let one = (first..first + 1_000).filter(|number| *number != lost);
            let two = (0..500).filter(|number| *number != 300);
            let seen = timed(one.map(|n| (n, 1_000 + n / 64)).chain(two.map(|n| (n, u64::MAX))));
            let lost = 1 + u64::from(lost != first);
            assert_eq!((seen.restarts, seen.lost_packets), (1, lost), "{first}");
            let rest = (seen.reordered_packets, seen.reorder_extent_max, seen.duplicate_packets);
            assert_eq!((rest, seen.beyond_window_packets), ((0, 0, 0), 0), "{first}");
        }
        // A run of one frame, and a copy of a late worker's first frame.
        assert_eq!(timed([(0, 1), (0, 2)]).restarts, 1);
        let copied = timed([(0, 1), (2, 1), (4, 1), (1, 2), (1, 2), (3, 2), (5, 2)]);
        assert_eq!((copied.restarts, copied.duplicate_packets, copied.lost_packets), (0, 1, 0));
    }
}
