//! Which CPU receives: NAPI and receive steering.

use serde_json::json;
use sys::ethtool::Ethtool;
use sys::link::Links;
use sys::namespace::Namespace;
use sys::napi;

use super::Port;
use crate::doctor::{Finding, Severity};

/// What threads bring to senders on a veth; see docs/measurements.md.
const GAIN: &str = "a thread at the receiving end was measured to raise one packet socket sender 1.2 \
                    to 1.9 times, and to slow two senders on two CPUs";

/// Who polls an interface for received frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Napi {
    /// There is none: a veth without GRO and XDP.
    Absent,
    /// In soft interrupts.
    SoftInterrupt,
    /// In kernel threads, so many.
    Threads(usize),
}

impl Napi {
    fn of(namespace: &Namespace, name: &str) -> sys::Result<Self> {
        let instances = napi::instances(namespace, name)?;
        let threads = instances.iter().filter(|instance| instance.thread.is_some()).count();
        Ok(match (instances.len(), threads) {
            (0, _) => Self::Absent,
            (_, 0) => Self::SoftInterrupt,
            (_, threads) => Self::Threads(threads),
        })
    }

    fn in_words(self) -> String {
        match self {
            Self::Absent => "no NAPI: received on the sender's CPU, in its time".into(),
            Self::SoftInterrupt => "NAPI in soft interrupts, not in threads".into(),
            Self::Threads(count) => format!("NAPI in kernel threads ({count})"),
        }
    }
}

/// NAPI here, at the far end of a veth, and receive steering.
pub(super) fn look(port: &Port<'_>) -> Vec<Finding> {
    if port.link.loopback {
        return Vec::new();
    }
    let mut findings = vec![here(port)];
    findings.extend(far_end(port));
    findings.extend(steering(port));
    findings
}

fn here(port: &Port<'_>) -> Finding {
    let why = format!(
        "on a veth the sender's CPU also does the receiver's work, unless a thread does it: {GAIN}. \
         linerate leaves ports as they are; only the demo switches its own"
    );
    let other = "the CPU that is interrupted receives; a thread can be moved to another";
    let name = &port.link.name;
    let why = if port.is_veth() { why.as_str() } else { other };
    match Napi::of(port.namespace, name) {
        Ok(napi) if port.is_veth() => on_veth(port, "napi", name, napi, why),
        Ok(napi) => port.finding("napi", napi.in_words(), why).facts(facts(name, napi)),
        Err(error) => port.finding("napi", format!("unknown: {error}"), why).noted(),
    }
}

fn facts(name: &str, napi: Napi) -> serde_json::Value {
    json!({
        "interface": name,
        "napi": napi != Napi::Absent,
        "threaded": matches!(napi, Napi::Threads(_)),
    })
}

/// For either end of a veth: with a second CPU, a thread is what helps. One without NAPI is no fault:
/// NAPI takes GRO, which spoils recordings of TCP, so that it is for the user to choose.
fn on_veth(port: &Port<'_>, check: &'static str, name: &str, napi: Napi, why: &str) -> Finding {
    let finding = port.finding(check, napi.in_words(), why).facts(facts(name, napi));
    let thread = format!("echo 1 | sudo tee /sys/class/net/{name}/threaded");
    match napi {
        Napi::Threads(_) => finding,
        _ if port.cpus < 2 => finding.noted(),
        Napi::SoftInterrupt => finding
            .is(Severity::Warning, "let a kernel thread receive, which another CPU can run")
            .command(thread),
        // It has GRO and no NAPI all the same: while it is down. What to do stands under `link`.
        Napi::Absent if has_gro(port, name) => finding.noted(),
        Napi::Absent => finding
            .is(
                Severity::Note,
                "if no TCP is recorded there: give it NAPI by GRO, which leaves UDP alone, and a \
                 thread",
            )
            .command(format!("sudo ethtool -K {name} gro on && {thread}")),
    }
}

fn has_gro(port: &Port<'_>, name: &str) -> bool {
    Ethtool::open(port.namespace, name)
        .and_then(|ethtool| ethtool.offloads())
        .is_ok_and(|offloads| offloads.gro)
}

/// Who receives what is sent from here, as far as it can be seen.
fn far_end(port: &Port<'_>) -> Option<Finding> {
    let index = port.link.peer_index.filter(|_| port.is_veth())?;
    let why = format!("it receives what is sent from here: {GAIN}");
    if port.link.peer_namespace.is_some() {
        let seen = format!("interface number {index} in another network namespace");
        let remedy = "run the doctor in that namespace too, for its name and its NAPI";
        return Some(
            port.finding("far end", seen, &why)
                .facts(json!({ "index": index, "visible": false }))
                .is(Severity::Note, remedy)
                .command("ip -all netns exec linerate doctor"),
        );
    }
    let peer = Links::of(port.namespace).ok()?.at(index).ok()?;
    let napi = Napi::of(port.namespace, &peer.name).ok()?;
    let mut finding = on_veth(port, "far end", &peer.name, napi, &why);
    finding.seen = format!("{}: {}", peer.name, finding.seen);
    Some(finding)
}

fn steering(port: &Port<'_>) -> Option<Finding> {
    let why = "it hands received frames to other CPUs by their flow, which costs an interrupt each \
               and keeps order only within a flow";
    let queues = match napi::receive_steering(port.namespace, &port.link.name) {
        Ok(queues) => queues,
        Err(error) => {
            let seen = format!("unknown: {error}");
            return Some(port.finding("receive steering", seen, why).noted());
        }
    };
    let facts = json!({ "cpus": queues });
    if queues.iter().all(Vec::is_empty) {
        return Some(port.finding("receive steering", "off (RPS)", why).facts(facts));
    }
    let seen = format!("RPS to CPUs, by queue: {queues:?}");
    let command =
        format!("echo 0 | sudo tee /sys/class/net/{}/queues/rx-*/rps_cpus", port.link.name);
    Some(
        port.finding("receive steering", seen, why)
            .facts(facts)
            .is(Severity::Note, "switch it off to receive on one CPU a queue")
            .command(command),
    )
}
