//! Memory for rings and chunks.

use serde_json::json;
use store::recorder::POOL_BYTES;
use sys::memory::{HugePages, lock_limit_bytes};
use sys::namespace::Rights;

use super::{Area, Finding, Severity};
use crate::units::scaled;

/// Huge pages and the limit of locked memory.
pub fn look() -> Vec<Finding> {
    vec![huge_pages(&HugePages::read()), locked(lock_limit_bytes(), Rights::probe().ipc_lock)]
}

fn huge_pages(pages: &HugePages) -> Finding {
    let mode = pages.transparent.as_deref().unwrap_or("not there");
    let seen = format!(
        "{} of 2 MiB reserved, {} free; transparent ones: {mode}",
        pages.reserved, pages.free
    );
    let why = "the disk is written from them in larger pieces: on one disk 4 MiB writes reached \
               2.5 GB/s from huge pages and 0.5 GB/s from ordinary ones";
    let finding = Finding::new(Area::Memory, "huge pages", seen, why).facts(json!({
        "reserved": pages.reserved,
        "free": pages.free,
        "transparent": pages.transparent,
    }));
    if pages.has_transparent() || pages.free_bytes() >= POOL_BYTES {
        return finding;
    }
    finding
        .is(Severity::Warning, "allow transparent huge pages to those who ask")
        .command("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
}

fn locked(limit_bytes: Option<u64>, ipc_lock: bool) -> Finding {
    let seen = match limit_bytes {
        _ if ipc_lock => "no limit, by CAP_IPC_LOCK".to_owned(),
        None => "no limit".to_owned(),
        Some(bytes) => format!("at most {}B", scaled(bytes as f64)),
    };
    let why = "io_uring locks the recorder's pool once instead of at each write";
    let finding = Finding::new(Area::Memory, "locked memory", seen, why)
        .facts(json!({ "limit_bytes": limit_bytes, "ipc_lock": ipc_lock }));
    if ipc_lock || limit_bytes.is_none_or(|bytes| bytes >= POOL_BYTES) {
        return finding;
    }
    finding
        .is(Severity::Note, "raise the limit of this shell; its hard limit is root's to raise")
        .command("ulimit -l 262144")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_of_either_kind_will_do() {
        let none = HugePages { transparent: Some("never".into()), ..HugePages::default() };
        assert_eq!(huge_pages(&none).severity, Severity::Warning);
        let reserved = HugePages { reserved: 128, free: 128, ..none.clone() };
        assert_eq!(huge_pages(&reserved).severity, Severity::Ok);
        let transparent = HugePages { transparent: Some("madvise".into()), ..none };
        assert_eq!(huge_pages(&transparent).severity, Severity::Ok);
    }

    #[test]
    fn a_right_goes_beyond_the_limit() {
        assert_eq!(locked(Some(8 << 20), false).severity, Severity::Note);
        assert_eq!(locked(Some(8 << 20), true).severity, Severity::Ok);
        assert_eq!(locked(None, false).severity, Severity::Ok);
    }
}
