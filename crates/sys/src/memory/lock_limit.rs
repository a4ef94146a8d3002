//! How much memory this process may keep from being paged out (`RLIMIT_MEMLOCK`, getrlimit(2)).

use rustix::process::{Resource, getrlimit};

/// The soft limit in bytes; `None` where there is none. `CAP_IPC_LOCK` goes beyond it.
pub fn lock_limit_bytes() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_proc() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max locked memory")).unwrap();
        let soft = line.split_whitespace().nth(3).unwrap();
        assert_eq!(lock_limit_bytes(), soft.parse().ok());
    }
}
