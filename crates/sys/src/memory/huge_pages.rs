//! Which huge pages the machine has to give (Documentation/admin-guide/mm/hugetlbpage.rst and
//! transhuge.rst).

use std::fs;
use std::path::Path;

use super::HUGE_PAGE_BYTES;

/// Huge pages of 2 MiB.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HugePages {
    /// Reserved by the administrator (`vm.nr_hugepages`).
    pub reserved: u64,
    /// Of these, not in use.
    pub free: u64,
    /// When the kernel makes huge pages of ordinary memory by itself: `always`, `madvise`, `never`;
    /// `None` where it cannot.
    pub transparent: Option<String>,
}

impl HugePages {
    /// Those of this machine.
    pub fn read() -> Self {
        Self::from_directory("/sys")
    }

    /// Those of the machine whose `/sys` lies under `root`.
    pub fn from_directory(root: impl AsRef<Path>) -> Self {
        let memory = root.as_ref().join("kernel/mm");
        let pool = memory.join(format!("hugepages/hugepages-{}kB", HUGE_PAGE_BYTES >> 10));
        let number = |name: &str| {
            let text = fs::read_to_string(pool.join(name)).ok()?;
            text.trim().parse().ok()
        };
        let chosen = fs::read_to_string(memory.join("transparent_hugepage/enabled")).ok();
        Self {
            reserved: number("nr_hugepages").unwrap_or(0),
            free: number("free_hugepages").unwrap_or(0),
            transparent: chosen.as_deref().and_then(bracketed).map(str::to_owned),
        }
    }

    /// Bytes of the free reserved pages.
    pub fn free_bytes(&self) -> u64 {
        self.free.saturating_mul(HUGE_PAGE_BYTES as u64)
    }

    /// Whether memory that asks for it can get transparent huge pages.
    pub fn has_transparent(&self) -> bool {
        self.transparent.as_deref().is_some_and(|mode| mode != "never")
    }
}

/// The chosen one of a list such as `always [madvise] never`.
fn bracketed(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_machine_is_read_like_a_live_one() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(HugePages::from_directory(root.path()), HugePages::default());
        let memory = root.path().join("kernel/mm");
        for (path, text) in [
            ("hugepages/hugepages-2048kB/nr_hugepages", "64\n"),
            ("hugepages/hugepages-2048kB/free_hugepages", "60\n"),
            ("transparent_hugepage/enabled", "always [madvise] never\n"),
        ] {
            let path = memory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let pages = HugePages::from_directory(root.path());
        assert_eq!((pages.reserved, pages.free, pages.free_bytes()), (64, 60, 120 << 20));
        assert!(pages.has_transparent());
        let never = HugePages { transparent: Some("never".into()), ..pages };
        assert!(!never.has_transparent());
    }
}
