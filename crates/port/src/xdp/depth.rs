//! How many empty buffers the kernel is given in advance.
//!
//! Buffers are used in turn: with many of them each one, and what the kernel notes about it, has left the
//! caches when its turn comes again, and a frame costs twice as much. With few of them a short pause of the
//! reader loses frames. So there are as many as there can be while frames come at a rate that leaves the
//! kernel the time for it, and few where every nanosecond counts: a deep ring would then lose more frames
//! before it than it saves behind it.

/// Frames a second of one queue from which on the ring is shallow.
const FAST_PPS: u64 = 1_800_000;
/// Frames a second below which it is deep again.
const SLOW_PPS: u64 = 1_600_000;
/// Buffers of a shallow ring, which stay in a second-level cache with what belongs to them, but for few.
const SHALLOW: u32 = 4_096;
/// How long a rate is measured.
const WINDOW_NS: u64 = 10_000_000;

/// Follows the rate of a port.
#[derive(Debug, Default)]
pub(super) struct Depth {
    window_ns: u64,
    packets: u64,
    is_shallow: bool,
}

impl Depth {
    /// Whether every nanosecond counts.
    pub(super) fn is_shallow(&self) -> bool {
        self.is_shallow
    }

    /// Takes note of frames that were received from `queues` queues; gives the buffers that each is to have
    /// from now on when that has changed, where there can be `entries`.
    pub(super) fn note(
        &mut self,
        time_ns: u64,
        packets: u64,
        queues: u64,
        entries: u32,
    ) -> Option<u32> {
        self.packets += packets;
        let elapsed_ns = time_ns.wrapping_sub(self.window_ns);
        if elapsed_ns < WINDOW_NS {
            return None;
        }
        // A clock that was set makes one window that is wrong.
        let pps = self.packets.saturating_mul(1_000_000_000) / elapsed_ns / queues.max(1);
        (self.window_ns, self.packets) = (time_ns, 0);
        let was_shallow = self.is_shallow;
        self.is_shallow = if was_shallow { pps >= SLOW_PPS } else { pps > FAST_PPS };
        let depth = if self.is_shallow { entries.min(SHALLOW) } else { entries };
        (was_shallow != self.is_shallow).then_some(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_shallow_while_frames_come_fast() {
        let mut depth = Depth::default();
        let mut now_ns = 1_700_000_000_000_000_000;
        let mut second = |depth: &mut Depth, pps: u64| {
            let changes: Vec<u32> = (0..100)
                .filter_map(|_| {
                    now_ns += WINDOW_NS;
                    depth.note(now_ns, pps / 100, 1, 131_072)
                })
                .collect();
            changes
        };
        assert_eq!(second(&mut depth, 1_500_000), []);
        assert_eq!(second(&mut depth, 9_000_000), [SHALLOW]);
        assert_eq!(second(&mut depth, 1_700_000), [], "it does not go to and fro");
        assert_eq!(second(&mut depth, 100_000), [131_072]);
        assert_eq!(second(&mut depth, 1_700_000), []);
    }

    #[test]
    fn the_rate_is_that_of_one_queue_and_a_window_is_not_cut_short() {
        let mut depth = Depth::default();
        assert_eq!(depth.note(WINDOW_NS, 0, 4, 1_024), None);
        assert_eq!(depth.note(2 * WINDOW_NS, 60_000, 4, 1_024), None);
        assert_eq!(depth.note(3 * WINDOW_NS - 1, 1_000_000, 4, 1_024), None);
        assert_eq!(depth.note(3 * WINDOW_NS, 0, 4, 1_024), Some(1_024));
    }
}
