//! The chain of IPv6 extension headers, RFC 8200 section 4.
//!
//! Vocabulary: an extension's *number* is what the header before calls it, its
//! *next header* is the number of what follows.
//!
//! Limits: options inside hop-by-hop and destination headers are not taken apart.

use std::fmt;

use crate::bytes::{get_u8, get_u16, get_u32};
use crate::ip_protocol;

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    number: u8,
    bytes: &'a [u8],
}

/// What the fragment header says, RFC 8200 section 4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentField {
    /// Where in the whole fragmentable part this piece begins, in bytes.
    pub offset_bytes: usize,
    /// Whether more pieces follow behind this one.
    pub more_fragments: bool,
    /// Identification, by which fragments find each other.
    pub id: u32,
}

impl<'a> Extension<'a> {
    /// Number of this header.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Number of the header that follows.
    pub fn next_header(&self) -> u8 {
        get_u8(self.bytes, 0)
    }

    /// The whole header.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The content of a fragment header; `None` for other headers.
    pub fn fragment(&self) -> Option<FragmentField> {
        let field = get_u16(self.bytes, 2..4);
        (self.number == ip_protocol::FRAGMENT).then(|| FragmentField {
            offset_bytes: usize::from(field & 0xfff8),
            more_fragments: field & 1 != 0,
            id: get_u32(self.bytes, 4..8),
        })
    }

    /// How many nodes a routing header still has to visit; `None` for other headers.
    pub fn segments_left(&self) -> Option<u8> {
        (self.number == ip_protocol::ROUTING).then(|| get_u8(self.bytes, 3))
    }
}

impl fmt::Display for Extension<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fragment(), self.segments_left()) {
            (Some(fragment), _) => {
                write!(formatter, "fragment {} at {}", fragment.id, fragment.offset_bytes)
            }
            (_, Some(left)) => write!(formatter, "routing, {left} segments left"),
            _ => write!(formatter, "extension {} length {}", self.number, self.bytes.len()),
        }
    }
}

/// The extension headers of a packet, first to last. It ends before the first
/// header that is no extension, and before one that is not complete.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    number: u8,
    rest: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// The chain that begins at `bytes` with a header of `number`.
    pub fn new(number: u8, bytes: &'a [u8]) -> Self {
        Self { number, rest: bytes }
    }

    /// Number of the header in front of which the chain stands now: behind the
    /// last extension, the protocol.
    pub fn next_header(&self) -> u8 {
        self.number
    }

    /// What is behind the extension headers that were taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        if !ip_protocol::is_extension(self.number) {
            return None;
        }
        let [next_header, length, ..] = *self.rest.first_chunk::<8>()?;
        let (bytes, rest) =
            self.rest.split_at_checked(ip_protocol::extension_bytes(self.number, length))?;
        let extension = Extension { number: self.number, bytes };
        (self.number, self.rest) = (next_header, rest);
        // Behind the header of a later fragment stands a piece from the middle.
        if extension.fragment().is_some_and(|fragment| fragment.offset_bytes > 0) {
            self.number = ip_protocol::NO_NEXT_HEADER;
        }
        Some(extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hop-by-hop, routing with 1 segment left, fragment at 0, authentication.
    const CHAIN: [u8; 36] = [
        43, 0, 1, 4, 0, 0, 0, 0, // hop-by-hop
        44, 0, 4, 1, 0, 0, 0, 0, // routing
        51, 0, 0, 1, 0, 0, 0, 9, // fragment
        17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, // authentication
    ];

    #[test]
    fn the_chain_is_followed_to_the_protocol() {
        let mut chain = Extensions::new(ip_protocol::HOP_BY_HOP, &CHAIN);
        let texts: Vec<String> = chain.by_ref().map(|extension| extension.to_string()).collect();
        let expected = [
            "extension 0 length 8",
            "routing, 1 segments left",
            "fragment 9 at 0",
            "extension 51 length 12",
        ];
        assert_eq!(texts, expected);
        assert_eq!((chain.next_header(), chain.rest().len()), (17, 0));
    }

    #[test]
    fn an_incomplete_header_ends_the_chain() {
        for bytes in 0..CHAIN.len() {
            let count = Extensions::new(ip_protocol::HOP_BY_HOP, &CHAIN[..bytes]).count();
            assert_eq!(count, bytes / 8 - usize::from(bytes >= 32), "{bytes}");
        }
    }

    #[test]
    fn nothing_follows_a_later_fragment() {
        let bytes = [60, 0, 0, 8, 0, 0, 0, 1, 17, 0, 0, 0, 0, 0, 0, 0];
        let mut chain = Extensions::new(ip_protocol::FRAGMENT, &bytes);
        let fragment = chain.next().and_then(|extension| extension.fragment());
        let expected = FragmentField { offset_bytes: 8, more_fragments: false, id: 1 };
        assert_eq!(fragment, Some(expected));
        assert_eq!((chain.next(), chain.rest().len()), (None, 8));
    }
}
