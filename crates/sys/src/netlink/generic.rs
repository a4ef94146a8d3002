//! Generic netlink: families of messages that the kernel registers by name
//! (linux/genetlink.h; Documentation/userspace-api/netlink/intro.rst).

use std::io;

use super::{NetlinkSocket, Protocol, attribute};
use crate::{Error, Result};

/// `GENL_ID_CTRL`, the family that knows all others, and its constants of linux/genetlink.h.
const CONTROLLER: u16 = 0x10;
const CONTROLLER_GET_FAMILY: u8 = 3;
const CONTROLLER_FAMILY_ID: u16 = 1;
const CONTROLLER_FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`: command, version, two reserved bytes.
const HEADER_BYTES: usize = 4;

/// A connection to one generic netlink family.
#[derive(Debug)]
pub struct Family {
    socket: NetlinkSocket,
    id: u16,
}

impl Family {
    /// Looks the family up by name, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`] when this kernel has no such family.
    pub fn open(name: &str) -> Result<Self> {
        let mut socket = NetlinkSocket::open(Protocol::Generic)?;
        let action = format!("looking up the generic netlink family {name}");
        let mut attributes = Attributes::default();
        attributes.push(CONTROLLER_FAMILY_NAME, &[name.as_bytes(), b"\0"].concat());
        let answers = socket.request(
            &action,
            CONTROLLER,
            0,
            &payload(CONTROLLER_GET_FAMILY, 2, &attributes),
        )?;
        let id = answers
            .iter()
            .find_map(|answer| {
                let value = attribute(answer.payload.get(HEADER_BYTES..)?, CONTROLLER_FAMILY_ID)?;
                value.try_into().ok().map(u16::from_ne_bytes)
            })
            .ok_or_else(|| Error::new(&action, io::Error::from_raw_os_error(libc::ENOENT)))?;
        Ok(Self { socket, id })
    }

    /// Sends one command and returns the attribute bytes of every answer.
    ///
    /// # Errors
    /// The kernel's refusal; `EOPNOTSUPP` when the family lacks that command.
    pub fn command(
        &mut self,
        action: &str,
        command: u8,
        flags: u16,
        attributes: &Attributes,
    ) -> Result<Vec<Vec<u8>>> {
        let payload = payload(command, 1, attributes);
        let answers = self.socket.request(action, self.id, flags, &payload)?;
        Ok(answers
            .into_iter()
            .filter(|answer| answer.message_type == self.id)
            .map(|answer| answer.payload.get(HEADER_BYTES..).unwrap_or_default().to_vec())
            .collect())
    }
}

fn payload(command: u8, version: u8, attributes: &Attributes) -> Vec<u8> {
    let mut bytes = vec![command, version, 0, 0];
    bytes.extend_from_slice(&attributes.0);
    bytes
}

/// A run of netlink attributes being written: 16-bit length, 16-bit kind, value, padding to 4.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// All of them, as they follow a header.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends one attribute; values beyond what a 16-bit length can say are cut there.
    pub fn push(&mut self, kind: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX) - 4)];
        self.0.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends a 32-bit attribute in host order.
    pub fn push_u32(&mut self, kind: u16, value: u32) {
        self.push(kind, &value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::netlink::attribute_u32;

    #[test]
    fn attributes_are_read_back_as_written() {
        let mut attributes = Attributes::default();
        attributes.push(2, b"netdev\0");
        attributes.push_u32(8, 0xfeed_beef);
        assert_eq!(attributes.0.len(), 12 + 8);
        assert_eq!(attribute(&attributes.0, 2), Some(&b"netdev\0"[..]));
        assert_eq!(attribute_u32(&attributes.0, 8), Some(0xfeed_beef));
        assert_eq!(attribute(&attributes.0, 3), None);
    }

    #[test]
    fn the_controller_finds_itself_and_misses_strangers() {
        assert_eq!(Family::open("nlctrl").unwrap().id, CONTROLLER);
        assert_eq!(Family::open("no-such-family").unwrap_err().kind(), Kind::NotFound);
    }
}
