//! The sums of what is the same in all frames of a template, or in all of one length.

use super::{NetworkSpec, TemplateSpec, TransportSpec};
use crate::checksum::Sum;

/// Whether a transport checksum covers the addresses: not that of ICMP over IPv4 (RFC 792).
pub(super) fn has_pseudo_header(spec: &TemplateSpec) -> bool {
    match (&spec.network, &spec.transport) {
        (NetworkSpec::None { .. }, _) | (_, TransportSpec::None { .. }) => false,
        (NetworkSpec::Ipv4(_), TransportSpec::IcmpEcho(_)) => false,
        (_, TransportSpec::Udp(_) | TransportSpec::Tcp(_) | TransportSpec::IcmpEcho(_)) => true,
    }
}

/// The constant frame of the largest size, in which all that changes is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants<'a> {
    pub spec: &'a TemplateSpec,
    pub frame: &'a [u8],
    pub network_offset: usize,
    pub transport_offset: usize,
    pub payload_offset: usize,
}

impl Constants<'_> {
    /// Of the IPv4 header; its length is in there if all frames have the same.
    pub fn network_sum(&self) -> Option<u32> {
        let NetworkSpec::Ipv4(_) = self.spec.network else { return None };
        let header = self.frame.get(self.network_offset..self.transport_offset)?;
        Some(Sum::new().add_bytes(header).folded().into())
    }

    /// Of transport header and pseudo header, without lengths.
    pub fn transport_sum(&self) -> u32 {
        let header = self.frame.get(self.transport_offset..self.payload_offset);
        let header = header.unwrap_or_default();
        let mut sum = Sum::new();
        match (&self.spec.transport, header) {
            // The length after the ports is added with what depends on lengths.
            (TransportSpec::Udp(_), [ports @ .., _, _, _, _]) => sum = sum.add_bytes(ports),
            _ => sum = sum.add_bytes(header),
        }
        if has_pseudo_header(self.spec) {
            let (first, version) = match self.spec.network {
                NetworkSpec::Ipv6(_) => (8, 6),
                NetworkSpec::Ipv4(_) | NetworkSpec::None { .. } => (12, 4),
            };
            let addresses = self.frame.get(self.network_offset + first..self.transport_offset);
            sum = sum.add_bytes(addresses.unwrap_or_default());
            sum = sum.add_u16(self.spec.transport.protocol(version).into());
        }
        sum.folded().into()
    }

    /// By frame length from `frame_bytes_min` to the largest: of the payload, the pseudo
    /// header's length and UDP's. Empty if there is no transport checksum.
    pub fn length_sums(&self, frame_bytes_min: usize) -> Vec<u16> {
        let lengths = match &self.spec.transport {
            TransportSpec::None { .. } => return Vec::new(),
            TransportSpec::Udp(udp) if !udp.checksum => return Vec::new(),
            TransportSpec::Udp(_) => 2,
            TransportSpec::Tcp(_) | TransportSpec::IcmpEcho(_) => {
                u16::from(has_pseudo_header(self.spec))
            }
        };
        let with_lengths = |payload: Sum, end: usize| {
            let length = (end - self.transport_offset) as u16;
            (0..lengths).fold(payload, |sum, _| sum.add_u16(length)).folded()
        };
        let payload = self.frame.get(self.payload_offset..).unwrap_or_default();
        let mut sum = Sum::new();
        let mut sums = vec![with_lengths(sum, self.payload_offset)];
        // An odd last byte is the upper half of a word: all transport headers are even.
        for (at, &byte) in payload.iter().enumerate() {
            let is_upper = at % 2 == 0;
            sum = sum.add_u16(if is_upper { u16::from(byte) << 8 } else { byte.into() });
            sums.push(with_lengths(sum, self.payload_offset + at + 1));
        }
        sums.split_off(frame_bytes_min.saturating_sub(self.payload_offset).min(sums.len()))
    }
}
