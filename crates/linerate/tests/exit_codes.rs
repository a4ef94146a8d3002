//! Every row of docs/exit-codes.md, held against the program; full disks and the code 130 have tests
//! of their own.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use program::{Run, command};

/// An ordinary user when root runs the tests.
const NOBODY: u32 = 65_534;

/// A place in which an ordinary user may work, with what it may read and what not.
struct Place {
    directory: tempfile::TempDir,
    is_root: bool,
}

impl Place {
    fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let is_root = rustix::process::geteuid().is_root();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let program = command(&[]).get_program().to_owned();
        fs::copy(program, at("linerate")).unwrap();
        let port = format!("pcap:{}", at("good.pcapng").display());
        Run::of(&["generate", &port, "--count", "100"]).expect(0);
        for store in ["store", "locked"] {
            let store = at(store).display().to_string();
            Run::of(&["record", &port, "--to", &store]).expect(0);
        }
        let bytes = fs::read(at("good.pcapng")).unwrap();
        fs::write(at("cut.pcapng"), &bytes[..bytes.len() - 20]).unwrap();
        fs::write(at("secret.pcapng"), &bytes).unwrap();
        fs::create_dir(at("shut")).unwrap();
        fs::create_dir(at("fixed")).unwrap();
        let modes = [("good.pcapng", 0o644), ("secret.pcapng", 0), ("shut", 0), ("fixed", 0o555)];
        for (name, mode) in modes {
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        Self { directory, is_root }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// As an ordinary user, in the place.
    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(self.path().join("linerate"));
        command.args(arguments).current_dir(self.path());
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        Run::from(command.output().unwrap())
    }

    /// As the user of the tests, behind `limit`, a command of the shell; ended where it hangs.
    fn run_limited(&self, limit: &str, arguments: &[&str]) -> Run {
        let mut command = Command::new("sh");
        let script = format!("{limit}; exec timeout 30 \"$0\" \"$@\"");
        command.arg("-c").arg(script).arg(self.path().join("linerate")).args(arguments);
        command.current_dir(self.path()).stdin(Stdio::null());
        Run::from(command.output().unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // An ordinary user cannot remove what it may not enter.
        let _ = fs::set_permissions(self.path().join("shut"), Permissions::from_mode(0o755));
    }
}

const CASES: [(i32, &[&str]); 38] = [
    (0, &["receive", "pcap:good.pcapng"]),
    (0, &["find", "good.pcapng", "--host", "10.9.9.9"]),
    (0, &["filter", "tcp", "--read", "good.pcapng"]),
    (0, &["filter", "ip[0] > 5 and ip[0] < 3", "--explain"]),
    (0, &["generate", "null:", "--count", "10"]),
    (0, &["replay", "good.pcapng", "--onto", "null:", "--rate", "max"]),
    (2, &["receive", "null:", "--nosuch"]),
    (2, &["generate", "null:", "--rate", "10 apples"]),
    (2, &["find", "good.pcapng", "--from", "now", "--to", "-5m"]),
    (2, &["generate", "xdq:eth0"]),
    (2, &["filter", "port 65536", "--read", "good.pcapng"]),
    (2, &["filter", "ip"]),
    (3, &["generate", "lo", "--count", "1"]),
    (3, &["receive", "lo", "--duration", "10ms"]),
    (3, &["record", "lo", "--to", "new", "--duration", "10ms"]),
    (3, &["receive", "pcap:secret.pcapng"]),
    (3, &["record", "pcap:secret.pcapng", "--to", "new"]),
    (3, &["find", "secret.pcapng"]),
    (3, &["filter", "ip", "--read", "secret.pcapng"]),
    (3, &["find", "shut"]),
    (3, &["find", "shut/inside.pcapng"]),
    (3, &["replay", "secret.pcapng", "--onto", "null:"]),
    (3, &["replay", "shut", "--onto", "null:"]),
    (3, &["find", "good.pcapng", "--write", "fixed/x.pcapng"]),
    (3, &["generate", "pcap:fixed/x.pcapng", "--count", "1"]),
    (3, &["record", "null:", "--to", "fixed/new"]),
    (3, &["record", "null:", "--to", "fixed"]),
    (3, &["man", "fixed/pages"]),
    (3, &["doctor", "--to", "fixed"]),
    (4, &["receive", "nosuch0"]),
    (4, &["generate", "nosuch0"]),
    (5, &["record", "null:", "--to", "good.pcapng"]),
    (5, &["find", "good.pcapng", "--write", "nosuch/x.pcapng"]),
    (6, &["find", "cut.pcapng"]),
    (6, &["filter", "ip", "--read", "cut.pcapng"]),
    (6, &["filter", "ip", "--read", "nosuch.pcapng"]),
    (6, &["receive", "pcap:cut.pcapng"]),
    (6, &["receive", "pcap:nosuch.pcapng"]),
];

/// Every worker asks for a stack of 64 GiB.
const LARGE_STACKS: &str = "ulimit -v 8000000; export RUST_MIN_STACK=68719476736";

/// One worker gets its stack of 3 GiB, the next one does not.
const STACKS_FOR_ONE: &str = "ulimit -v 5000000; export RUST_MIN_STACK=3221225472";

/// Limits, what the message has to name, and what meets them.
const LIMITED: [(&str, &str, &[&str]); 10] = [
    ("ulimit -n 4", "ulimit -n", &["record", "pcap:good.pcapng", "--to", "new4"]),
    ("ulimit -n 5", "ulimit -n", &["record", "pcap:good.pcapng", "--to", "new5"]),
    ("ulimit -n 6", "ulimit -n", &["record", "pcap:good.pcapng", "--to", "new6"]),
    ("ulimit -n 4", "ulimit -n", &["receive", "pcap:good.pcapng"]),
    ("ulimit -n 4", "ulimit -n", &["find", "good.pcapng", "--write", "out4.pcapng"]),
    ("ulimit -n 5", "ulimit -n", &["find", "store", "--write", "out5.pcapng"]),
    ("ulimit -v 200000", "ulimit -v", &["record", "pcap:good.pcapng", "--to", "new"]),
    (LARGE_STACKS, "ulimit -u", &["receive", "pcap:good.pcapng"]),
    (LARGE_STACKS, "ulimit -u", &["record", "pcap:good.pcapng", "--to", "new"]),
    // Without an end of its own, the one that runs is ended.
    (STACKS_FOR_ONE, "starting the thread generate-1", &["generate", "null:", "--workers", "2"]),
];

#[test]
fn limits_are_named_and_have_a_code() {
    let place = Place::make();
    let mut wrong = Vec::new();
    for (limit, name, arguments) in LIMITED {
        let run = place.run_limited(limit, arguments);
        if run.code != Some(7) || !run.stderr.contains(name) {
            wrong.push(format!("{limit}: {arguments:?}: {run:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn codes_are_those_of_the_page() {
    let place = Place::make();
    let mut wrong = Vec::new();
    for (code, arguments) in CASES {
        let run = place.run(arguments);
        if run.code != Some(code) {
            wrong.push(format!("{arguments:?}: {:?}, not {code}: {}", run.code, run.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_page_is_tried() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let page = Path::new(&package).join("../../docs/exit-codes.md");
    let page = fs::read_to_string(page).unwrap();
    let codes: Vec<i32> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 130]);
    // A ledger with unexplained packets takes a device that lies; the engine's tests make one.
    // Limits have a test of their own.
    for code in codes.into_iter().filter(|code| ![1, 7, 130].contains(code)) {
        assert!(CASES.iter().any(|(tried, _)| *tried == code), "{code}");
    }
}
