//! Network interfaces: what they are, and what is done to them, by route netlink.
//!
//! Vocabulary: a *link* is a network interface; *up* is what the administrator asked for,
//! *running* is whether the other end answers (carrier and operational state); the *kind* is the
//! driver of a virtual link, such as `veth`.
//!
//! Everything here speaks about the network namespace in which its [`Links`] was opened.
//! Statistics for live displays have their own [`LinkStatisticsReader`], changes their own
//! [`LinkMonitor`]. Reference: rtnetlink(7), netdevice(7), linux/if_link.h.

mod far_end;
mod monitor;
mod names;
mod statistics;
mod xdp;

pub use monitor::{LinkChange, LinkEvent, LinkMonitor};
pub use statistics::{LinkStatistics, LinkStatisticsReader};

use std::fmt;
use std::net::IpAddr;

use netlink_packet_core::{
    Emitable, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NlasIterator, ParseableParametrized,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    LinkAttribute, LinkFlags, LinkHeader, LinkMessage, LinkMessageBuffer, State,
};

use crate::bpf::XdpAttachment;
use crate::namespace::Namespace;
use crate::netlink::{Answer, NetlinkSocket, Protocol, attribute, text, undecodable};
use crate::{Error, Kind, Result};

const HEADER_BYTES: usize = size_of::<LinkMessageBuffer>();
/// Attribute kinds of linux/if_link.h that are read without decoding the rest.
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// The longest interface name, without its zero (`IFNAMSIZ` of linux/if.h).
pub const NAME_BYTES_MAX: usize = 15;

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The facts about one interface at the moment of asking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The interface's number in its namespace.
    pub index: u32,
    /// The interface's name.
    pub name: String,
    /// The Ethernet address; `None` for interfaces that have none.
    pub mac: Option<MacAddress>,
    /// The largest layer 3 packet, without the Ethernet header.
    pub mtu_bytes: u32,
    /// The largest MTU that the driver accepts now; an XDP program may lower it. 0: no limit.
    pub mtu_bytes_max: u32,
    /// Whether the administrator switched it on.
    pub up: bool,
    /// Whether frames can pass: up, carrier, operational state up or unknown.
    pub running: bool,
    /// Whether its driver says that there is a carrier: a cable, or a peer that is up.
    pub carrier: bool,
    /// Whether somebody made it receive frames that are not addressed to it.
    pub promiscuous: bool,
    /// Whether it is a loopback.
    pub loopback: bool,
    /// Number of transmit queues that the interface was made with.
    pub tx_queues: u32,
    /// Number of receive queues that the interface was made with.
    pub rx_queues: u32,
    /// The kind of a virtual interface (`veth`, `bridge`, `vlan`); `None` for hardware.
    pub kind: Option<String>,
    /// For a veth its peer's number, in the peer's namespace; for stacked interfaces (vlan,
    /// macvlan) the number of the one below.
    pub peer_index: Option<u32>,
    /// Where the interface of `peer_index` is in another namespace: the number under which this one
    /// knows that.
    pub peer_namespace: Option<i32>,
    /// The XDP programs on it.
    pub xdp: Vec<XdpAttachment>,
    /// The counters since the interface was made.
    pub statistics: LinkStatistics,
}

/// Bytes of an Ethernet header; the MTU does not count them.
const ETHERNET_HEADER_BYTES: u32 = 14;
/// Bytes of an 802.1Q tag.
const TAG_BYTES: u32 = 4;

impl Link {
    /// The longest frame that its MTU allows, without FCS.
    pub fn frame_bytes_max(&self) -> u32 {
        self.mtu_bytes.saturating_add(ETHERNET_HEADER_BYTES)
    }

    /// The longest frame that it takes from its peer, if it is an end of a veth: a tag's length comes
    /// on top, with or without one (`__is_skb_forwardable` in net/core/dev.c).
    pub fn frame_bytes_max_from_peer(&self) -> u32 {
        self.frame_bytes_max().saturating_add(TAG_BYTES)
    }

    /// Fails if the interface is not switched on.
    ///
    /// # Errors
    /// [`Kind::Down`], with the command that helps.
    pub fn check_up(&self) -> Result<()> {
        if self.up {
            return Ok(());
        }
        let action = format!("using the interface {}, which is down", self.name);
        let error = Error::new(action, std::io::Error::from_raw_os_error(libc::ENETDOWN));
        Err(error.remedy(format!("run: ip link set {} up", self.name)))
    }

    /// Whether it is an end of a pair of virtual Ethernet interfaces.
    pub fn is_veth(&self) -> bool {
        self.kind.as_deref() == Some("veth")
    }

    /// Looks up an interface of the calling thread's namespace by name.
    ///
    /// # Errors
    /// [`Kind::NotFound`] with the interfaces that there are.
    pub fn by_name(name: &str) -> Result<Self> {
        Links::current()?.named(name)
    }

