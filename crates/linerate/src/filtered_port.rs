//! Receiving ports with a filter: opened only if the filter makes sense for them.

use engine::Patience;
use engine::filtered::{Facts, FilteredRx};
use filter::{Filter, Link};
use port::packet::RxOptions;
use port::snap::SnapRx;
use port::xdp::Require;
use port::{PortKind, PortSpec, RxQueue};
use store::record::LinkType;
use sys::link::Link as Interface;

use crate::exit::Usage;
use crate::expression::Expression;

/// Opens a port whose frames match `expression`. The filter sees them whole: they are cut behind it.
pub fn open_rx(
    expression: &Expression<'_>,
    port: &PortSpec,
    options: &RxOptions,
    require: Option<Require>,
    patience: &Patience,
) -> anyhow::Result<Box<dyn RxQueue>> {
    // Of all others the frames are Ethernet, so that what is wrong shows before anything is opened.
    let known = match port.kind {
        PortKind::Pcap => None,
        _ => Some(expression.on(Link::Ethernet)?),
    };
    let facts = facts(port)?;
    let whole = RxOptions { snap_bytes: u32::MAX, ..*options };
    let queue = engine::ports::open_rx(port, &whole, require, patience)?;
    let number = queue.describe().link_type;
    let link = Link::of_number(number).ok_or_else(|| unknown_link(port, LinkType(number)))?;
    let filter = match known {
        Some(filter) if link == Link::Ethernet => filter,
        _ => expression.on(link)?,
    };
    check_facts(&filter, facts, port)?;
    let queue = FilteredRx::new(queue, &filter, facts);
    Ok(match options.snap_bytes {
        u32::MAX => Box::new(queue),
        bytes => Box::new(SnapRx::new(queue, bytes)),
    })
}

/// An interface's queue has what arrives there, and nothing that this host sends.
fn facts(port: &PortSpec) -> Result<Facts, sys::Error> {
    let Some(name) = port.interface() else { return Ok(Facts::default()) };
    let index = Interface::by_name(name)?.index;
    Ok(Facts { outbound: Some(false), interface: Some(index) })
}

/// A test that nothing answers would match no frame, whatever it is.
fn check_facts(filter: &Filter, facts: Facts, port: &PortSpec) -> Result<(), Usage> {
    let missing = if filter.asks_direction() && facts.outbound.is_none() {
        "which way its frames went; leave inbound and outbound out"
    } else if filter.asks_interface() && facts.interface.is_none() {
        "by which interface its frames came; leave ifindex out"
    } else {
        return Ok(());
    };
    Err(Usage(format!("--filter: {port} does not say {missing}, or use linerate filter --read")))
}

fn unknown_link(port: &PortSpec, link_type: LinkType) -> Usage {
    Usage(format!(
        "--filter: the frames of {port} are {link_type}: filters know Ethernet, raw IP and Linux cooked \
         capture (v1 and v2); leave --filter out, or convert the capture"
    ))
}
