//! The caches of the CPUs: how large, and which CPUs share them.
//!
//! Read from `cpu*/cache/index*` (Documentation/ABI/testing/sysfs-devices-system-cpu). Virtual
//! machines often hide them; then there are none.

use std::fs;
use std::path::Path;

use super::{read_list, read_number};

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 is closest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// The CPUs that share it, ascending.
    pub cpus: Vec<usize>,
}

/// The caches of `cpus` in the directory of all CPUs, each once. What cannot be read is left out.
pub(super) fn read(directory: &Path, cpus: impl Iterator<Item = usize>) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for number in cpus {
        let folder = directory.join(format!("cpu{number}/cache"));
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for cache in entries.flatten().filter_map(|entry| read_one(&entry.path())) {
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.cpus.first().copied(), cache.kind));
    caches
}

fn read_one(folder: &Path) -> Option<Cache> {
    let kind = match fs::read_to_string(folder.join("type")).ok()?.trim() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    Some(Cache {
        level: u8::try_from(read_number(&folder.join("level"))?).ok()?,
        kind,
        bytes: parse_size(fs::read_to_string(folder.join("size")).ok()?.trim())?,
        cpus: read_list(&folder.join("shared_cpu_list")).ok()?,
    })
}

/// The kernel writes KiB (`512K`).
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('K') {
        Some(digits) => (digits, 10),
        None => text.strip_suffix('M').map_or((text, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("512K"), Some(512 << 10));
        assert_eq!(parse_size("16M"), Some(16 << 20));
        assert_eq!(parse_size("64"), Some(64));
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size("18446744073709551615K"), None);
    }

    #[test]
    fn folders_without_sense_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cpu0/cache/index0");
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("level", "2\n");
        write("type", "Mystery\n");
        write("size", "1024K\n");
        write("shared_cpu_list", "0-1\n");
        assert_eq!(read(root.path(), 0..2), []);
        write("type", "Unified\n");
        let expected =
            Cache { level: 2, kind: CacheKind::Unified, bytes: 1 << 20, cpus: vec![0, 1] };
        assert_eq!(read(root.path(), 0..2), [expected]);
        write("size", "-1\n");
        assert_eq!(read(root.path(), 0..2), []);
    }
}
