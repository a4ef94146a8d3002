//! A capture file that is being made.
//!
//! Whoever writes to it does so through [`NewFile::sink`] and hands a failure to
//! [`NewFile::settle`]: the file then ends behind its last whole packet, so that every reader opens it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Result, StoreError};
use crate::segment;

/// A file of which everything was written by this program since it was opened.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    name: String,
}

impl NewFile {
    /// Creates the file, replacing one of the same name, unless that belongs to a recording
    /// ([`StoreError::Recording`]). A file that has other names, too, keeps its contents under those.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if segment::is_of_recording(path) {
            return Err(StoreError::Recording { name });
        }
        let failed = |source| StoreError::Write { what: name.clone(), source };
        // One of the other names may be that of a segment.
        if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.nlink() > 1) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let file = File::create(path).map_err(failed)?;
        Ok(Self { file, name })
    }

    /// The path that it was made at.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another handle to write through, as long as this one is not written to.
    pub fn sink(&self) -> Result<File> {
        self.file
            .try_clone()
            .map_err(|source| StoreError::Write { what: self.name.clone(), source })
    }

    /// After a failed write: cuts off the beginning of a packet whose end did not fit, and names the
    /// file in the error.
    pub fn settle(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Incomplete { packets, bytes, source, .. } => {
                // Pipes and devices have nothing to cut. A file that cannot be cut is cut short for
                // readers, which tell how many packets are good: as many.
                let _ = self.file.set_len(bytes);
                StoreError::Incomplete { what: self.name.clone(), packets, bytes, source }
            }
            other => other,
        }
    }
}
