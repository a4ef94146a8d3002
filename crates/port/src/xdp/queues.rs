//! Which queues an interface has, and which of them a port is to use.

use sys::ethtool::Ethtool;
use sys::link::Link;

use crate::error::{PortError, Result};
use crate::spec::Queues;

/// What frames come in by, or go out by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

/// The queues that `wanted` says of an interface; all of them if it says nothing.
pub(super) fn choose(link: &Link, wanted: Option<Queues>, way: Way) -> Result<Queues> {
    let count = count(link, way);
    let all = Queues::new(0, count - 1);
    let name = &link.name;
    let (what, few) = match way {
        Way::In => ("receive", "rx"),
        Way::Out => ("transmit", "tx"),
    };
    match (wanted, all) {
        (Some(wanted), _) if wanted.last() < count => Ok(wanted),
        (None, Some(all)) => Ok(all),
        (wanted, _) => Err(PortError::Unsupported {
            port: wanted.map_or_else(|| format!("xdp:{name}"), |it| format!("xdp:{name}@{it}")),
            reason: format!(
                "{name} has {count} {what} {}; use xdp:{name}, or give it more with: ethtool -L {name} {few} N \
                 (or combined N)",
                if count == 1 { "queue, number 0" } else { "queues, from number 0" },
            ),
        }),
    }
}

/// Queues in use, at least 1. A driver that does not tell uses all that it was made with.
fn count(link: &Link, way: Way) -> u32 {
    let made = match way {
        Way::In => link.rx_queues,
        Way::Out => link.tx_queues,
    };
    let channels = Ethtool::current(&link.name).and_then(|device| device.channels());
    let used = channels.map_or(made, |channels| {
        channels.combined + if way == Way::In { channels.rx } else { channels.tx }
    });
    if used == 0 { made.max(1) } else { used }
}
