//! What a link carries, by the type in its header.

use super::Compiler;
use crate::condition::{Condition, Relation, Size};
use crate::error::Result;
use crate::link::Layer;

// Ethernet types (IEEE 802 Numbers, IANA).
pub(super) const IPV4: u32 = 0x0800;
pub(super) const ARP: u32 = 0x0806;
pub(super) const RARP: u32 = 0x8035;
pub(super) const IPV6: u32 = 0x86dd;
pub(super) const MOP_DUMP: u32 = 0x6001;
pub(super) const MOP_REMOTE: u32 = 0x6002;
pub(super) const DECNET: u32 = 0x6003;
pub(super) const LAT: u32 = 0x6004;
pub(super) const SCA: u32 = 0x6007;
pub(super) const APPLETALK: u32 = 0x809b;
pub(super) const AARP: u32 = 0x80f3;
pub(super) const LOOPBACK: u32 = 0x9000;
pub(super) const VLAN: [u32; 3] = [0x8100, 0x88a8, 0x9100];
pub(super) const MPLS: u32 = 0x8847;
pub(super) const PPPOE_DISCOVERY: u32 = 0x8863;
pub(super) const PPPOE_SESSION: u32 = 0x8864;
pub(super) const ETHERNET_IN_GENEVE: u32 = 0x6558;
const XNS: u32 = 0x0600;
const IPX_TYPE: u32 = 0x8137;

// Service access points of LLC.
pub(super) const SAP_IP: u32 = 0x06;
pub(super) const SAP_STP: u32 = 0x42;
pub(super) const SAP_IPX: u32 = 0xe0;
pub(super) const SAP_NETBEUI: u32 = 0xf0;
pub(super) const SAP_ISO: u32 = 0xfe;

/// MPLS in PPP (RFC 3032, section 4.3).
pub(super) const PPP_MPLS: u32 = 0x0281;

/// Ethernet's type field up to here is a length: a header of LLC follows.
pub(super) const LENGTH_MAX: u32 = 1500;

/// Types of a Linux cooked header that are none of Ethernet's: 802.3 without LLC, and LLC.
const COOKED_802_3: u32 = 1;
const COOKED_LLC: u32 = 4;

