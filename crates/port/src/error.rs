//! What can go wrong at a port.

/// Shorthand for results of this crate.
pub type Result<T, E = PortError> = std::result::Result<T, E>;

/// An error of a port, naming the port, the action and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The specification does not name a port.
    #[error("port «{spec}»: {reason}")]
    Spec {
        /// The specification as it was given.
        spec: String,
        /// What is wrong with it, what was expected.
        reason: String,
    },
    /// The port cannot do what was asked of it.
    #[error("port «{port}»: {reason}")]
    Unsupported {
        /// The port.
        port: String,
        /// What it cannot do, and what can.
        reason: String,
    },
    /// A frame is longer than the port takes.
    #[error(
        "port «{port}»: a frame of {frame_bytes} bytes is longer than the {frame_bytes_max} bytes \
         that the port takes; send shorter frames{remedy}"
    )]
    FrameTooLong {
        /// The port.
        port: String,
        /// Length of the frame in bytes without FCS.
        frame_bytes: usize,
        /// Longest frame that fits, in bytes without FCS.
        frame_bytes_max: usize,
        /// What else helps, if anything does: ` or` and an imperative.
        remedy: String,
    },
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// The file behind the port failed.
    #[error("port «{port}»: {source}")]
    File {
        /// The port.
        port: String,
        /// What the file format or the disk said; part of the text, hence no `source()`.
        r#source: Box<dyn std::error::Error + Send + Sync>,
    },
}
