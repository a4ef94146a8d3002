//! What changes or refuses frames between the wire and a recording.

use serde_json::json;
use sys::link::Links;

use super::Port;
use crate::doctor::{Finding, Severity};

/// Merging and cutting; nothing where the driver cannot be asked.
pub(super) fn look(port: &Port<'_>) -> Vec<Finding> {
    let Some(offloads) = port.ethtool.as_ref().and_then(|ethtool| ethtool.offloads().ok()) else {
        return Vec::new();
    };
    let on = |switches: &[(&'static str, bool)]| -> Vec<&'static str> {
        switches.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect()
    };
    let merging = on(&[("gro", offloads.gro), ("lro", offloads.lro)]);
    let cutting = on(&[("tso", offloads.tso), ("gso", offloads.gso)]);
    let facts = json!({
        "gro": offloads.gro, "lro": offloads.lro, "tso": offloads.tso, "gso": offloads.gso,
        "tx_checksum": offloads.tx_checksum,
    });
    vec![
        receive_merging(port, &merging).facts(facts.clone()),
        send_cutting(port, &cutting).facts(facts),
    ]
}

/// Whether the far end of a veth takes what this end sends; nothing where it is out of sight.
pub(super) fn far_end_mtu(port: &Port<'_>) -> Option<Finding> {
    let link = &port.link;
    let far = Links::of(port.namespace).ok()?.far_end(link).ok()??;
    let longest = far.frame_bytes_max_from_peer();
    let why = "a veth drops frames that are longer than the MTU of the end that they go to; this end \
               tells of it by tx_dropped alone";
    let seen = format!("{}: MTU {}, so frames of up to {longest} bytes", far.name, far.mtu_bytes);
    let finding = port.finding("far end mtu", seen, why).facts(json!({
        "interface": far.name,
        "mtu_bytes": far.mtu_bytes,
        "frame_bytes_max": longest,
    }));
    if longest >= link.frame_bytes_max() {
        return Some(finding);
    }
    let remedy = format!("give both ends one MTU; that of this end is {}", link.mtu_bytes);
    let command = format!("ip link set {} mtu {}", far.name, link.mtu_bytes);
    let finding = finding.is(Severity::Warning, remedy);
    Some(match link.peer_namespace {
        None => finding.command(format!("sudo {command}")),
        Some(_) => finding.command(format!("sudo ip netns exec NAMESPACE {command}")),
    })
}

fn receive_merging(port: &Port<'_>, on: &[&str]) -> Finding {
    let why = "segments of one TCP flow are merged before they are recorded: frames longer than \
               the MTU, fewer than there were on the wire, and device counters that cannot be held \
               against ours";
    let finding = |seen: String| port.finding("receive merging", seen, why);
    if on.is_empty() {
        return finding("off: frames arrive as they were sent".into());
    }
    let mut remedy = "switch it off while you record TCP".to_owned();
    if port.is_veth() {
        remedy.push_str(
            "; a veth then has no NAPI and no thread. For UDP, as linerate sends, leave it on",
        );
    }
    finding(format!("{} on", on.join(" and "))).is(Severity::Warning, remedy).command(format!(
        "sudo ethtool -K {} {}",
        port.link.name,
        switched_off(on)
    ))
}

fn send_cutting(port: &Port<'_>, on: &[&str]) -> Finding {
    let why = "what this host's own TCP sends reaches the far end of a veth before it is cut: longer \
               than the MTU, with unfinished checksums. This end records none of it. Frames of \
               generate and replay are whole and stay so";
    let finding = |seen: String| port.finding("send cutting", seen, why);
    if on.is_empty() {
        return finding("off".into());
    }
    finding(format!("{} on", on.join(" and ")))
        .is(Severity::Note, "switch it off to record at the far end what a wire would carry")
        .command(format!("sudo ethtool -K {} {}", port.link.name, switched_off(on)))
}

fn switched_off(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name} off")).collect::<Vec<_>>().join(" ")
}
