//! Why a description cannot be made into frames.

/// An error of [`TemplateSpec::compile`](super::TemplateSpec::compile).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The smallest size has no room for headers and stamp.
    #[error(
        "a frame of {size_bytes} bytes is too small: {parts} need {minimum_bytes}; use a size of at least {minimum_bytes}"
    )]
    FrameTooSmall {
        /// Smallest size that was asked for.
        size_bytes: usize,
        /// Smallest possible size.
        minimum_bytes: usize,
        /// What takes the room.
        parts: String,
    },
    /// A value does not fit in the field's bits.
    #[error("{field} {value} is out of range: use a value from 0 to {maximum}")]
    ValueTooLarge {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: u128,
        /// Largest possible value.
        maximum: u128,
    },
    /// A range goes downwards.
    #[error("{field} goes downwards from {first} to {last}: give the smaller value first")]
    Downwards {
        /// Name of the field.
        field: &'static str,
        /// First value.
        first: String,
        /// Last value.
        last: String,
    },
    /// A step of 0.
    #[error("{field} has a step of 0: use a step of at least 1, or a single value")]
    ZeroStep {
        /// Name of the field.
        field: &'static str,
    },
    /// More VLAN tags or MPLS labels than receivers follow.
    #[error("{count} {kind} are too many: use at most {maximum}")]
    TooManyTags {
        /// "VLAN tags" or "MPLS labels".
        kind: &'static str,
        /// Number asked for.
        count: usize,
        /// Largest possible number.
        maximum: usize,
    },
    /// MPLS labels or a transport header without IP.
    #[error("{part} without IP: choose IPv4 or IPv6 as network header, or leave {part} out")]
    WithoutIp {
        /// "MPLS labels", "UDP", …
        part: &'static str,
    },
    /// A payload pattern without bytes.
    #[error("the payload pattern is empty: give at least one byte, or fill with zeros")]
    EmptyPattern,
}
