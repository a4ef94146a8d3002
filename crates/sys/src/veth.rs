//! Pairs of virtual Ethernet interfaces (veth(4)): what one end transmits, the other receives.
//!
//! A pair ready for exact measurements: both ends have given addresses, run, and do not change
//! frames. Unless asked for, the offloads are off, since with them the kernel leaves checksums
//! unfinished and hands on segments larger than the MTU; so is GRO, which merges received
//! segments.
//!
//! *NAPI* is the receive routine that a driver is polled by. A veth has it only while GRO is on or
//! an XDP program is attached (veth_open and veth_xdp_set in drivers/net/veth.c); then frames
//! wait in a ring per queue, may be redirected into by XDP, and the routine can be given a thread
//! of its own. Without it, a frame is received on the processor and in the time of its sender.
//!
//! A pair is removed when either end's namespace ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};

use crate::ethtool::{Ethtool, Offloads};
use crate::link::{LinkMonitor, Links, MacAddress, NAME_BYTES_MAX};
use crate::namespace::Namespace;
use crate::napi;
use crate::{Error, Result};

/// How long the kernel may take to report both ends as running; it takes milliseconds.
const RUNNING_WAIT: Duration = Duration::from_secs(5);
/// The most queues of one interface that the kernel accepts (rtnl_create_link in
/// net/core/rtnetlink.c).
pub const QUEUES_MAX: u32 = 4096;

/// How a pair is to be made; both ends alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VethConfig {
    /// Receive queues and transmit queues of each end, 1 to [`QUEUES_MAX`].
    pub queues: u32,
    /// The largest layer 3 packet, 68 to 65535. Native XDP without fragments needs about 3500 or
    /// less.
    pub mtu_bytes: u32,
    /// Receive by NAPI, merging segments of one flow.
    pub gro: bool,
    /// Checksums, scatter-gather and segmentation left to the (virtual) hardware.
    pub offloads: bool,
    /// A kernel thread for each receive queue, so that another processor than the sender's
    /// receives. Needs `gro`, or an XDP program and [`napi::set_threaded`] after it.
    pub threaded_napi: bool,
    /// The addresses of the first and the second end; `None` derives them from the names, in the
    /// range for local use that begins with 02.
    pub macs: Option<[MacAddress; 2]>,
}

impl Default for VethConfig {
    /// One queue, MTU 1500, nothing that changes or merges frames.
    fn default() -> Self {
        Self {
            queues: 1,
            mtu_bytes: 1500,
            gro: false,
            offloads: false,
            threaded_napi: false,
            macs: None,
        }
    }
}

/// One end of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VethEnd {
    /// Its name.
    pub name: String,
    /// Its number in its namespace.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: MacAddress,
}

/// A pair that was made. Dropping this value removes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VethPair {
    /// The end that was named first.
    pub first: VethEnd,
    /// The end that was named second.
    pub second: VethEnd,
}

impl VethPair {
    /// Makes a pair with one end in each namespace (they may be the same) and waits until frames
    /// can pass.
    ///
    /// # Errors
    /// [`crate::Kind::Invalid`] for names and numbers out of range; [`crate::Kind::Busy`] when a
    /// name is taken; [`crate::Kind::Permission`] without `CAP_NET_ADMIN` over both namespaces;
    /// [`crate::Kind::Unsupported`] when the kernel has no veth, or a wished offload cannot be
    /// set. When a later step fails, the pair is removed again.
    pub fn create(
        first: &Namespace,
        first_name: &str,
        second: &Namespace,
        second_name: &str,
        config: &VethConfig,
    ) -> Result<Self> {
        let action = format!("making the veth pair {first_name} and {second_name}");
        check(&action, [first_name, second_name], config)?;
        let [first_mac, second_mac] = config
            .macs
            .unwrap_or_else(|| [0, 1].map(|side| derived_mac(&[first_name, second_name], side)));
        let mut peer = describe(second_name, second_mac, config);
        peer.attributes.push(LinkAttribute::NetNsFd(second.as_fd().as_raw_fd()));
        let mut message = describe(first_name, first_mac, config);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let mut links = Links::of(first)?;
        links.create(&action, &message)?;
        let finish = || -> Result<Self> {
            let ends = [(first, first_name), (second, second_name)];
            for (namespace, name) in ends {
                set_offloads(namespace, name, config)?;
                Links::of(namespace)?.set_up(name, true)?;
            }
            for (namespace, name) in ends {
                await_running(&action, namespace, name)?;
            }
            for (namespace, name) in ends {
                set_receive(namespace, name, config)?;
            }
            Ok(Self { first: end(first, first_name)?, second: end(second, second_name)? })
        };
        finish().inspect_err(|_| {
            // The error that led here says more than one of cleaning up.
            let _ = links.delete(first_name);
        })
    }
}

