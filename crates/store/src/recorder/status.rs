//! What the recorder's threads tell each other beside chunks: totals, trouble, events.
//!
//! The totals have one writer each. Events are rare (a segment sealed, a disk full), so a lock
//! around them costs nothing that matters; the thread that appends packets takes it only when it
//! asks for events.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::words::counted;

/// Events kept for a caller that does not ask for them.
const EVENTS_MAX: usize = 1000;

/// Something worth telling the user. `Display` gives one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecorderEvent {
    /// Nothing can be written; packets are lost as `storage` once the pool is full.
    StorageFailed {
        /// What the kernel said, and what helps.
        reason: String,
    },
    /// Writing goes on in a new segment.
    StorageResumed,
    /// The disk has no room for a segment of the length asked for.
    SegmentShortened {
        /// Length of the segment in bytes.
        segment_bytes: u64,
    },
    /// A segment is complete and on disk.
    SegmentSealed {
        /// The file.
        path: PathBuf,
        /// Packets in it.
        packets: u64,
    },
    /// A segment could not be sealed; it stays under its open name until recovery.
    SealFailed {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        reason: String,
    },
    /// A segment was removed while it was being recorded to; its packets count as `storage`.
    SegmentRemoved {
        /// Where it was.
        path: PathBuf,
        /// Packets that were in it.
        packets: u64,
    },
    /// A segment was cut while it was being recorded to; the packets that were in the part that is gone
    /// count as `storage`.
    SegmentCut {
        /// Where it was when that was noticed.
        path: PathBuf,
        /// Packets that are gone.
        packets: u64,
    },
    /// Written packets could not be flushed to the disk and may not survive a loss of power.
    FlushFailed {
        /// What the kernel said.
        reason: String,
    },
}

impl fmt::Display for RecorderEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StorageFailed { reason } => {
                write!(f, "recording stands still: {reason}; tried again every second")
            }
            Self::StorageResumed => f.write_str("recording goes on in a new segment"),
            Self::SegmentShortened { segment_bytes } => {
                write!(f, "the disk is nearly full: the next segment has {segment_bytes} bytes")
            }
            Self::SegmentSealed { path, packets } => {
                write!(f, "sealed {} with {}", path.display(), counted(*packets, "packet"))
            }
            Self::SealFailed { path, reason } => write!(
                f,
                "segment {} could not be sealed: {reason}; the next start recovers it",
                path.display()
            ),
            Self::SegmentRemoved { path, packets } => write!(
                f,
                "segment {} was removed while it was recorded to, and {} with it; leave a \
                 recording's files alone until they are sealed",
                path.display(),
                counted(*packets, "packet")
            ),
            Self::SegmentCut { path, packets } => write!(
                f,
                "segment {} was cut while it was recorded to, and {} lost with it; leave a \
                 recording's files alone until they are sealed",
                path.display(),
                counted(*packets, "packet")
            ),
            Self::FlushFailed { reason } => write!(
                f,
                "flushing to the disk failed: {reason}; packets of the last seconds may not \
                 survive a loss of power"
            ),
        }
    }
}

/// Shared by the recorder and its two threads.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Packets and captured bytes that a successful flush covers.
    pub(crate) durable_packets: AtomicU64,
    pub(crate) durable_bytes: AtomicU64,
    /// Packets and captured bytes of chunks whose write has ended, in order.
    pub(crate) written_packets: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    /// Packets and bytes that had been put into chunks but could not be written at all.
    pub(crate) given_up_packets: AtomicU64,
    pub(crate) given_up_bytes: AtomicU64,
    /// Packets and bytes that were written to segments which somebody has removed or cut since.
    pub(crate) removed_packets: AtomicU64,
    pub(crate) removed_bytes: AtomicU64,
    /// Nothing can be written at present.
    storage_failed: AtomicBool,
    events: Mutex<VecDeque<RecorderEvent>>,
}

impl Status {
    pub(crate) fn storage_failed(&self) -> bool {
        self.storage_failed.load(Ordering::Relaxed)
    }

    /// Tells once when trouble begins.
    pub(crate) fn fail_storage(&self, reason: String) {
        if !self.storage_failed.swap(true, Ordering::Relaxed) {
            self.tell(RecorderEvent::StorageFailed { reason });
        }
    }

    /// Tells once when trouble ends.
    pub(crate) fn resume_storage(&self) {
        if self.storage_failed.swap(false, Ordering::Relaxed) {
            self.tell(RecorderEvent::StorageResumed);
        }
    }

    pub(crate) fn tell(&self, event: RecorderEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(event);
    }

    pub(crate) fn take_events(&self) -> Vec<RecorderEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_once_when_it_begins_and_once_when_it_ends() {
        let status = Status::default();
        status.fail_storage("full".into());
        status.fail_storage("still full".into());
        assert!(status.storage_failed());
        status.resume_storage();
        status.resume_storage();
        let events = status.take_events();
        assert_eq!(
            events,
            [RecorderEvent::StorageFailed { reason: "full".into() }, RecorderEvent::StorageResumed]
        );
        assert!(status.take_events().is_empty());
    }
}
