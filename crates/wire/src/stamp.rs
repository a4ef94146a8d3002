//! Marks in the payload by which a receiver tells loss, order and latency.
//!
//! Vocabulary: a *stream* is frames numbered by one sender; its *sequence*
//! counts them; the *time* is when the sender wrote the stamp.
//!
//! linerate's stamp is 18 bytes, the payload of a 60-byte IPv4 UDP frame, all
//! big endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 2 | magic 0x4c52, "LR" |
//! | 2 | 2 | stream |
//! | 4 | 6 | sequence, counted from 0 |
//! | 10 | 8 | time, nanoseconds since the Unix epoch |
//!
//! The Linux kernel's pktgen (net/core/pktgen.c, `struct pktgen_hdr`) writes 16
//! bytes: magic 0xbe9be955, sequence, seconds, microseconds, 32 bits each.
//!
//! Limits: the 16-bit magic is met by chance in one of 65536 foreign payloads;
//! a 48-bit sequence lasts 60 days at 50 Mpps; pktgen's wraps at 2^32, its
//! seconds in 2106.

use crate::bytes::chunk;

/// First bytes of linerate's stamp: "LR".
pub const LINERATE_MAGIC: u16 = 0x4c52;
/// Length of linerate's stamp.
pub const LINERATE_BYTES: usize = 18;
/// First bytes of the kernel's pktgen header.
pub const PKTGEN_MAGIC: u32 = 0xbe9b_e955;
/// Length of the kernel's pktgen header.
pub const PKTGEN_BYTES: usize = 16;
/// Largest sequence of linerate's stamp.
pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

/// Whose stamp it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StampKind {
    /// linerate's own, 18 bytes.
    Linerate,
    /// The Linux kernel pktgen's, 16 bytes.
    Pktgen,
}

impl StampKind {
    /// Length on the wire.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Linerate => LINERATE_BYTES,
            Self::Pktgen => PKTGEN_BYTES,
        }
    }
}

/// The content of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Whose it is.
    pub kind: StampKind,
    /// Number of the stream; 0 for pktgen, which has none.
    pub stream: u16,
    /// Number of the frame in its stream: 48 bits from 0 for linerate, 32 bits
    /// from 1 for pktgen.
    pub sequence: u64,
    /// Nanoseconds since the Unix epoch; of microsecond resolution for pktgen,
    /// and 0 if it ran with the flag NO_TIMESTAMP.
    pub time_ns: u64,
}

/// The stamp at the start of `payload`, if there is one of either kind.
#[inline]
pub fn read(payload: &[u8]) -> Option<Stamp> {
    let [a, b, c, d] = *payload.first_chunk::<4>()?;
    if u16::from_be_bytes([a, b]) == LINERATE_MAGIC {
        let sequence = u64::from_be_bytes(*chunk(payload, 2)?);
        return Some(Stamp {
            kind: StampKind::Linerate,
            stream: (sequence >> 48) as u16,
            sequence: sequence & SEQUENCE_MAX,
            time_ns: u64::from_be_bytes(*chunk(payload, 10)?),
        });
    }
    if u32::from_be_bytes([a, b, c, d]) == PKTGEN_MAGIC {
        let word = |at| chunk::<4>(payload, at).map(|bytes| u64::from(u32::from_be_bytes(*bytes)));
        return Some(Stamp {
            kind: StampKind::Pktgen,
            stream: 0,
            sequence: word(4)?,
            time_ns: word(8)? * 1_000_000_000 + word(12)? * 1_000,
        });
    }
    None
}

/// linerate's stamp as bytes; `sequence` is cut to 48 bits.
#[inline]
pub fn linerate_bytes(stream: u16, sequence: u64, time_ns: u64) -> [u8; LINERATE_BYTES] {
    let mut bytes = [0; LINERATE_BYTES];
    let number = u64::from(stream) << 48 | sequence & SEQUENCE_MAX;
    bytes[..2].copy_from_slice(&LINERATE_MAGIC.to_be_bytes());
    bytes[2..10].copy_from_slice(&number.to_be_bytes());
    bytes[10..].copy_from_slice(&time_ns.to_be_bytes());
    bytes
}