    /// Lists the interfaces of the calling thread's namespace in the order of their numbers.
    ///
    /// # Errors
    /// What the netlink socket reports.
    pub fn list() -> Result<Vec<Self>> {
        Links::current()?.list()
    }

    /// Reads the facts from a message of type `RTM_NEWLINK` or `RTM_DELLINK`; `None` for those
    /// that speak about a bridge's ports only.
    fn decode(answer: &Answer) -> std::io::Result<Option<Self>> {
        let header = LinkHeader::parse(&answer.payload).map_err(undecodable)?;
        if header.interface_family != AddressFamily::Unspec {
            return Ok(None);
        }
        let attributes = answer.payload.get(HEADER_BYTES..).unwrap_or_default();
        let mut link = Self {
            index: header.index,
            up: header.flags.contains(LinkFlags::Up),
            running: header.flags.contains(LinkFlags::Running | LinkFlags::LowerUp),
            carrier: header.flags.contains(LinkFlags::LowerUp),
            promiscuous: header.flags.contains(LinkFlags::Promisc),
            loopback: header.flags.contains(LinkFlags::Loopback),
            kind: attribute(attributes, IFLA_LINKINFO)
                .and_then(|info| attribute(info, IFLA_INFO_KIND))
                .map(text),
            ..Self::default()
        };
        for found in NlasIterator::new(attributes) {
            let found = found.map_err(undecodable)?;
            // Drivers have private attributes that nobody else can read; they are not needed.
            if found.kind() == IFLA_LINKINFO {
                continue;
            }
            if let Ok(known) = LinkAttribute::parse_with_param(&found, AddressFamily::Unspec) {
                link.take(known);
            }
        }
        Ok(Some(link))
    }

    fn take(&mut self, attribute: LinkAttribute) {
        match attribute {
            LinkAttribute::IfName(name) => self.name = name,
            LinkAttribute::Address(bytes) => {
                self.mac = bytes.try_into().ok().filter(|_| !self.loopback).map(MacAddress);
            }
            LinkAttribute::Mtu(bytes) => self.mtu_bytes = bytes,
            LinkAttribute::MaxMtu(bytes) => self.mtu_bytes_max = bytes,
            // Counts also those whom the flag leaves out, such as packet sockets.
            LinkAttribute::Promiscuity(count) => self.promiscuous |= count > 0,
            LinkAttribute::NumTxQueues(count) => self.tx_queues = count,
            LinkAttribute::NumRxQueues(count) => self.rx_queues = count,
            LinkAttribute::Link(index) => self.peer_index = Some(index).filter(|&i| i != 0),
            LinkAttribute::LinkNetNsId(number) => self.peer_namespace = Some(number),
            LinkAttribute::OperState(state) => {
                self.running &= matches!(state, State::Up | State::Unknown);
            }
            LinkAttribute::Xdp(attributes) => self.xdp = xdp::attachments(&attributes),
            LinkAttribute::Stats64(counters) => self.statistics = counters.into(),
            _ => {}
        }
    }
}

/// The interfaces of one namespace, reached through one netlink socket.
#[derive(Debug)]
pub struct Links {
    socket: NetlinkSocket,
}

impl Links {
    /// The interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// What the netlink socket reports.
    pub fn current() -> Result<Self> {
        Ok(Self { socket: NetlinkSocket::open(Protocol::Route)? })
    }

    /// The interfaces of `namespace`, from any thread.
    ///
    /// # Errors
    /// What [`Namespace::run`] and the netlink socket report.
    pub fn of(namespace: &Namespace) -> Result<Self> {
        namespace.run(Self::current)?
    }

