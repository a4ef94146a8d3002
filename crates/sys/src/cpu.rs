//! CPUs: which there are, how they relate, which this process may use, and what time it spends.
//!
//! [`Topology`] is read from the kernel's `/sys` or from a recorded copy of it, so that plans for
//! another machine can be made and tested anywhere. *Siblings* are hardware threads of one core;
//! a *node* is a NUMA node. Limit: a recorded copy has no affinity mask; all its CPUs count as
//! allowed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::{Error, Result};

/// One hardware thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: usize,
    /// Number of its core within the package.
    pub core: usize,
    /// Number of its package (socket).
    pub package: usize,
    /// Number of its NUMA node; 0 where there are none.
    pub node: usize,
    /// The other hardware threads of its core.
    pub siblings: Vec<usize>,
    /// Whether this process may run on it.
    pub allowed: bool,
    /// Whether the kernel keeps ordinary tasks away from it (isolcpus).
    pub isolated: bool,
}

/// All CPUs that are online, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

impl Topology {
    /// This machine, as this process sees it.
    pub fn read() -> Result<Self> {
        let set = sched_getaffinity(None)
            .map_err(|source| Error::new("reading the CPU affinity of this thread", source))?;
        Self::from_directory("/sys", |cpu| cpu < CpuSet::MAX_CPU && set.is_set(cpu))
    }

    /// The machine whose `/sys` lies under `root`; `allowed` says which CPUs may be used.
    pub fn from_directory(root: impl AsRef<Path>, allowed: impl Fn(usize) -> bool) -> Result<Self> {
        let directory = root.as_ref().join("devices/system/cpu");
        let online = read_list(&directory.join("online"))?;
        let isolated: BTreeSet<usize> =
            read_list(&directory.join("isolated")).unwrap_or_default().into_iter().collect();
        let cpus = online.into_iter().map(|number| {
            let folder = directory.join(format!("cpu{number}"));
            let topology = folder.join("topology");
            let mut siblings =
                read_list(&topology.join("thread_siblings_list")).unwrap_or_default();
            siblings.retain(|sibling| *sibling != number);
            Cpu {
                number,
                core: read_number(&topology.join("core_id")).unwrap_or(number),
                package: read_number(&topology.join("physical_package_id")).unwrap_or(0),
                node: node_of(&folder).unwrap_or(0),
                siblings,
                allowed: allowed(number),
                isolated: isolated.contains(&number),
            }
        });
        Ok(Self { cpus: cpus.collect() })
    }

    /// All CPUs that are online.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Numbers of the CPUs that this process may use, ascending.
    pub fn allowed_cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.cpus.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.number)
    }
}

/// Keeps the calling thread on one CPU.
pub fn pin_thread(cpu: usize) -> Result<()> {
    let action = || format!("keeping a thread on CPU {cpu}");
    if cpu >= CpuSet::MAX_CPU {
        return Err(Error::new(action(), io::Error::from_raw_os_error(libc::EINVAL)));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|source| {
        Error::new(action(), source)
            .remedy("choose a CPU that is online and that this process may use")
    })
}

/// CPU time that the calling thread has used, in ns (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time that all threads of this process have used, in ns (CLOCK_PROCESS_CPUTIME_ID).
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// The number of this process.
pub fn process_id() -> i32 {
    Pid::as_raw(Some(getpid()))
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let ns = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(ns).unwrap_or(0)
}

fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A list such as `0-3,8` (Documentation/admin-guide/cputopology.rst).
fn read_list(path: &PathBuf) -> Result<Vec<usize>> {
    let action = || format!("reading {}", path.display());
    let text = fs::read_to_string(path).map_err(|source| Error::new(action(), source))?;
    parse_list(text.trim()).ok_or_else(|| {
        Error::new(action(), io::Error::new(io::ErrorKind::InvalidData, format!("found «{text}»")))
    })
}

fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// A CPU's folder has a link `nodeN` to its NUMA node.
fn node_of(folder: &Path) -> Option<usize> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok())
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list(""), Some(Vec::new()));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("a"), None);
    }

    #[test]
    fn a_recorded_machine_is_read_like_a_live_one() {
        let root = tempfile::tempdir().unwrap();
        let cpus = root.path().join("devices/system/cpu");
        // Two nodes, two cores each, two threads a core: n and n + 4 are siblings.
        for number in 0..8usize {
            let folder = cpus.join(format!("cpu{number}"));
            fs::create_dir_all(folder.join("topology")).unwrap();
            fs::create_dir(folder.join(format!("node{}", number % 2))).unwrap();
            let core = number % 4;
            let write = |name: &str, text: String| {
                fs::write(folder.join("topology").join(name), text).unwrap();
            };
            write("core_id", format!("{}\n", core / 2));
            write("physical_package_id", format!("{}\n", number % 2));
            write("thread_siblings_list", format!("{},{}\n", core, core + 4));
        }
        fs::write(cpus.join("online"), "0-7\n").unwrap();
        fs::write(cpus.join("isolated"), "6-7\n").unwrap();
        let topology = Topology::from_directory(root.path(), |cpu| cpu != 0).unwrap();
        assert_eq!(topology.cpus().len(), 8);
        let cpu = &topology.cpus()[6];
        assert_eq!((cpu.core, cpu.package, cpu.node), (1, 0, 0));
        assert_eq!(cpu.siblings, [2]);
        assert!(cpu.isolated && cpu.allowed);
        assert_eq!(topology.allowed_cpus().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn this_machine_has_the_cpus_that_proc_lists() {
        let listed = fs::read_to_string("/proc/cpuinfo")
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let topology = Topology::read().unwrap();
        assert_eq!(topology.cpus().len(), listed);
        let allowed: Vec<_> = topology.allowed_cpus().collect();
        assert!(!allowed.is_empty());
        let last = allowed[allowed.len() - 1];
        std::thread::spawn(move || {
            pin_thread(last).unwrap();
            let topology = Topology::read().unwrap();
            assert_eq!(topology.allowed_cpus().collect::<Vec<_>>(), [last]);
        })
        .join()
        .unwrap();
        assert!(pin_thread(1 << 20).is_err());
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = thread_cpu_ns();
        let mut value = 1u64;
        while thread_cpu_ns() == before {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        assert!(thread_cpu_ns() > before && process_cpu_ns() > 0 && process_id() > 0);
    }
}
