//! Numbers and times as senders, and what lies between, make them.

use wire::random::Random;

use crate::frames::one_in;

/// How numbers of a stream go on.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// One after the other, with loss, reordering and duplicates.
    Damaged,
    /// As far apart as the window is long.
    Far,
    /// A sender that begins again and again.
    Restarting,
    /// Low numbers in any order.
    Low,
    /// Low numbers in any order behind a higher one, again and again.
    Beginning,
    /// Workers that share the numbers, in batches of one time.
    Workers,
}

#[derive(Debug)]
pub struct Numbers {
    way: Way,
    next: u64,
    time_ns: u64,
}

impl Numbers {
    pub fn new(random: &mut Random) -> Self {
        let ways =
            [Way::Damaged, Way::Far, Way::Restarting, Way::Low, Way::Beginning, Way::Workers];
        let way = ways[random.below(6) as usize];
        let bound = [1, 70, 1 << 21, 1 << 47][random.below(4) as usize];
        let next = if matches!(way, Way::Beginning) { 0 } else { random.below(bound) };
        Self { way, next, time_ns: 1_000_000 }
    }

    /// The next number, and its time by the stream's own clock from 1,000,000 on.
    pub fn next(&mut self, random: &mut Random) -> (u64, u64) {
        const WINDOW: u64 = 1 << 20;
        self.time_ns += random.below(3);
        let number = match self.way {
            Way::Damaged => self.damaged(random, 80),
            Way::Far => {
                self.next += match random.below(6) {
                    0 => WINDOW - 70 + random.below(140),
                    1 => random.below(3 * WINDOW),
                    2 => 64 * random.below(200),
                    _ => 1 + random.below(3),
                };
                if self.next > WINDOW + 2 && one_in(random, 8) {
                    // At the very edge of the window.
                    return (self.next - WINDOW - 2 + random.below(4), self.time_ns);
                }
                self.damaged(random, WINDOW + 70)
            }
            Way::Restarting => {
                if one_in(random, 30) {
                    let below = [1, 3, 70][random.below(3) as usize];
                    self.next = random.below(below);
                    self.time_ns += 1_000;
                }
                self.damaged(random, 5)
            }
            Way::Low => {
                self.time_ns += random.below(2);
                let below = [2, 8, 66][random.below(3) as usize];
                random.below(below)
            }
            Way::Beginning => {
                self.next += 1;
                self.time_ns += 1;
                let is_high = self.next == 1 || one_in(random, 120);
                return (if is_high { 63 } else { random.below(63) }, self.time_ns);
            }
            Way::Workers => {
                // Four of them take turns of 16 frames in an order of their own.
                let (turn, within) = (self.next / 16, self.next % 16);
                let worker = (turn ^ (turn / 4)) % 4;
                self.next += 1;
                return (turn / 4 * 64 + 4 * within + worker, 1_000_000 + turn);
            }
        };
        // Late frames carry an old time, often.
        let is_late = number + 1 < self.next && !one_in(random, 4);
        let age_ns = if is_late { 1 + random.below(50) } else { 0 };
        (number, self.time_ns - age_ns)
    }

    fn damaged(&mut self, random: &mut Random, depth: u64) -> u64 {
        match random.below(12) {
            0 => self.next += random.below(4),
            1 => self.next += random.below(200),
            2 | 3 => return self.next.saturating_sub(random.below(depth)),
            _ => {}
        }
        self.next += 1;
        self.next - 1
    }
}
