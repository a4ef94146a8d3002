//! Which worker runs on which CPU, and why.
//!
//! Workers are put on the CPUs that the process may use, the highest first: the lowest one serves
//! most interrupts and housekeeping on an ordinary machine. Two workers share a CPU only when there
//! are more workers than CPUs. A CPU that the user names is taken as it is.

use std::fmt;

use sys::cpu::Topology;

use crate::error::{EngineError, Result};

/// One worker's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Number of the worker.
    pub worker: usize,
    /// The CPU; `None` leaves the choice to the kernel.
    pub cpu: Option<usize>,
    /// Why this one.
    pub reason: String,
}

/// The places of all workers of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order of workers.
    pub assignments: Vec<Assignment>,
}

impl Plan {
    /// Places `workers` workers of one job; `asked` is the CPU that the user wants.
    pub fn for_workers(workers: usize, asked: Option<usize>) -> Result<Self> {
        let topology = Topology::read()?;
        Self::on(&topology, workers, asked)
    }

    /// The same on a given machine.
    pub fn on(topology: &Topology, workers: usize, asked: Option<usize>) -> Result<Self> {
        let allowed: Vec<usize> = topology.allowed_cpus().collect();
        if let Some(cpu) = asked {
            if !allowed.contains(&cpu) {
                return Err(EngineError::Job {
                    what: format!("CPU {cpu} is not among those that this process may use"),
                    remedy: format!("choose one of {allowed:?}"),
                });
            }
            let reason = "the command line says so".to_owned();
            let assignment = |worker| Assignment { worker, cpu: Some(cpu), reason: reason.clone() };
            return Ok(Self { assignments: (0..workers).map(assignment).collect() });
        }
        let assignment = |worker| match allowed.len() {
            0 | 1 => Assignment { worker, cpu: None, reason: "there is only one CPU".into() },
            count => {
                let cpu = allowed[count - 1 - worker % count];
                let reason = if workers > count {
                    format!("{workers} workers share {count} CPUs in turn")
                } else {
                    "away from the lowest CPU, which serves interrupts".into()
                };
                Assignment { worker, cpu: Some(cpu), reason }
            }
        };
        Ok(Self { assignments: (0..workers).map(assignment).collect() })
    }

    /// The CPU of a worker.
    pub fn cpu(&self, worker: usize) -> Option<usize> {
        self.assignments.get(worker).and_then(|assignment| assignment.cpu)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, assignment) in self.assignments.iter().enumerate() {
            let separator = if line > 0 { "; " } else { "" };
            match assignment.cpu {
                Some(cpu) => write!(f, "{separator}worker {} on CPU {cpu}", assignment.worker)?,
                None => write!(f, "{separator}worker {} on any CPU", assignment.worker)?,
            }
            write!(f, " ({})", assignment.reason)?;
        }
        Ok(())
    }
}
