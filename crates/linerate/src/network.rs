//! Two network namespaces with a veth pair between them, for runs that bring their own network.
//!
//! Everything is held by file descriptors of this process: nothing has a name in the system, and
//! nothing is left behind, not even after SIGKILL.

use anyhow::Context;
use serde_json::{Value, json};
use sys::cpu::Topology;
use sys::namespace::{Namespace, Rights, enter_user_namespace};
use sys::napi;
use sys::veth::{VethConfig, VethPair};

/// Name of the sending end.
pub const SENDER: &str = "lr-tx";
/// Name of the receiving end.
pub const RECEIVER: &str = "lr-rx";

/// A pair of namespaces joined by a veth.
#[derive(Debug)]
pub struct Network {
    /// Where frames come from.
    pub sender: Namespace,
    /// Where they arrive.
    pub receiver: Namespace,
    /// By which rights it was made: `root` or `user namespace`.
    pub rights: &'static str,
    /// Who receives at the receiving end.
    pub receiving: Receiving,
}

/// Who receives the frames of the receiving end: on a veth that is the sender's CPU, unless its NAPI
/// has a kernel thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receiving {
    /// A kernel thread, switched on in this way.
    Thread(napi::Way),
    /// The CPU of the sender, in its time; for this reason.
    Sender(String),
}

impl Receiving {
    /// Whether a kernel thread receives.
    pub fn is_threaded(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// As a half sentence for people.
    pub fn in_words(&self) -> String {
        match self {
            Self::Thread(way) => format!(
                "its NAPI runs in a kernel thread, switched on by {}, so that two CPUs share the work",
                way_in_words(*way)
            ),
            Self::Sender(why) => format!("received on the sender's CPU, since {why}"),
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let (switched_by, reason) = match self {
            Self::Thread(way) => (Some(way_in_words(*way)), None),
            Self::Sender(why) => (None, Some(why)),
        };
        json!({
            "interface": RECEIVER,
            "threaded": self.is_threaded(),
            "switched_by": switched_by,
            "reason": reason,
        })
    }
}

fn way_in_words(way: napi::Way) -> &'static str {
    match way {
        napi::Way::Netlink => "netlink",
        napi::Way::Sysfs => "sysfs",
    }
}

impl Network {
    /// Makes the network. Without the rights for it the process enters a user namespace of its own
    /// first, which only works as long as it has a single thread: call this early.
    pub fn make(threaded_napi: bool) -> anyhow::Result<Self> {
        let rights = if Rights::probe().can_make_networks() {
            "root"
        } else {
            enter_user_namespace().context(
                "making a network takes CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW, or a user \
                 namespace",
            )?;
            "user namespace"
        };
        let sender = Namespace::create()?;
        let receiver = Namespace::create()?;
        let config = VethConfig::default();
        VethPair::create(&sender, SENDER, &receiver, RECEIVER, &config)?;
        let receiving = receiving(&receiver, threaded_napi);
        Ok(Self { sender, receiver, rights, receiving })
    }
}

/// Gives the receiving end's NAPI a thread where that helps: where there is a second CPU to run it.
fn receiving(receiver: &Namespace, wanted: bool) -> Receiving {
    if !wanted {
        return Receiving::Sender("the command line says so".into());
    }
    if Topology::read().is_ok_and(|topology| topology.allowed_cpus().count() < 2) {
        return Receiving::Sender("there is no second CPU that a kernel thread could use".into());
    }
    match thread_napi(receiver) {
        Ok(threaded) => Receiving::Thread(threaded.way),
        Err(error) => Receiving::Sender(format!("switching to threads failed: {error}")),
    }
}

/// A veth has NAPI only with GRO; its packets are UDP, which GRO leaves alone unless a socket asks
/// for it.
fn thread_napi(receiver: &Namespace) -> sys::Result<napi::Threaded> {
    let ethtool = sys::ethtool::Ethtool::open(receiver, RECEIVER)?;
    let offloads = ethtool.offloads()?;
    ethtool.set_offloads(&sys::ethtool::Offloads { gro: true, ..offloads })?;
    napi::set_threaded(receiver, RECEIVER, true)
}
