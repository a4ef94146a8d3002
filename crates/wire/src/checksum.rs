//! The internet checksum: whole, incremental and verified.
//!
//! Vocabulary: the *sum* is the one's complement sum of 16-bit big-endian words
//! (RFC 1071); the *checksum* is its complement, as it stands in headers; a
//! *pseudo header* is the part of the IP header that a transport checksum
//! covers too.
//!
//! Limits: SCTP's CRC32c is not computed; it verifies as `Absent`.

use crate::bytes::chunk;
use crate::ip_protocol;
use crate::parse::{Fragment, Headers, Marks, Network, Transport};

/// A running one's complement sum of big-endian 16-bit words.
///
/// It has room for 2^47 words, more than any packet. Every piece but the last
/// must be of even length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds the words of `data`; an odd last byte counts as followed by a zero.
    #[inline]
    pub fn add_bytes(self, data: &[u8]) -> Self {
        Self(self.0 + u64::from(native_sum(data).to_be()))
    }

    /// Adds one word.
    #[inline]
    pub const fn add_u16(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// Adds the two words of `value`.
    #[inline]
    pub const fn add_u32(self, value: u32) -> Self {
        Self(self.0 + (value >> 16) as u64 + (value & 0xffff) as u64)
    }

    /// The sum in 16 bits, with all carries added back.
    #[inline]
    pub const fn folded(self) -> u16 {
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// The checksum: the complement of the folded sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Sum in native byte order, folded; the order of bytes in each word does not
/// matter to the sum except that the result has it too (RFC 1071 section 2 B).
#[inline]
fn native_sum(data: &[u8]) -> u16 {
    // Four 32-bit lanes widened to 64 bits: the form that vectorises.
    let mut lanes = [0u64; 4];
    let (blocks, mut rest) = data.as_chunks::<16>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let mut sum: u64 = lanes.iter().map(|lane| (lane & 0xffff_ffff) + (lane >> 32)).sum();
    // Headers are short: what is left of a block takes four steps, not a loop.
    if let Some((bytes, tail)) = rest.split_first_chunk::<8>() {
        let word = u64::from_ne_bytes(*bytes);
        sum += (word & 0xffff_ffff) + (word >> 32);
        rest = tail;
    }
    if let Some((bytes, tail)) = rest.split_first_chunk::<4>() {
        sum += u64::from(u32::from_ne_bytes(*bytes));
        rest = tail;
    }
    sum += match *rest {
        [first, second, last] => {
            u64::from(u16::from_ne_bytes([first, second]))
                + u64::from(u16::from_ne_bytes([last, 0]))
        }
        [first, second] => u64::from(u16::from_ne_bytes([first, second])),
        [last] => u64::from(u16::from_ne_bytes([last, 0])),
        _ => 0,
    };
    Sum(sum).folded()
}

/// The internet checksum of `data` (RFC 1071): 0 for data that contain their
/// own correct checksum.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    Sum::new().add_bytes(data).checksum()
}

/// The checksum after one covered word changed (RFC 1624 equation 3).
#[inline]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(!checksum as u64 + !old as u64 + new as u64).checksum()
}

/// The checksum after two covered, word-aligned words changed.
#[inline]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    Sum(!checksum as u64).add_u32(!old).add_u32(new).checksum()
}

/// Sum of the IPv4 pseudo header (RFC 768, RFC 9293 section 3.1).
///
/// `length_bytes` is that of the transport header with its payload.
#[inline]
pub fn pseudo_header_v4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    length_bytes: u16,
) -> Sum {
    Sum::new()
        .add_u32(u32::from_be_bytes(source))
        .add_u32(u32::from_be_bytes(destination))
        .add_u16(u16::from(protocol))
        .add_u16(length_bytes)
}

/// Sum of the IPv6 pseudo header (RFC 8200 section 8.1).
///
/// `protocol` is that of the transport header, not of an extension header.
#[inline]
pub fn pseudo_header_v6(
    source: [u8; 16],
    destination: [u8; 16],
    protocol: u8,
    length_bytes: u32,
) -> Sum {
    Sum::new()
        .add_bytes(&source)
        .add_bytes(&destination)
        .add_u16(u16::from(protocol))
        .add_u32(length_bytes)
}

/// What checking a checksum found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumState {
    /// It matches.
    Valid,
    /// It does not match.
    Invalid,
    /// There is none, or none that can be checked: the packet is not IP, its
    /// protocol has no checksum or one that is not computed here (SCTP), UDP over
    /// IPv4 has 0 (RFC 768), bytes are missing (a fragment, a truncated frame),
    /// lengths contradict each other, or a routing header hides the destination.
    Absent,
}

/// Checks the IPv4 header checksum and that of TCP, UDP, ICMP or ICMPv6.
///
/// `Invalid` if one of them is invalid, otherwise what is known of the
/// transport checksum. `data` is the slice that `headers` was made from.
pub fn verify(data: &[u8], headers: &Headers) -> ChecksumState {
    if verify_ipv4_header(data, headers) == ChecksumState::Invalid {
        return ChecksumState::Invalid;
    }
    verify_transport(data, headers)
}