/// The kernel pktgen's header as bytes; `time_ns` is cut to microseconds and
/// 32 bits of seconds.
#[inline]
pub fn pktgen_bytes(sequence: u32, time_ns: u64) -> [u8; PKTGEN_BYTES] {
    let seconds = (time_ns / 1_000_000_000) as u32;
    let microseconds = (time_ns % 1_000_000_000 / 1_000) as u32;
    let mut bytes = [0; PKTGEN_BYTES];
    bytes[..4].copy_from_slice(&PKTGEN_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
    bytes[8..12].copy_from_slice(&seconds.to_be_bytes());
    bytes[12..].copy_from_slice(&microseconds.to_be_bytes());
    bytes
}

/// Writes a stamp at the start of `into`; whether there was room for it.
///
/// `sequence` is cut to 48 bits, for pktgen to 32. pktgen has no `stream`.
#[inline]
pub fn write(kind: StampKind, into: &mut [u8], stream: u16, sequence: u64, time_ns: u64) -> bool {
    match kind {
        StampKind::Linerate => {
            let bytes = linerate_bytes(stream, sequence, time_ns);
            into.first_chunk_mut().map(|room| *room = bytes).is_some()
        }
        StampKind::Pktgen => {
            let bytes = pktgen_bytes(sequence as u32, time_ns);
            into.first_chunk_mut().map(|room| *room = bytes).is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout_on_the_wire() {
        let bytes = linerate_bytes(0x0102, 0x0304_0506_0708, 0x1112_1314_1516_1718);
        let expected =
            [0x4c, 0x52, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
        assert_eq!(bytes, expected);
        let bytes = pktgen_bytes(7, 1_700_000_000_123_456_789);
        let expected =
            [0xbe, 0x9b, 0xe9, 0x55, 0, 0, 0, 7, 0x65, 0x53, 0xf1, 0x00, 0x00, 0x01, 0xe2, 0x40];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn foreign_and_short_payloads_have_none() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0; 64]), None);
        for bytes in 0..LINERATE_BYTES {
            assert_eq!(read(&linerate_bytes(1, 2, 3)[..bytes]), None, "{bytes}");
        }
        for bytes in 0..PKTGEN_BYTES {
            assert_eq!(read(&pktgen_bytes(1, 2)[..bytes]), None, "{bytes}");
        }
    }

    #[test]
    fn writing_needs_room() {
        let stamp = Stamp { kind: StampKind::Pktgen, stream: 0, sequence: 1, time_ns: 5_000 };
        assert!(!write(StampKind::Pktgen, &mut [0; PKTGEN_BYTES - 1], 0, 1, 5_000));
        let mut room = [0; PKTGEN_BYTES];
        assert!(write(StampKind::Pktgen, &mut room, 0, 1, 5_999));
        assert_eq!(read(&room), Some(stamp));
    }

    proptest! {
        #[test]
        fn linerate_round_trips(stream: u16, sequence in 0..=SEQUENCE_MAX, time_ns: u64) {
            let stamp = Stamp { kind: StampKind::Linerate, stream, sequence, time_ns };
            let mut room = [0; 32];
            prop_assert!(write(stamp.kind, &mut room, stream, sequence, time_ns));
            prop_assert_eq!(read(&room), Some(stamp));
        }

        #[test]
        fn pktgen_round_trips(sequence: u32, seconds: u32, microseconds in 0..1_000_000u64) {
            let time_ns = u64::from(seconds) * 1_000_000_000 + microseconds * 1_000;
            let sequence = u64::from(sequence);
            let stamp = Stamp { kind: StampKind::Pktgen, stream: 0, sequence, time_ns };
            let mut room = [0; 16];
            prop_assert!(write(stamp.kind, &mut room, 7, sequence, time_ns));
            prop_assert_eq!(read(&room), Some(stamp));
        }
    }
}
