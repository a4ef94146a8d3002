//! Two network namespaces with a veth pair between them, for runs that bring their own network.
//!
//! Everything is held by file descriptors of this process: nothing has a name in the system, and
//! nothing is left behind, not even after SIGKILL.

use anyhow::Context;
use sys::namespace::{Namespace, Rights, enter_user_namespace};
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
    /// Whether the receiving end is served by a kernel thread on another CPU than the sender's.
    pub threaded_napi: bool,
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
        let mut network = Self { sender, receiver, rights, threaded_napi: false };
        if threaded_napi {
            network.threaded_napi = network.thread_napi().is_ok();
        }
        Ok(network)
    }

    /// A veth has NAPI only with GRO; its packets are UDP, which GRO leaves alone unless a socket
    /// asks for it.
    fn thread_napi(&self) -> sys::Result<()> {
        let ethtool = sys::ethtool::Ethtool::open(&self.receiver, RECEIVER)?;
        let offloads = ethtool.offloads()?;
        ethtool.set_offloads(&sys::ethtool::Offloads { gro: true, ..offloads })?;
        sys::napi::set_threaded(&self.receiver, RECEIVER, true)?;
        Ok(())
    }
}