/// Checks the IPv4 header checksum; `Absent` if the packet is not IPv4.
pub fn verify_ipv4_header(data: &[u8], headers: &Headers) -> ChecksumState {
    if headers.network != Network::Ipv4 {
        return ChecksumState::Absent;
    }
    let ip = headers.network_bytes(data);
    let header_bytes = ip.first().map_or(0, |byte| usize::from(byte & 0x0f) * 4);
    match ip.get(..header_bytes) {
        Some(header) if header_bytes >= 20 => state(checksum(header) == 0),
        _ => ChecksumState::Absent,
    }
}

/// Checks the checksum of TCP, UDP, ICMP or ICMPv6 alone.
pub fn verify_transport(data: &[u8], headers: &Headers) -> ChecksumState {
    let incomplete = Marks::TRUNCATED.union(Marks::MALFORMED).union(Marks::TOO_DEEP);
    if headers.marks.intersects(incomplete.union(Marks::ROUTED))
        || headers.fragment != Fragment::None
    {
        return ChecksumState::Absent;
    }
    match headers.transport {
        Transport::None => ChecksumState::Absent,
        Transport::Sctp => ChecksumState::Absent,
        Transport::Udp => verify_udp(data, headers),
        Transport::Icmp => state(checksum(headers.transport_bytes(data)) == 0),
        Transport::Tcp => {
            verify_with_pseudo_header(data, headers, headers.network_end, ip_protocol::TCP)
        }
        Transport::Icmpv6 => {
            verify_with_pseudo_header(data, headers, headers.network_end, ip_protocol::ICMPV6)
        }
    }
}

/// UDP: the length is its own, and 0 means none over IPv4 (RFC 768) and a
/// datagram to be discarded over IPv6 (RFC 8200 section 8.1).
fn verify_udp(data: &[u8], headers: &Headers) -> ChecksumState {
    let field = chunk::<2>(data, usize::from(headers.l4_offset) + 6);
    match (field, headers.network) {
        (None, _) => ChecksumState::Absent,
        (Some([0, 0]), Network::Ipv4) => ChecksumState::Absent,
        (Some([0, 0]), _) => ChecksumState::Invalid,
        _ => verify_with_pseudo_header(data, headers, headers.payload_end, ip_protocol::UDP),
    }
}

fn verify_with_pseudo_header(
    data: &[u8],
    headers: &Headers,
    end: u32,
    protocol: u8,
) -> ChecksumState {
    let l3 = usize::from(headers.l3_offset);
    let Some(bytes) = data.get(usize::from(headers.l4_offset)..end as usize) else {
        return ChecksumState::Absent;
    };
    let pseudo = match headers.network {
        Network::Ipv4 => chunk::<8>(data, l3 + 12).map(|addresses| {
            let sum = Sum::new().add_bytes(addresses).add_u16(u16::from(protocol));
            sum.add_u32(bytes.len() as u32)
        }),
        Network::Ipv6 => chunk::<32>(data, l3 + 8).map(|addresses| {
            let sum = Sum::new().add_bytes(addresses).add_u16(u16::from(protocol));
            sum.add_u32(bytes.len() as u32)
        }),
        Network::None | Network::Arp => None,
    };
    match pseudo {
        Some(pseudo) => state(pseudo.add_bytes(bytes).checksum() == 0),
        None => ChecksumState::Absent,
    }
}

fn state(valid: bool) -> ChecksumState {
    if valid { ChecksumState::Valid } else { ChecksumState::Invalid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 as it reads: word by word, carries folded as they come.
    fn naive(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for word in data.chunks(2) {
            sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |&byte| u32::from(byte));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn known_values() {
        // The example of RFC 1071 section 3.
        assert_eq!(!checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(checksum(&[]), 0xffff);
        assert_eq!(checksum(&[0xff; 9000]), 0);
        // The example of RFC 1624 section 4, where RFC 1141 errs.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn wide_sums_keep_all_carries() {
        let sum = Sum(u64::MAX);
        assert_eq!(sum.folded(), 0xffff);
        assert_eq!(Sum(0xffff_ffff_0000_0001).folded(), 1);
        assert_eq!(Sum(0xffff_0001).folded(), 1);
    }

    proptest! {
        #[test]
        fn whole_equals_naive(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(checksum(&data), naive(&data));
        }

        #[test]
        fn pieces_equal_whole(data in proptest::collection::vec(any::<u8>(), 0..600), cut: usize) {
            let cut = (cut % (data.len() + 1)) & !1;
            let (head, tail) = data.split_at(cut);
            let sum = Sum::new().add_bytes(head).add_bytes(tail);
            prop_assert_eq!(sum.checksum(), naive(&data));
        }

        #[test]
        fn incremental_equals_whole(
            mut data in proptest::collection::vec(any::<u8>(), 20..200), at: usize, value: u32,
        ) {
            // The words 0 and 1 stay, so that the data are never all zero, for
            // which 0 and 0xffff are both right.
            data[0] = 1;
            let before = checksum(&data);
            let at = (4 + at % (data.len() - 8)) & !1;
            let old = u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
            data[at..at + 4].copy_from_slice(&value.to_be_bytes());
            prop_assert_eq!(update_u32(before, old, value), checksum(&data));
            let one = update_u16(before, (old >> 16) as u16, (value >> 16) as u16);
            let two = update_u16(one, old as u16, value as u16);
            prop_assert_eq!(two, checksum(&data));
        }
    }
}
