//! IP protocol numbers (IANA) that this crate knows by name.

/// IPv6 hop-by-hop options, RFC 8200 section 4.3.
pub const HOP_BY_HOP: u8 = 0;
/// ICMP, RFC 792.
pub const ICMP: u8 = 1;
/// TCP, RFC 9293.
pub const TCP: u8 = 6;
/// UDP, RFC 768.
pub const UDP: u8 = 17;
/// IPv6 routing header, RFC 8200 section 4.4.
pub const ROUTING: u8 = 43;
/// IPv6 fragment header, RFC 8200 section 4.5.
pub const FRAGMENT: u8 = 44;
/// Authentication header, RFC 4302.
pub const AUTHENTICATION: u8 = 51;
/// ICMP for IPv6, RFC 4443.
pub const ICMPV6: u8 = 58;
/// Nothing follows, RFC 8200 section 4.7.
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 destination options, RFC 8200 section 4.6.
pub const DESTINATION_OPTIONS: u8 = 60;
/// SCTP, RFC 9260.
pub const SCTP: u8 = 132;
/// For experiments, RFC 3692.
pub const EXPERIMENT: u8 = 253;

/// Whether an IPv6 header of this number is an extension header that can be
/// skipped by its own length field. ESP (50) is not: what follows is encrypted.
#[inline(always)]
pub const fn is_extension(number: u8) -> bool {
    matches!(number, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS)
}

/// Length in bytes of the extension header `number` whose length field is `length`.
#[inline(always)]
pub(crate) const fn extension_bytes(number: u8, length: u8) -> usize {
    match number {
        FRAGMENT => 8,
        AUTHENTICATION => (length as usize + 2) * 4,
        _ => (length as usize + 1) * 8,
    }
}
