//! CPUs: which there are, how they relate, which this process may use, and what time it spends.
//!
//! [`Topology`] is read from the kernel's `/sys` or from a recorded copy of it, so that plans for
//! another machine can be made and tested anywhere. *Siblings* are hardware threads of one core;
//! a *node* is a NUMA node. Limits: a recorded copy has no affinity mask, the caller says which of
//! its CPUs count as allowed; affinity reaches 1024 CPUs.

mod cache;
mod ticks;
mod usage;

pub use cache::{Cache, CacheKind};
pub use ticks::Ticks;
pub use usage::{Usage, process_cpu_ns, process_usage, thread_cpu_ns, thread_usage};

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, set_name};

use crate::{Error, Result};

/// What the kernel keeps of a thread's name (prctl(2), `PR_SET_NAME`).
const THREAD_NAME_BYTES_MAX: usize = 15;

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
    /// Who chooses its frequency (`performance`, `schedutil`, …); `None` where the machine does
    /// not say, as most virtual ones.
    pub governor: Option<String>,
}

/// All CPUs that are online, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
    caches: Vec<Cache>,
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
                governor: fs::read_to_string(folder.join("cpufreq/scaling_governor"))
                    .ok()
                    .map(|name| name.trim().to_owned()),
            }
        });
        let cpus: Vec<Cpu> = cpus.collect();
        let caches = cache::read(&directory, cpus.iter().map(|cpu| cpu.number));
        Ok(Self { cpus, caches })
    }

    /// All CPUs that are online.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The CPU of this number, if it is online.
    pub fn cpu(&self, number: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    /// All caches, each once, by level and then by the first CPU that uses it. Empty where the
    /// kernel does not say.
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// The numbers of the NUMA nodes that have CPUs, ascending.
    pub fn nodes(&self) -> BTreeSet<usize> {
        self.cpus.iter().map(|cpu| cpu.node).collect()
    }

    /// How many packages (sockets) there are.
    pub fn packages(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.package).collect::<BTreeSet<_>>().len()
    }

    /// How many cores there are: siblings count once.
    pub fn cores(&self) -> usize {
        let leads = |cpu: &&Cpu| cpu.siblings.iter().all(|&sibling| sibling > cpu.number);
        self.cpus.iter().filter(leads).count()
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

/// The CPU that runs the calling thread now; it may be another one right after, unless the thread is
/// pinned (getcpu(2)).
pub fn current_cpu() -> usize {
    sched_getcpu()
}

/// Names the calling thread in ps(1), top(1) and perf(1). The kernel keeps 15 bytes: longer names
/// are cut.
///
/// # Errors
/// [`Kind::Invalid`](crate::Kind::Invalid) for a name with a zero byte; what prctl(2) reports.
pub fn name_thread(name: &str) -> Result<()> {
    let action = || format!("naming a thread {name:?}");
    let mut end = name.len().min(THREAD_NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = name.as_bytes().get(..end).unwrap_or_default();
    let text = CString::new(bytes)
        .map_err(|_| Error::new(action(), io::Error::from_raw_os_error(libc::EINVAL)))?;
    set_name(&text).map_err(|source| Error::new(action(), source))
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
            // A first level of each core, a last level of each node.
            let shared = |index: usize| match index {
                0 => ("1", "Data", "32K", format!("{},{}\n", core, core + 4)),
                _ if number % 2 == 0 => ("3", "Unified", "16M", "0,2,4,6\n".to_owned()),
                _ => ("3", "Unified", "16M", "1,3,5,7\n".to_owned()),
            };
            for index in 0..2 {
                let cache = folder.join(format!("cache/index{index}"));
                fs::create_dir_all(&cache).unwrap();
                let (level, kind, size, cpus) = shared(index);
                for (name, text) in
                    [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", &cpus)]
                {
                    fs::write(cache.join(name), text).unwrap();
                }
            }
        }
        fs::create_dir(cpus.join("cpu5/cpufreq")).unwrap();
        fs::write(cpus.join("cpu5/cpufreq/scaling_governor"), "powersave\n").unwrap();
        fs::write(cpus.join("online"), "0-7\n").unwrap();
        fs::write(cpus.join("isolated"), "6-7\n").unwrap();
        let topology = Topology::from_directory(root.path(), |cpu| cpu != 0).unwrap();
        assert_eq!(topology.cpus().len(), 8);
        let cpu = &topology.cpus()[6];
        assert_eq!((cpu.core, cpu.package, cpu.node), (1, 0, 0));
        assert_eq!(cpu.siblings, [2]);
        assert!(cpu.isolated && cpu.allowed);
        assert_eq!(cpu.governor, None);
        assert_eq!(topology.cpus()[5].governor.as_deref(), Some("powersave"));
        assert_eq!(topology.allowed_cpus().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((topology.cores(), topology.packages()), (4, 2));
        assert_eq!(topology.nodes().into_iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(topology.cpu(7).unwrap().siblings, [3]);
        assert_eq!(topology.cpu(8), None);
        let caches: Vec<_> =
            topology.caches().iter().map(|it| (it.level, it.bytes, it.cpus.clone())).collect();
        let last = |cpus: [usize; 4]| (3, 16 << 20, cpus.to_vec());
        let mut expected: Vec<_> = (0..4).map(|core| (1, 32 << 10, vec![core, core + 4])).collect();
        expected.extend([last([0, 2, 4, 6]), last([1, 3, 5, 7])]);
        assert_eq!(caches, expected);
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
            assert_eq!(current_cpu(), last);
        })
        .join()
        .unwrap();
        assert!(pin_thread(1 << 20).is_err());
    }

    #[test]
    fn thread_names_are_cut_between_characters() {
        std::thread::spawn(|| {
            name_thread("worker-000000é-long").unwrap();
            let comm = fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(comm, "worker-000000é\n");
            assert!(name_thread("a\0b").is_err());
        })
        .join()
        .unwrap();
    }
}
