//! One error for captures at rest: what was being done, to which file, and what helps.
//!
//! Formats, segments, recorder and queries share this enum, so that a command can map it to one
//! exit code. Offsets are bytes from the start of the file or stream.

use std::io;

use sys::Limit;

use crate::words::counted;

/// Shorthand for results of this crate.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A failed action on a capture or on a store of captures.
///
/// The text of each is whole: it says what the kernel said. Fields are written `r#source` so that
/// they are no `source()`, which whoever prints a chain of causes would say again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be opened for reading.
    #[error("opening {name}: {source}{}", limit_remedy(source))]
    Open {
        /// The file.
        name: String,
        /// What the kernel said.
        r#source: io::Error,
    },
    /// Reading failed half way.
    #[error("reading {name} at byte {offset}: {source}{}", limit_remedy(source))]
    Read {
        /// The file or stream.
        name: String,
        /// Bytes that had been read before.
        offset: u64,
        /// What the kernel said.
        r#source: io::Error,
    },
    /// Writing failed. A reader that went away shows as [`io::ErrorKind::BrokenPipe`] in `source`.
    #[error("writing {what}: {source}{}", limit_remedy(source))]
    Write {
        /// What was being written.
        what: String,
        /// What the kernel said, its kind intact.
        r#source: io::Error,
    },
    /// Writing a capture failed half way; what was written before is whole in it.
    #[error(
        "writing {what}: {source}; it holds {}{}{}",
        counted(*packets, "packet"),
        if is_full(source) { "; free some space, or write to another disk" } else { "" },
        limit_remedy(source)
    )]
    Incomplete {
        /// The capture that was being written.
        what: String,
        /// Packets that are whole in it.
        packets: u64,
        /// Its length in bytes up to the end of the last of them.
        bytes: u64,
        /// What the kernel said, its kind intact.
        r#source: io::Error,
    },
    /// The file has no bytes at all.
    #[error(
        "{name} is empty (0 bytes), not even a file header; a capture that saw no packet still \
         has one, so look at the program that wrote it"
    )]
    Empty {
        /// The file or stream.
        name: String,
    },
    /// The first bytes are of no capture format that is read here.
    #[error(
        "{name} is not a capture: it begins with {found}; accepted are pcap (magic a1b2c3d4, \
         a1b23c4d or a1b2cd34 in either byte order) and pcapng (0a0d0d0a)"
    )]
    NotACapture {
        /// The file or stream.
        name: String,
        /// The first bytes in hexadecimal, with a guess at what they are.
        found: String,
    },
    /// The file is compressed, which is not undone here.
    #[error(
        "{name} is compressed with {compression}; decompress it to a file, as in \
         `{command} {name} > FILE`, and name that"
    )]
    Compressed {
        /// The file or stream.
        name: String,
        /// The compression's usual name.
        compression: &'static str,
        /// The program that writes the plain bytes to its standard output.
        command: &'static str,
    },
    /// A pipe, socket or device where a file is needed.
    #[error(
        "{name} is a pipe or a device, which cannot be searched: it is read at many places and \
         more than once; write it to a file, as in `cat {name} > FILE`, and name that"
    )]
    NotAFile {
        /// The path.
        name: String,
    },
    /// A directory that nobody recorded to.
    #[error("no recording in {directory}: {reason}")]
    NoRecording {
        /// The directory.
        directory: String,
        /// What is there instead and what helps.
        reason: String,
    },
    /// The file ends inside a record or block; every record before was delivered.
    #[error(
        "{name} is cut short: the record at byte {offset} is incomplete; the {} before it can be read",
        counted(*packets_before, "packet")
    )]
    Truncated {
        /// The file or stream.
        name: String,
        /// Where the incomplete record or block begins.
        offset: u64,
        /// Packets delivered before it.
        packets_before: u64,
    },
    /// Bytes that no writer of this format means; every record before was delivered.
    #[error(
        "{name} is corrupt at byte {offset}: {what}; the {} before it can be read",
        counted(*packets_before, "packet")
    )]
    Corrupt {
        /// The file or stream.
        name: String,
        /// Where the record or block begins that makes no sense.
        offset: u64,
        /// Packets delivered before it.
        packets_before: u64,
        /// What was found and what is allowed.
        what: String,
    },
    /// A version or variant of a format that is not read here.
    #[error("{name} at byte {offset}: {what} is not supported")]
    Unsupported {
        /// The file or stream.
        name: String,
        /// Where it says so.
        offset: u64,
        /// The version or variant.
        what: String,
    },
    /// The kernel or the machine refused; the message names thing, action and remedy.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// A directory cannot be recorded to as it is.
    #[error("recording to {directory}: {reason}")]
    Directory {
        /// The directory.
        directory: String,
        /// What is wrong and what helps.
        reason: String,
    },
    /// Another recorder is at work in the directory.
    #[error(
        "recording to {directory}: stream {stream} is being recorded there by another process, \
         which has locked {file}; choose another directory or stream, or end that process"
    )]
    Locked {
        /// The directory.
        directory: String,
        /// The stream, which one recorder at a time may write.
        stream: u16,
        /// What that recorder has locked: the file for it, or a segment that it writes.
        file: String,
    },
    /// An output in the place of a recording's own files.
    #[error(
        "writing {name}: it has the name of a segment, a time index or a lock in a directory that is \
         recorded to, and a recording would be lost; write to another file"
    )]
    Recording {
        /// The file.
        name: String,
    },
    /// The format has no way to hold what was asked to be written.
    #[error("cannot write {what}")]
    Unwritable {
        /// The thing, why it does not fit, and what does.
        what: String,
    },
}

impl StoreError {
    /// The kind of the input or output error underneath, if there is one; a caller that writes to
    /// a pipe ends quietly on [`io::ErrorKind::BrokenPipe`].
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.io_error().map(io::Error::kind)
    }

    /// Whether the process or the machine gave no more open files, memory or threads.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::System(system) => system.kind() == sys::Kind::Limit,
            _ => self.io_error().and_then(Limit::met).is_some(),
        }
    }

    fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Open { source, .. }
            | Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::Incomplete { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether nothing failed: whoever is at the other end of a pipe has to do something first.
    pub fn is_would_block(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::WouldBlock)
    }
}

/// What helps where the error is that of a limit, as the end of a message.
fn limit_remedy(error: &io::Error) -> String {
    Limit::met(error).map_or_else(String::new, |limit| format!("; {}", limit.remedy()))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_file_the_place_and_what_is_still_good() {
        let error = StoreError::Truncated { name: "a.pcap".into(), offset: 40, packets_before: 7 };
        let text = error.to_string();
        assert!(text.contains("a.pcap") && text.contains("byte 40") && text.contains("7 packets"));
        assert_eq!(error.io_kind(), None);
    }

    #[test]
    fn the_kind_of_an_output_error_survives() {
        let error = StoreError::Write {
            what: "a pcapng capture".into(),
            source: io::ErrorKind::BrokenPipe.into(),
        };
        assert_eq!(error.io_kind(), Some(io::ErrorKind::BrokenPipe));
    }
}
