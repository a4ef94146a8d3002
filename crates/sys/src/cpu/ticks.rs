//! Where the time of all CPUs went, as the kernel counts it (proc(5), `/proc/stat`).

use std::fs;
use std::io;

use crate::{Error, Result};

const PATH: &str = "/proc/stat";

/// Time of all CPUs together since the machine was started, in ticks of `USER_HZ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// All of it.
    pub all: u64,
    /// Time in which a CPU had work and the hypervisor ran something else on it (*steal*).
    pub stolen: u64,
}

impl Ticks {
    /// As it is now.
    ///
    /// # Errors
    /// What open(2) reports where `/proc` is not there.
    pub fn read() -> Result<Self> {
        let action = || format!("reading {PATH}");
        let text = fs::read_to_string(PATH).map_err(|source| Error::new(action(), source))?;
        Self::parse(&text)
            .ok_or_else(|| Error::new(action(), io::Error::from(io::ErrorKind::InvalidData)))
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; what follows is
    /// part of the first two already.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let stolen = *fields.get(7)?;
        Some(Self { all: fields.iter().sum(), stolen })
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            all: self.all.saturating_sub(earlier.all),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    /// The stolen part of all time, 0 to 1.
    pub fn stolen_share(&self) -> f64 {
        if self.all == 0 { 0.0 } else { self.stolen as f64 / self.all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_all_cpus() {
        let text = "cpu  10 20 30 900 5 6 7 22 99 98\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let ticks = Ticks::parse(text).unwrap();
        assert_eq!(ticks, Ticks { all: 1000, stolen: 22 });
        assert_eq!(ticks.stolen_share(), 0.022);
        assert_eq!(ticks.since(&ticks).stolen_share(), 0.0);
        assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
        assert!(Ticks::read().unwrap().all > 0);
    }
}
