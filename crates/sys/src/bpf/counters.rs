//! How many values a map that has one for each CPU holds.

use std::sync::OnceLock;

use super::map::{Map, MapKind, MapSpec};
use crate::{Error, Result};

/// More CPUs than any kernel is built for (`CONFIG_NR_CPUS` is at most 8192).
const CPUS_MAX: usize = 16_384;
/// A value that the kernel does not leave behind: it fills a new map with zeros.
const UNTOUCHED: u8 = 0xff;

/// CPUs that this machine may ever have, plugged in or not: a map with values per CPU has as many of
/// each, in the order of their numbers.
///
/// The kernel writes as many values as it has CPUs, whatever room there is. So it is the kernel that is
/// asked, by a map of its own, and not `/sys`, which a container may have made up.
///
/// # Errors
/// As [`Map::create`].
pub fn possible_cpus() -> Result<usize> {
    static COUNT: OnceLock<usize> = OnceLock::new();
    if let Some(count) = COUNT.get() {
        return Ok(*count);
    }
    let map =
        Map::create_with_cpus(&MapSpec::new("cpus", MapKind::PerCpuArray, 4, 8, 1), CPUS_MAX)?;
    let mut values = vec![UNTOUCHED; CPUS_MAX * 8];
    map.get(&0u32.to_ne_bytes(), &mut values)?;
    let count = values.iter().take_while(|byte| **byte != UNTOUCHED).count() / 8;
    if count == 0 {
        let source = std::io::Error::other("a map with values per CPU has none");
        return Err(Error::new("counting the CPUs that this machine may have", source));
    }
    Ok(*COUNT.get_or_init(|| count))
}
