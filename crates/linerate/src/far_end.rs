//! The far end of a veth that is out of sight, where it may be why frames are refused.

use engine::{Account, Entry};
use port::PortSpec;
use sys::link::Links;

use crate::units::grouped;

/// What to look at when an interface with a carrier refused frames up to the end of a run, by the
/// account of `port`. Where the far end can be seen, frames that it refuses are not sent at all.
pub fn advice(port: &PortSpec, account: &Account) -> Option<String> {
    let sum = |entries: &[Entry], names: &[&str]| -> u64 {
        let named = entries.iter().filter(|entry| names.contains(&entry.name.as_str()));
        named.map(|entry| entry.packets).sum()
    };
    let refused = sum(&account.facts, &["device_refused"]);
    if refused == 0 || sum(&account.left, &["ring_full", "late"]) == 0 {
        return None;
    }
    let mut links = Links::current().ok()?;
    let link = links.named(port.interface()?).ok()?;
    let is_out_of_sight = link.is_veth() && link.carrier && links.far_end(&link).is_err();
    is_out_of_sight.then(|| {
        format!(
            "{port} refused frames {} times though it has a carrier: its far end, in another network \
             namespace, may have a smaller MTU than {}, that of this end; give both ends one MTU",
            grouped(refused),
            link.mtu_bytes
        )
    })
}