    /// All interfaces in the order of their numbers.
    ///
    /// # Errors
    /// What the netlink socket reports.
    pub fn list(&mut self) -> Result<Vec<Link>> {
        const ACTION: &str = "listing the interfaces";
        let request = bytes_of(&LinkMessage::default());
        let answers = self.socket.request(ACTION, libc::RTM_GETLINK, NLM_F_DUMP, &request)?;
        let mut links = Vec::with_capacity(answers.len());
        for answer in &answers {
            links.extend(Link::decode(answer).map_err(|source| Error::new(ACTION, source))?);
        }
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    /// The interface of that name.
    ///
    /// # Errors
    /// [`Kind::NotFound`]; the remedy names similar interfaces, or all that there are.
    pub fn named(&mut self, name: &str) -> Result<Link> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return Err(self.unknown(name));
        }
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        match self.get(&format!("looking up the interface {name}"), &message) {
            Err(error) if error.errno() == Some(libc::ENODEV) => Err(self.unknown(name)),
            result => result,
        }
    }

    /// The interface of that number.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is none.
    pub fn at(&mut self, index: u32) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.get(&format!("looking up interface number {index}"), &message)
    }

    /// The other end of a veth, whichever namespace it is in; nothing for other interfaces.
    ///
    /// # Errors
    /// [`Kind::Permission`] when it is in a namespace over which the caller has no `CAP_NET_ADMIN`.
    pub fn far_end(&mut self, link: &Link) -> Result<Option<Link>> {
        let Some(index) = link.peer_index.filter(|_| link.is_veth()) else { return Ok(None) };
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.extend(link.peer_namespace.map(LinkAttribute::IfNetnsId));
        self.get(&format!("looking up the far end of {}", link.name), &message).map(Some)
    }

    /// Switches the interface on or off.
    ///
    /// # Errors
    /// [`Kind::NotFound`]; [`Kind::Permission`] without `CAP_NET_ADMIN`; what the driver reports.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<()> {
        let action = format!("switching the interface {name} {}", if up { "on" } else { "off" });
        self.change(name, &action, |message| {
            message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
            message.header.change_mask = LinkFlags::Up;
        })
    }

    /// Makes the interface receive all frames, or only its own again.
    ///
    /// # Errors
    /// As [`Links::set_up`].
    pub fn set_promiscuous(&mut self, name: &str, on: bool) -> Result<()> {
        self.change(name, &format!("making the interface {name} promiscuous"), |message| {
            message.header.flags = if on { LinkFlags::Promisc } else { LinkFlags::empty() };
            message.header.change_mask = LinkFlags::Promisc;
        })
    }

    /// Sets the largest layer 3 packet.
    ///
    /// # Errors
    /// As [`Links::set_up`]; [`Kind::Invalid`] when the driver cannot do that size.
    pub fn set_mtu(&mut self, name: &str, mtu_bytes: u32) -> Result<()> {
        let action = format!("setting the MTU of {name} to {mtu_bytes}");
        self.change(name, &action, |message| {
            message.attributes.push(LinkAttribute::Mtu(mtu_bytes));
        })
    }

    /// Sets the Ethernet address.
    ///
    /// # Errors
    /// As [`Links::set_up`]; [`Kind::Other`] (`EADDRNOTAVAIL`) for a multicast address.
    pub fn set_mac(&mut self, name: &str, mac: MacAddress) -> Result<()> {
        self.change(name, &format!("setting the address of {name} to {mac}"), |message| {
            message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        })
    }

    /// Gives the interface an IP address of a network with `prefix_bits`.
    ///
    /// # Errors
    /// As [`Links::set_up`]; [`Kind::Busy`] when it has that address already; [`Kind::Permission`]
    /// for IPv6 where it is switched off, as in the namespaces made here.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix_bits: u8) -> Result<()> {
        let index = self.named(name)?.index;
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix_bits;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        let action = format!("giving {name} the address {address}/{prefix_bits}");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.socket
            .request(&action, libc::RTM_NEWADDR, flags, &bytes_of(&message))
            .map(drop)
            .map_err(needs_net_admin)
    }

    /// Removes a virtual interface; of a veth both ends go.
    ///
    /// # Errors
    /// As [`Links::set_up`]; [`Kind::Unsupported`] for hardware.
    pub fn delete(&mut self, name: &str) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.named(name)?.index;
        let action = format!("removing the interface {name}");
        self.socket
            .request(&action, libc::RTM_DELLINK, 0, &bytes_of(&message))
            .map(drop)
            .map_err(needs_net_admin)
    }

    /// Makes the interface that `message` describes.
    pub(crate) fn create(&mut self, action: &str, message: &LinkMessage) -> Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.socket
            .request(action, libc::RTM_NEWLINK, flags, &bytes_of(message))
            .map(drop)
            .map_err(needs_net_admin)
    }

    fn get(&mut self, action: &str, message: &LinkMessage) -> Result<Link> {
        let answers = self.socket.request(action, libc::RTM_GETLINK, 0, &bytes_of(message))?;
        for answer in &answers {
            let decoded = Link::decode(answer).map_err(|source| Error::new(action, source))?;
            if let Some(link) = decoded {
                return Ok(link);
            }
        }
        Err(Error::new(action, std::io::Error::from_raw_os_error(libc::ENODEV)))
    }

    fn change(
        &mut self,
        name: &str,
        action: &str,
        describe: impl FnOnce(&mut LinkMessage),
    ) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.named(name)?.index;
        describe(&mut message);
        self.socket
            .request(action, libc::RTM_NEWLINK, 0, &bytes_of(&message))
            .map(drop)
            .map_err(needs_net_admin)
    }

    fn unknown(&mut self, name: &str) -> Error {
        let known = self.list().unwrap_or_default();
        names::unknown(name, known.iter().map(|link| link.name.as_str()))
    }
}

fn needs_net_admin(error: Error) -> Error {
    match error.kind() {
        Kind::Permission => {
            error.remedy("run as root or give the program CAP_NET_ADMIN over this network")
        }
        _ => error,
    }
}

fn bytes_of(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}