fn check(action: &str, names: [&str; 2], config: &VethConfig) -> Result<()> {
    let invalid = |remedy: String| {
        Err(Error::new(action, io::Error::from_raw_os_error(libc::EINVAL)).remedy(remedy))
    };
    for name in names {
        let forbidden = |byte: u8| byte == b'/' || byte == b':' || byte <= b' ' || byte == b'%';
        let dots = name == "." || name == "..";
        if name.is_empty() || name.len() > NAME_BYTES_MAX || dots || name.bytes().any(forbidden) {
            return invalid(format!(
                "give each end a name of 1 to {NAME_BYTES_MAX} bytes without space, slash, colon \
                 and percent sign"
            ));
        }
    }
    if !(1..=QUEUES_MAX).contains(&config.queues) {
        return invalid(format!("choose 1 to {QUEUES_MAX} queues"));
    }
    if config.threaded_napi && !config.gro {
        return invalid("threaded NAPI on a veth needs GRO, or an XDP program first".into());
    }
    Ok(())
}

fn describe(name: &str, mac: MacAddress, config: &VethConfig) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::Address(mac.0.to_vec()),
        LinkAttribute::Mtu(config.mtu_bytes),
        LinkAttribute::NumTxQueues(config.queues),
        LinkAttribute::NumRxQueues(config.queues),
    ];
    message
}

/// An address of the range for local use, always the same for the same pair of names.
fn derived_mac(names: &[&str; 2], side: u8) -> MacAddress {
    // FNV-1a, 64 bits.
    let letters = names.iter().flat_map(|name| name.bytes().chain([0])).chain([side]);
    let hash = letters.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let [_, _, _, a, b, c, d, e] = hash.to_be_bytes();
    MacAddress([0x02, a, b, c, d, e])
}

fn set_offloads(namespace: &Namespace, name: &str, config: &VethConfig) -> Result<()> {
    let ethtool = Ethtool::open(namespace, name)?;
    ethtool.set_offloads(&if config.offloads {
        Offloads { lro: false, gro: false, ..Offloads::ALL }
    } else {
        Offloads::NONE
    })
}

/// GRO and threads come last: a veth has NAPI only once it is up.
fn set_receive(namespace: &Namespace, name: &str, config: &VethConfig) -> Result<()> {
    if config.gro {
        let ethtool = Ethtool::open(namespace, name)?;
        ethtool.set_offloads(&Offloads { gro: true, ..ethtool.offloads()? })?;
    }
    if config.threaded_napi {
        napi::set_threaded(namespace, name, true)?;
    }
    Ok(())
}

fn await_running(action: &str, namespace: &Namespace, name: &str) -> Result<()> {
    let mut monitor = LinkMonitor::open(namespace)?;
    let mut links = Links::of(namespace)?;
    let end = Instant::now() + RUNNING_WAIT;
    loop {
        if links.named(name)?.running {
            return Ok(());
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let source = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            return Err(Error::new(format!("{action}: waiting for {name} to run"), source));
        }
        monitor.wait_event(left)?;
    }
}

fn end(namespace: &Namespace, name: &str) -> Result<VethEnd> {
    let link = Links::of(namespace)?.named(name)?;
    Ok(VethEnd { index: link.index, mac: link.mac.unwrap_or_default(), name: link.name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_addresses_are_local_unicast_and_distinct() {
        let macs: Vec<MacAddress> = [["a", "b"], ["b", "a"], ["ab", ""]]
            .iter()
            .flat_map(|names| [0, 1].map(|side| derived_mac(names, side)))
            .collect();
        for (position, mac) in macs.iter().enumerate() {
            assert_eq!(mac.0[0], 2);
            assert!(!macs[..position].contains(mac), "{mac} twice");
        }
        assert_eq!(macs[0], derived_mac(&["a", "b"], 0));
    }

    #[test]
    fn impossible_pairs_are_refused_before_the_kernel_is_asked() {
        let good = VethConfig::default();
        assert!(check("x", ["g0", "s0"], &good).is_ok());
        for names in [["", "s0"], ["g0", "a-name-of-16-byt"], ["a b", "s0"], ["g0", "a/b"]] {
            assert!(check("x", names, &good).is_err(), "{names:?}");
        }
        for bad in [
            VethConfig { queues: 0, ..good.clone() },
            VethConfig { queues: QUEUES_MAX + 1, ..good.clone() },
            VethConfig { threaded_napi: true, ..good.clone() },
        ] {
            assert!(check("x", ["g0", "s0"], &bad).is_err(), "{bad:?}");
        }
    }
}
