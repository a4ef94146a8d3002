//! What the kernel itself takes its time from (its *clock sources*).

use std::fs;
use std::path::Path;

use super::counter_is_constant;
use crate::{Error, Result};

/// The clock sources of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockSources {
    /// The one in use: `tsc`, `kvm-clock`, `hpet`, …
    pub current: String,
    /// All that the kernel would use.
    pub available: Vec<String>,
    /// Whether the CPU promises that its time stamp counter has one rate in all power states.
    pub counter_is_constant: bool,
}

impl ClockSources {
    /// Those of this machine.
    ///
    /// # Errors
    /// What open(2) reports where `/sys` is not there.
    pub fn read() -> Result<Self> {
        Self::from_directory("/sys")
    }

    /// Those of the machine whose `/sys` lies under `root`, with this machine's counter.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn from_directory(root: impl AsRef<Path>) -> Result<Self> {
        let folder = root.as_ref().join("devices/system/clocksource/clocksource0");
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path)
                .map_err(|source| Error::new(format!("reading {}", path.display()), source))
        };
        Ok(Self {
            current: read("current_clocksource")?.trim().to_owned(),
            available: read("available_clocksource")?.split_whitespace().map(Into::into).collect(),
            counter_is_constant: counter_is_constant(),
        })
    }

    /// Whether programs may read the time stamp counter instead of asking the kernel: the kernel
    /// has tested it on all CPUs before it chose it as its own source.
    pub fn counter_is_trusted(&self) -> bool {
        self.counter_is_constant && self.current == "tsc"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_machine_is_read_like_a_live_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("devices/system/clocksource/clocksource0");
        assert!(ClockSources::from_directory(root.path()).is_err());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("current_clocksource"), "kvm-clock\n").unwrap();
        fs::write(folder.join("available_clocksource"), "kvm-clock tsc acpi_pm \n").unwrap();
        let sources = ClockSources::from_directory(root.path()).unwrap();
        assert_eq!(sources.current, "kvm-clock");
        assert_eq!(sources.available, ["kvm-clock", "tsc", "acpi_pm"]);
        assert!(!sources.counter_is_trusted());
        let trusted = ClockSources { current: "tsc".into(), counter_is_constant: true, ..sources };
        assert!(trusted.counter_is_trusted());
    }
}