impl Compiler<'_> {
    /// Whether the link carries what Ethernet's type, or below 1501 LLC's service, `number` says.
    pub(super) fn link_type(&mut self, number: u32) -> Result<Condition> {
        if self.headers.labels > 0 {
            return self.behind_labels(number);
        }
        Ok(match self.headers.layer {
            Layer::Ethernet => self.ethernet_type(number),
            Layer::LinuxCooked => self.cooked_type(number),
            Layer::LinuxCooked2 => self.type_field(number),
            Layer::Ppp => self.type_field(ppp_type(number)),
            Layer::Raw => match number {
                IPV4 => self.masked(self.headers.link, Size::Byte, 0xf0, 0x40),
                IPV6 => self.masked(self.headers.link, Size::Byte, 0xf0, 0x60),
                _ => Condition::Never,
            },
        })
    }

    fn type_field(&mut self, number: u32) -> Condition {
        self.equal(self.headers.link_type, Size::Half, number)
    }

    /// MPLS says nothing about what follows the last label: the version of IP does.
    fn behind_labels(&mut self, number: u32) -> Result<Condition> {
        let version = match number {
            IPV4 => 0x40,
            IPV6 => 0x60,
            _ => return self.refuse("behind MPLS labels only IPv4 and IPv6 can be recognised"),
        };
        let network = self.headers.network_at();
        let is_last = self.masked(network.plus(2u32.wrapping_neg()), Size::Byte, 1, 1);
        let has_version = self.masked(network, Size::Byte, 0xf0, version);
        Ok(Condition::And(vec![is_last, has_version]))
    }

    fn ethernet_type(&mut self, number: u32) -> Condition {
        let llc = self.headers.payload;
        match number {
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let has_llc = self.is_length();
                Condition::And(vec![has_llc, self.equal(llc, Size::Half, number << 8 | number)])
            }
            SAP_IPX => {
                let parts = [
                    self.type_field(IPX_TYPE),
                    self.is_length(),
                    self.snap(0, IPX_TYPE),
                    self.equal(llc, Size::Byte, SAP_IPX),
                    self.equal(llc, Size::Half, 0xffff),
                ];
                let [ethernet_ii, has_llc, snap, sap, raw] = parts;
                let framings = Condition::Or(vec![snap, sap, raw]);
                Condition::Or(vec![ethernet_ii, Condition::And(vec![has_llc, framings])])
            }
            APPLETALK | AARP => {
                let organisation = if number == APPLETALK { 0x08_00_07 } else { 0 };
                let ethernet_ii = self.type_field(number);
                let has_llc = self.is_length();
                let snap = self.snap(organisation, number);
                Condition::Or(vec![ethernet_ii, Condition::And(vec![has_llc, snap])])
            }
            0..=LENGTH_MAX => {
                let has_llc = self.is_length();
                let service = self.equal(self.headers.link_type.plus(2), Size::Byte, number);
                Condition::And(vec![has_llc, service])
            }
            _ => self.type_field(number),
        }
    }

    fn cooked_type(&mut self, number: u32) -> Condition {
        let llc = self.headers.payload;
        match number {
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let has_llc = self.type_field(COOKED_LLC);
                Condition::And(vec![has_llc, self.equal(llc, Size::Half, number << 8 | number)])
            }
            SAP_IPX => {
                let parts = [
                    self.type_field(IPX_TYPE),
                    self.type_field(COOKED_802_3),
                    self.type_field(COOKED_LLC),
                    self.equal(llc, Size::Byte, SAP_IPX),
                    self.snap(0, IPX_TYPE),
                ];
                let [ethernet_ii, raw, has_llc, sap, snap] = parts;
                let framed = Condition::And(vec![has_llc, Condition::Or(vec![sap, snap])]);
                Condition::Or(vec![ethernet_ii, raw, framed])
            }
            APPLETALK | AARP => {
                let organisation = if number == APPLETALK { 0x08_00_07 } else { 0 };
                let ethernet_ii = self.type_field(number);
                let has_llc = self.type_field(COOKED_LLC);
                let snap = self.snap(organisation, number);
                Condition::Or(vec![ethernet_ii, Condition::And(vec![has_llc, snap])])
            }
            0..=LENGTH_MAX => {
                let has_llc = self.type_field(COOKED_LLC);
                let service = self.headers.link.plus(self.headers.payload.offset);
                Condition::And(vec![has_llc, self.equal(service, Size::Byte, number)])
            }
            _ => self.type_field(number),
        }
    }

    /// Whether Ethernet's type field is a length.
    pub(super) fn is_length(&mut self) -> Condition {
        !self.compare(self.headers.link_type, Size::Half, Relation::Greater, LENGTH_MAX)
    }

    /// Whether LLC is followed by SNAP with these numbers.
    fn snap(&mut self, organisation: u32, number: u32) -> Condition {
        let [_, o0, o1, o2] = organisation.to_be_bytes();
        let [_, _, n0, n1] = number.to_be_bytes();
        self.bytes(self.headers.payload, &[0xaa, 0xaa, 3, o0, o1, o2, n0, n1])
    }
}

/// PPP's protocol number (IANA) of what Ethernet or LLC call `number`.
fn ppp_type(number: u32) -> u32 {
    match number {
        IPV4 => 0x0021,
        IPV6 => 0x0057,
        DECNET => 0x0027,
        APPLETALK => 0x0029,
        XNS => 0x0025,
        SAP_ISO => 0x0023,
        SAP_STP => 0x0031,
        SAP_IPX => 0x002b,
        other => other,
    }
}
