//! What can end a run early.

/// Shorthand for results of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// An error that ends a worker; its ledger is still written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A port failed.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// A capture file or a store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The kernel refused something that is not a port.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// The job makes no sense as asked.
    #[error("{what}; {remedy}")]
    Job {
        /// What does not fit.
        what: String,
        /// What would.
        remedy: String,
    },
    /// A worker thread ended without a result.
    #[error(
        "the worker «{worker}» ended without a result; this is a fault of linerate: please report it"
    )]
    Worker {
        /// Name of the thread.
        worker: String,
    },
}
