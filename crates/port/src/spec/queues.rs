//! Which queues of an interface: `2`, `0-3`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Queues that follow each other, by their numbers from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Queues {
    first: u32,
    last: u32,
}

impl Queues {
    /// From `first` to `last`, both included; none if `last` comes before `first`.
    pub fn new(first: u32, last: u32) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// Their numbers.
    pub fn numbers(self) -> RangeInclusive<u32> {
        self.first..=self.last
    }

    /// How many.
    pub fn count(self) -> u32 {
        (self.last - self.first).saturating_add(1)
    }

    /// The last one's number.
    pub fn last(self) -> u32 {
        self.last
    }
}

impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for Queues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |word: &str| {
            word.parse::<u32>()
                .map_err(|_| format!("«{text}» names no queues; write one as @2, several as @0-3"))
        };
        let (first, last) = (number(first)?, number(last)?);
        Self::new(first, last)
            .ok_or_else(|| format!("«{text}»: queue {last} is before queue {first}"))
    }
}
