//! One interface.

mod frames;
mod losses;
mod receiving;

use serde_json::json;
use sys::ethtool::Ethtool;
use sys::link::{Link, Links};
use sys::namespace::Namespace;

use super::{Area, Finding, Severity};
use crate::carrier::NoCarrier;

/// A port and what its findings depend on.
#[derive(Debug)]
struct Port<'a> {
    namespace: &'a Namespace,
    link: Link,
    /// `None` where the driver cannot be asked.
    ethtool: Option<Ethtool>,
    /// How many CPUs this process may use.
    cpus: usize,
}

/// Everything about the interface `name`; `is_named` says whether the command line asked for it.
///
/// # Errors
/// [`sys::Kind::NotFound`] when it is gone.
pub fn look(
    namespace: &Namespace,
    name: &str,
    cpus: usize,
    is_named: bool,
) -> sys::Result<Vec<Finding>> {
    let link = Links::of(namespace)?.named(name)?;
    let port = Port { namespace, ethtool: Ethtool::open(namespace, name).ok(), link, cpus };
    let mut findings = vec![port.link(), port.driver()];
    findings.extend(port.queues());
    findings.extend(port.rings());
    findings.extend(frames::look(&port));
    findings.extend(frames::far_end_mtu(&port));
    findings.extend(receiving::look(&port));
    findings.push(losses::look(&port));
    Ok(findings.into_iter().map(|finding| finding.about(name).limited(is_named)).collect())
}

impl Port<'_> {
    fn finding(&self, check: &'static str, seen: impl Into<String>, why: &str) -> Finding {
        Finding::new(Area::Port, check, seen, why)
    }

    fn is_veth(&self) -> bool {
        self.link.is_veth()
    }

    fn link(&self) -> Finding {
        let link = &self.link;
        let facts = json!({
            "up": link.up,
            "carrier": link.carrier,
            "running": link.running,
            "mtu_bytes": link.mtu_bytes,
            "frame_bytes_max": link.frame_bytes_max(),
        });
        let why = "frames pass while it is up and the other end answers";
        let up = format!("sudo ip link set {} up", link.name);
        match (link.up, link.carrier, link.running) {
            (false, ..) => {
                self.finding("link", "down", why).is(Severity::Problem, "switch it on").command(up)
            }
            (true, false, _) => self.without_carrier(why),
            (true, true, false) => self
                .finding("link", "up, with carrier, but not running", why)
                .is(Severity::Warning, "see what it waits for")
                .command(format!("ip -details link show {}", link.name)),
            _ => {
                let seen = format!(
                    "up; MTU {}, so frames of up to {} bytes",
                    link.mtu_bytes,
                    link.frame_bytes_max()
                );
                self.finding("link", seen, why)
            }
        }
        .facts(facts)
    }

    /// Nothing is wrong with this end, and no frame moves all the same.
    fn without_carrier(&self, why: &str) -> Finding {
        let missing = Links::of(self.namespace)
            .ok()
            .and_then(|mut links| NoCarrier::of(&self.link, &mut links));
        let Some(NoCarrier { cause, remedy, command }) = missing else {
            return self.finding("link", "up, without carrier", why).noted();
        };
        let finding = self.finding("link", format!("without carrier: {cause}"), why);
        let finding = finding.is(Severity::Problem, remedy);
        match command {
            Some(command) => finding.command(command),
            None => finding,
        }
    }

    fn driver(&self) -> Finding {
        let driver = self.ethtool.as_ref().and_then(|ethtool| ethtool.driver().ok());
        let speed = self.ethtool.as_ref().and_then(|ethtool| ethtool.speed_mbps().ok().flatten());
        let kind = self.link.kind.as_deref();
        let mut seen = match (&driver, kind) {
            (Some(driver), None) => format!("{}, hardware or paravirtual", driver.name),
            (_, Some(kind)) => format!("{kind}, virtual"),
            (None, None) if self.link.loopback => "loopback".into(),
            (None, None) => "unknown".into(),
        };
        match speed {
            // It says so whatever it does.
            Some(_) if self.is_veth() => {}
            Some(mbps) => seen.push_str(&format!(", {mbps} Mbit/s")),
            None => {}
        }
        self.finding("driver", seen, "what can be asked of it, and what bounds its rate").facts(
            json!({
                "driver": driver.map(|driver| driver.name),
                "kind": kind,
                "speed_mbps": speed,
            }),
        )
    }

    fn queues(&self) -> Option<Finding> {
        let (rx, tx) = (self.link.rx_queues, self.link.tx_queues);
        let channels = self.ethtool.as_ref().and_then(|ethtool| ethtool.channels().ok());
        let why = "each queue is served by one CPU at a time";
        let facts = json!({
            "rx_queues": rx,
            "tx_queues": tx,
            "combined": channels.map(|channels| channels.combined),
            "combined_max": channels.map(|channels| channels.combined_max),
        });
        let seen = match channels {
            Some(channels) if channels.combined > 0 => {
                format!("{} of at most {} in use", channels.combined, channels.combined_max)
            }
            _ => format!("{rx} receive, {tx} transmit"),
        };
        let finding = self.finding("queues", seen, why).facts(facts);
        let wanted = channels.map_or(0, |it| it.combined_max.min(self.cpus as u32));
        let used = channels.map_or(0, |it| it.combined);
        if used == 0 || used >= wanted {
            return Some(finding);
        }
        let command = format!("sudo ethtool -L {} combined {wanted}", self.link.name);
        Some(finding.is(Severity::Note, "use one for each CPU").command(command))
    }

    /// Nothing where the driver has none to set.
    fn rings(&self) -> Option<Finding> {
        let rings = self.ethtool.as_ref()?.rings().ok()?;
        let seen = format!(
            "receive {} of at most {}, transmit {} of at most {}",
            rings.rx, rings.rx_max, rings.tx, rings.tx_max
        );
        let why = "a longer receive ring bridges longer pauses of the CPU that empties it";
        let finding = self.finding("rings", seen, why).facts(json!({
            "rx": rings.rx, "rx_max": rings.rx_max, "tx": rings.tx, "tx_max": rings.tx_max,
        }));
        if rings.rx >= rings.rx_max {
            return Some(finding);
        }
        let command = format!("sudo ethtool -G {} rx {}", self.link.name, rings.rx_max);
        Some(finding.is(Severity::Note, "make it longer where frames are lost").command(command))
    }
}
