//! Oddities of a capture that do not stop it from being read.

use std::fmt;

use crate::words::counted;

/// What is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// The link field of a pcap header has bits set above its low 16, which are ignored.
    LinkFieldJunk {
        /// The field as it stands in the file.
        field: u32,
    },
    /// Zero bytes after the last packet, as a preallocated file that was never cut to its length
    /// has; other readers show phantom packets or an error there.
    ZeroTail,
    /// A pcap time whose fraction is a second or more; it is added all the same.
    TimeFraction,
    /// Options of a block that do not fit in it; those before are used.
    MalformedOptions,
}

/// An oddity, where it was seen first, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// What is odd.
    pub kind: WarningKind,
    /// Byte offset of the first record or block concerned.
    pub offset: u64,
    /// Records or blocks concerned; bytes for a tail of zeros.
    pub count: u64,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, offset, count } = self;
        match kind {
            WarningKind::LinkFieldJunk { field } => write!(
                f,
                "the link field is {field:#010x}; only its low 16 bits ({}) are used",
                field & 0xffff
            ),
            WarningKind::ZeroTail => write!(
                f,
                "ignored {} after the last packet, from byte {offset} on (a preallocated file that \
                 was not closed)",
                counted(*count, "zero byte")
            ),
            WarningKind::TimeFraction => write!(
                f,
                "{} with a fraction of one second or more, the first at byte {offset}",
                counted(*count, "time")
            ),
            WarningKind::MalformedOptions => write!(
                f,
                "{} with options that do not fit, the first at byte {offset}; what follows them in \
                 the block was ignored",
                counted(*count, "block")
            ),
        }
    }
}

/// The oddities seen so far, one entry per kind however often it occurs.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// Counts `count` more of a kind, first seen at `offset` if it is new.
    #[cold]
    pub(crate) fn add(&mut self, kind: WarningKind, offset: u64, count: u64) {
        match self.0.iter_mut().find(|warning| warning.kind == kind) {
            Some(warning) => warning.count = warning.count.saturating_add(count),
            None => self.0.push(Warning { kind, offset, count }),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Warning] {
        &self.0
    }
}
