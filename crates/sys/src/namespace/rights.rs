//! The rights that the calling thread has (capabilities(7)).

use std::fs;

use rustix::thread::{CapabilitySet, capabilities};

/// Which capabilities are effective in the calling thread.
///
/// They count in the thread's own user namespace; `initial` says whether that is the machine's.
/// Rights in another user namespace reach the networks that it owns, but neither hardware nor
/// what the kernel keeps for the machine's administrator, such as loading XDP programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// `CAP_NET_ADMIN`: configure interfaces, attach programs.
    pub net_admin: bool,
    /// `CAP_NET_RAW`: packet sockets and AF_XDP sockets.
    pub net_raw: bool,
    /// `CAP_SYS_ADMIN`: make and enter namespaces, mount.
    pub sys_admin: bool,
    /// `CAP_IPC_LOCK`: lock memory beyond `RLIMIT_MEMLOCK`.
    pub ipc_lock: bool,
    /// `CAP_BPF`: load programs and make maps; `CAP_SYS_ADMIN` includes it.
    pub bpf: bool,
    /// Whether the thread is in the user namespace that the machine booted with.
    pub initial: bool,
}

impl Rights {
    /// Asks the kernel (capget(2)); if it does not say, no right is assumed.
    pub fn probe() -> Self {
        let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        Self {
            net_admin: effective.contains(CapabilitySet::NET_ADMIN),
            net_raw: effective.contains(CapabilitySet::NET_RAW),
            sys_admin: effective.contains(CapabilitySet::SYS_ADMIN),
            ipc_lock: effective.contains(CapabilitySet::IPC_LOCK),
            bpf: effective.contains(CapabilitySet::BPF),
            initial: fs::read_to_string("/proc/thread-self/uid_map")
                .is_ok_and(|map| maps_every_user(&map)),
        }
    }

    /// Whether namespaces and veth pairs can be made as things are.
    pub fn can_make_networks(&self) -> bool {
        self.net_admin && self.sys_admin
    }
}

/// The initial user namespace maps all 2^32 - 1 users onto themselves (user_namespaces(7)).
fn maps_every_user(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_users_tell_the_initial_namespace() {
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("         0       1000          1\n"));
        assert!(!maps_every_user(""));
    }

    #[test]
    fn root_has_what_its_status_file_says() {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let effective = u64::from_str_radix(line.trim(), 16).unwrap();
        let rights = Rights::probe();
        // Bit numbers of linux/capability.h.
        assert_eq!(rights.net_admin, effective >> 12 & 1 == 1);
        assert_eq!(rights.net_raw, effective >> 13 & 1 == 1);
        assert_eq!(rights.ipc_lock, effective >> 14 & 1 == 1);
        assert_eq!(rights.sys_admin, effective >> 21 & 1 == 1);
        assert_eq!(rights.bpf, effective >> 39 & 1 == 1);
    }
}
