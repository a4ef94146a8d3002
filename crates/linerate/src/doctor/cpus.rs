//! Where threads run.

use serde_json::json;
use sys::cpu::{Ticks, Topology};

use super::{Area, Finding, Severity};
use crate::units::counted;

/// Part of the time of all CPUs that may be stolen without a word.
const STOLEN_SHARE_MAX: f64 = 0.01;

/// What the topology says.
pub fn look(topology: &Topology) -> Vec<Finding> {
    let mut findings = vec![count(topology), siblings(topology)];
    findings.extend(isolated(topology));
    findings.extend(governors(topology));
    findings
}

fn count(topology: &Topology) -> Finding {
    let allowed: Vec<usize> = topology.allowed_cpus().collect();
    let online = topology.cpus().len();
    let seen = format!(
        "{online} online in {} and {}; {} allowed: {allowed:?}",
        counted(topology.packages() as u64, "package"),
        counted(topology.nodes().len() as u64, "node"),
        allowed.len()
    );
    let why = "a sender and a receiver, or a receiver and the disk, need a CPU each";
    let finding = Finding::new(Area::Cpus, "count", seen, why).facts(json!({
        "online": online,
        "allowed": allowed,
        "cores": topology.cores(),
        "nodes": topology.nodes().len(),
    }));
    match (allowed.len(), online) {
        (0 | 1, 2..) => finding
            .is(Severity::Warning, "allow this process a second CPU")
            .command(format!("taskset -pc 0-{} $$", online - 1)),
        (0 | 1, _) => finding.is(Severity::Warning, "give the machine a second CPU"),
        _ => finding,
    }
}

fn siblings(topology: &Topology) -> Finding {
    let (cpus, cores) = (topology.cpus().len(), topology.cores());
    let why = "two hardware threads of one core share its units: two workers on them do not do \
               twice the work";
    let finding = |seen: String| {
        Finding::new(Area::Cpus, "siblings", seen, why)
            .facts(json!({ "cpus": cpus, "cores": cores }))
    };
    if cpus == cores {
        return finding("each CPU is a core of its own".into());
    }
    finding(format!("{cpus} CPUs are threads of {}", counted(cores as u64, "core")))
        .is(Severity::Note, "put workers on CPUs that are no siblings (--cpu); these are listed in")
        .command("grep . /sys/devices/system/cpu/cpu*/topology/thread_siblings_list")
}

fn isolated(topology: &Topology) -> Option<Finding> {
    let numbers: Vec<usize> =
        topology.cpus().iter().filter(|cpu| cpu.isolated).map(|cpu| cpu.number).collect();
    let first = *numbers.first()?;
    let why = "the kernel puts no ordinary task there: a worker that is put there is alone";
    Some(
        Finding::new(Area::Cpus, "isolated", format!("{numbers:?} (isolcpus)"), why)
            .facts(json!({ "isolated": numbers }))
            .is(Severity::Note, format!("use them for workers, for example with --cpu {first}")),
    )
}

/// Nothing where the machine does not say, as most virtual ones.
fn governors(topology: &Topology) -> Option<Finding> {
    let known: Vec<&str> =
        topology.cpus().iter().filter_map(|cpu| cpu.governor.as_deref()).collect();
    let first = *known.first()?;
    let slow = known.iter().find(|name| **name != "performance");
    let seen = match slow {
        None => "performance on all CPUs".to_owned(),
        Some(name) => format!("{name} on {} of {} CPUs", count_of(&known, name), known.len()),
    };
    let why = "a CPU that saves power is slow when a burst comes";
    let finding = Finding::new(Area::Cpus, "frequency governor", seen, why)
        .facts(json!({ "governor": slow.copied().unwrap_or(first) }));
    Some(match slow {
        None => finding,
        Some(_) => finding.is(Severity::Warning, "keep the frequency high").command(
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
    })
}

fn count_of(names: &[&str], name: &str) -> usize {
    names.iter().filter(|known| **known == name).count()
}

/// What the hypervisor took: now, and since the machine was started.
pub fn stolen(now: &Ticks, ever: &Ticks) -> Finding {
    let (now, ever) = (now.stolen_share(), ever.stolen_share());
    let seen = format!("{:.1} % just now, {:.1} % since boot", now * 100.0, ever * 100.0);
    let why = "while the hypervisor runs something else on a CPU, rings fill up and schedules slip";
    let finding = Finding::new(Area::Cpus, "stolen time", seen, why)
        .facts(json!({ "share_now": now, "share_since_boot": ever }));
    if now.max(ever) <= STOLEN_SHARE_MAX {
        return finding;
    }
    finding.is(Severity::Warning, "give this virtual machine CPUs of its own, at the hypervisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_warning_from_a_hundredth_on() {
        let of = |stolen| Ticks { all: 1000, stolen };
        assert_eq!(stolen(&of(0), &of(10)).severity, Severity::Ok);
        assert_eq!(stolen(&of(0), &of(11)).severity, Severity::Warning);
        assert_eq!(stolen(&of(500), &of(0)).severity, Severity::Warning);
    }
}
