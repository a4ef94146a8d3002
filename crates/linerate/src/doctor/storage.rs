//! The directory of a recording.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use store::pcapng::packet::enhanced_packet_length;
use sys::direct_io::{Mode, TrialLimit, WriteTrial};
use sys::file_system::FileSystem;

use super::{Area, Finding, Severity};
use crate::exit::Exit;
use crate::units::{ns_in_words, scaled};

/// The first of these ends the trial.
const LIMIT: TrialLimit = TrialLimit { bytes: 256 << 20, time: Duration::from_secs(3) };
/// A recorder fills this in no time.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Frame sizes whose rates are said, the smallest and the largest without jumbo frames.
const SIZES: [usize; 2] = [60, 1514];

/// Its file system, its room, and how fast it takes writes.
pub fn look(directory: &Path) -> Vec<Finding> {
    let name = directory.display().to_string();
    let place = existing(directory);
    let mut findings = Vec::new();
    match FileSystem::of(&place) {
        Ok(file_system) => {
            findings.push(kind(&file_system));
            findings.push(room(&file_system));
        }
        Err(error) => findings.push(unusable(&error)),
    }
    match WriteTrial::run(&place, LIMIT) {
        Ok(trial) => findings.extend([writable(&place), way(&trial), rate(&trial)]),
        Err(error) => findings.push(unusable(&error)),
    }
    findings.into_iter().map(|finding| finding.about(&name)).collect()
}

/// The directory, or the nearest one above it: a recorder makes the rest.
fn existing(directory: &Path) -> PathBuf {
    let here = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    here.ancestors().find(|path| path.exists()).unwrap_or(&here).to_owned()
}

fn writable(place: &Path) -> Finding {
    let seen = format!("a file can be made in {}", place.display());
    Finding::new(Area::Storage, "writable", seen, "a recording makes files there")
        .facts(json!({ "writable": true }))
}

fn unusable(error: &sys::Error) -> Finding {
    let why = "a recording there would end before it began";
    let (remedy, exit) = match error.kind() {
        sys::Kind::NoSpace => ("make room, or choose another directory", None),
        sys::Kind::Permission => (
            "choose a directory that may be written, or have its owner allow it",
            Some(Exit::Permission),
        ),
        sys::Kind::Limit => ("raise that limit", Some(Exit::Limit)),
        _ => ("choose another directory", None),
    };
    Finding::new(Area::Storage, "writable", error.to_string(), why)
        .facts(json!({ "writable": false }))
        .is(Severity::Problem, remedy)
        .exit(exit)
}

fn kind(found: &FileSystem) -> Finding {
    let seen = format!("{} on {}, from {}", found.kind, found.mount_point.display(), found.source);
    let why = "the file system decides how writes reach the disk";
    let finding = Finding::new(Area::Storage, "file system", seen, why).facts(json!({
        "kind": found.kind,
        "mount_point": found.mount_point,
        "source": found.source,
        "in_memory": found.is_in_memory(),
        "read_only": found.is_read_only,
    }));
    if found.is_read_only {
        finding
            .is(Severity::Problem, "mount it for writing")
            .command(format!("sudo mount -o remount,rw {}", found.mount_point.display()))
    } else if found.is_in_memory() {
        finding.is(Severity::Note, "it lies in memory: what is recorded is gone after a restart")
    } else if found.is_remote() {
        finding.is(Severity::Warning, "record to a disk of this machine: a network stalls writes")
    } else {
        finding
    }
}

fn room(found: &FileSystem) -> Finding {
    let (free, size) = (scaled(found.free_bytes as f64), scaled(found.size_bytes as f64));
    let why = "a full disk stops the writing, and what arrives meanwhile is lost as storage";
    let finding =
        Finding::new(Area::Storage, "free space", format!("{free}B free of {size}B"), why)
            .facts(json!({ "free_bytes": found.free_bytes, "size_bytes": found.size_bytes }));
    if found.free_bytes >= FREE_BYTES_MIN {
        return finding;
    }
    finding
        .is(Severity::Warning, "make room; what takes it is shown by")
        .command(format!("du -xh --max-depth=2 {} | sort -h", found.mount_point.display()))
}

fn way(trial: &WriteTrial) -> Finding {
    let direct = match &trial.mode {
        Mode::Direct { .. } => "O_DIRECT".to_owned(),
        Mode::Buffered { reason } => format!("through the page cache, since {reason}"),
    };
    let seen = format!("{direct}; {}; from {}", trial.writer, trial.pages);
    let why = "past the page cache a disk's rate is steady and costs little CPU";
    let is_direct = matches!(trial.mode, Mode::Direct { .. });
    let finding = Finding::new(Area::Storage, "writer", seen, why)
        .facts(json!({ "direct": is_direct, "io_uring": trial.is_uring, "writer": trial.writer }));
    if !is_direct {
        return finding
            .is(Severity::Warning, "record to a file system with direct I/O, as ext4 or xfs");
    }
    if trial.is_uring {
        return finding;
    }
    finding
        .is(
            Severity::Note,
            "a pool of threads in pwrite(2) does the work; allow io_uring if you can",
        )
        .command("sudo sysctl -w kernel.io_uring_disabled=0")
}

fn rate(trial: &WriteTrial) -> Finding {
    let bytes_per_s = trial.bytes_per_s();
    let pps = SIZES.map(|size| bytes_per_s / enhanced_packet_length(size) as f64);
    let [small, large] = pps.map(scaled);
    let seen = format!(
        "{}B/s over {}B in {}, which carries {small}pps of 60 bytes or {large}pps of 1514; slowest write {}",
        scaled(bytes_per_s),
        scaled(trial.bytes as f64),
        ns_in_words(trial.elapsed_ns),
        ns_in_words(trial.latency_ns_max)
    );
    let why = "what arrives faster for longer than the pool covers is lost; a short trial may meet \
               a disk's cache, whose rate does not last";
    Finding::new(Area::Storage, "write rate", seen, why).facts(json!({
        "bytes_per_s": bytes_per_s.round() as u64,
        "packets_per_s_60": pps[0].round() as u64,
        "packets_per_s_1514": pps[1].round() as u64,
        "latency_ns_max": trial.latency_ns_max,
        "measured_bytes": trial.bytes,
        "elapsed_ns": trial.elapsed_ns,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_judged_by_the_one_above() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(existing(&directory.path().join("a/b")), directory.path());
        let finding = |path: &str| look(Path::new(path)).into_iter().map(|it| it.severity).max();
        assert_eq!(finding("/proc/self"), Some(Severity::Problem));
    }
}
