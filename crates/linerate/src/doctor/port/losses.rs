//! What the interface has lost already, before any run of ours.

use serde_json::json;

use super::Port;
use crate::doctor::{Finding, Severity};
use crate::units::grouped;

/// The drop counters of the interface and of its driver.
pub(super) fn look(port: &Port<'_>) -> Finding {
    let counted = &port.link.statistics;
    let common = [
        ("rx_dropped", counted.rx_dropped),
        ("rx_missed_errors", counted.rx_missed_errors),
        ("rx_over_errors", counted.rx_over_errors),
        ("rx_fifo_errors", counted.rx_fifo_errors),
        ("rx_errors", counted.rx_errors),
        ("tx_dropped", counted.tx_dropped),
        ("tx_errors", counted.tx_errors),
    ];
    let of_driver =
        port.ethtool.as_ref().and_then(|ethtool| ethtool.statistics().ok()).unwrap_or_default();
    let is_loss = |name: &str| name.contains("drop") || name.contains("no_buf");
    let lost: Vec<(String, u64)> = common
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .chain(of_driver.into_iter().filter(|(name, _)| is_loss(name)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let why = "losses from before a run are not of that run; a run charges only what is counted \
               while it lasts. rx_dropped also counts frames that nobody wanted";
    let facts = json!({
        "rx_packets": counted.rx_packets,
        "tx_packets": counted.tx_packets,
        "lost": lost.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
    });
    if lost.is_empty() {
        let received = grouped(counted.rx_packets);
        let seen = format!("none, of {received} received and {} sent", grouped(counted.tx_packets));
        return port.finding("losses so far", seen, why).facts(facts);
    }
    let words: Vec<String> =
        lost.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    port.finding("losses so far", words.join(", "), why)
        .is(Severity::Note, "see whether they still grow")
        .command(format!("ip -s -s link show {}", port.link.name))
        .facts(facts)
}
