//! Which interfaces can send frames that an XDP program redirects to them.

use crate::netlink::attribute;
use crate::netlink::generic::{Attributes, Family};
use crate::{Error, Kind, Result};

/// Of include/uapi/linux/netdev.h.
const FAMILY: &str = "netdev";
const DEVICE_GET: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_XDP_FEATURES: u16 = 3;
/// `NETDEV_XDP_ACT_NDO_XMIT`: the driver sends redirected frames, as things are now.
const SENDS_REDIRECTED: u64 = 1 << 2;

/// Whether the interface with this number, in the calling thread's namespace, sends frames that a program
/// redirects to it. An end of a veth does as long as its far end has a program or GRO on
/// (veth_set_xdp_features in drivers/net/veth.c). `None` if the kernel does not tell (before Linux 6.3).
///
/// # Errors
/// [`Kind::NotFound`] if there is no such interface.
pub fn takes_redirected(interface_index: u32) -> Result<Option<bool>> {
    let mut family = match Family::open(FAMILY) {
        Ok(family) => family,
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let action = format!("asking what XDP can do on interface number {interface_index}");
    let mut attributes = Attributes::default();
    attributes.push_u32(DEVICE_INDEX, interface_index);
    let answers = family.command(&action, DEVICE_GET, 0, &attributes)?;
    let features = answers.iter().find_map(|answer| {
        attribute(answer, DEVICE_XDP_FEATURES)?.try_into().ok().map(u64::from_ne_bytes)
    });
    match features {
        Some(features) => Ok(Some(features & SENDS_REDIRECTED != 0)),
        None => {
            Err(Error::new(action, std::io::Error::other("the kernel's answer has no features")))
        }
    }
}
