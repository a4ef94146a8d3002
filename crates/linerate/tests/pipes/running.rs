//! A place with a named pipe, and the program that runs beside it.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Run, command};

/// After this time something never happens: far more than any of it takes on a busy machine.
const NEVER: Duration = Duration::from_secs(60);
/// A directory with a named pipe in it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, place.at("fifo"), FileType::Fifo, mode, 0).unwrap();
        place
    }

    pub fn at(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    pub fn port(&self) -> String {
        format!("pcap:{}", self.at("fifo"))
    }

    /// A capture of frames with stamps.
    pub fn capture(&self, count: u64, size: u64) -> String {
        let path = self.at("frames.pcapng");
        let (port, count, size) = (format!("pcap:{path}"), count.to_string(), size.to_string());
        Run::of(&["generate", &port, "--count", &count, "--size", &size]).expect(0);
        path
    }

    /// The end to read of the pipe, which is there at once and never waits.
    pub fn reader(&self) -> File {
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new().read(true).custom_flags(flags).open(self.at("fifo")).unwrap()
    }

    /// The end to write of the pipe, once the program reads it.
    pub fn writer(&self) -> File {
        OpenOptions::new().write(true).open(self.at("fifo")).unwrap()
    }
}

/// Waits until `holds`.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < NEVER, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program that runs; ended with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self(command(&[arguments, &["--json"]].concat()).spawn().unwrap())
    }

    /// Waits until a signal is handled: from then on it ends the run in order.
    pub fn handling(self) -> Self {
        let path = format!("/proc/{}/status", self.0.id());
        until("the handler of SIGTERM", || {
            let status = std::fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            mask.is_some_and(|mask| mask >> 14 & 1 == 1)
        });
        self
    }

    /// Waits until it has `path` open.
    pub fn holding(self, path: &str) -> Self {
        let directory = format!("/proc/{}/fd", self.0.id());
        until("the pipe is open", || {
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            links.into_iter().any(|link| link == Path::new(path))
        });
        self.handling()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits until it says that `packets` have come.
    pub fn having(mut self, packets: u64) -> Self {
        let stdout = self.0.stdout.as_mut().unwrap();
        loop {
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                let mut byte = [0];
                stdout.read_exact(&mut byte).unwrap();
                line.push(byte[0]);
            }
            let object: Value = serde_json::from_slice(&line).unwrap();
            if object["kind"] == "progress" && object["packets"] == packets {
                return self;
            }
        }
    }

    /// Its end, and the last object that it said.
    #[track_caller]
    pub fn end(mut self, objects_at: &str) -> (Option<i32>, Value) {
        until("the end of the program", || self.0.try_wait().unwrap().is_some());
        let mut text = String::new();
        match objects_at {
            "stdout" => self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap(),
            _ => self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap(),
        };
        let code = self.0.wait().unwrap().code();
        let last = text.lines().last().unwrap_or_default();
        (code, serde_json::from_str(last).unwrap_or_else(|_| panic!("{code:?}: {text}")))
    }

    /// Ends well, with a result whose ledger balances.
    #[track_caller]
    pub fn result_at(self, objects_at: &str) -> Value {
        let (code, last) = self.end(objects_at);
        assert_eq!((code, &last["kind"]), (Some(0), &"result".into()), "{last}");
        assert_eq!(last["ledger"]["balanced"], true, "{last}");
        assert_eq!(last["error"], Value::Null, "{last}");
        last
    }

    #[track_caller]
    pub fn result(self) -> Value {
        self.result_at("stdout")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
