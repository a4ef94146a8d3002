//! Runs the program under test and reads what it says.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A finished run of the program.
pub struct Run {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(f, "code {:?}\nstdout:\n{stdout}\nstderr:\n{}", self.code, self.stderr)
    }
}

impl Run {
    /// Runs `linerate` with `arguments` to its end.
    pub fn of(arguments: &[&str]) -> Self {
        command(arguments).output().map(Self::from).unwrap()
    }

    /// Asserts the exit code, showing what the program said if it differs.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The last line of standard output as JSON, which is the result.
    #[track_caller]
    pub fn result(&self) -> Value {
        let value = self.last();
        assert_eq!(value["kind"], "result", "{value}");
        value
    }

    /// The last line of standard output as JSON.
    #[track_caller]
    pub fn last(&self) -> Value {
        let text = String::from_utf8_lossy(&self.stdout);
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last)
            .unwrap_or_else(|_| panic!("no JSON: «{last}»; stderr:\n{}", self.stderr))
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The program with arguments, its outputs captured, no input.
pub fn command(arguments: &[&str]) -> Command {
    // Where it is when the test runs, not where it was built.
    let program = std::env::var_os("CARGO_BIN_EXE_linerate");
    let mut command = Command::new(program.unwrap_or(env!("CARGO_BIN_EXE_linerate").into()));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A directory with a capture of `count` frames in it.
#[allow(dead_code)]
pub fn capture(count: u32, options: &[&str]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.pcapng").display().to_string();
    let port = format!("pcap:{path}");
    let count = count.to_string();
    let mut arguments = vec!["generate", &port, "--count", &count, "--json"];
    arguments.extend(options);
    let result = Run::of(&arguments).expect(0).result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    (directory, path)
}

/// A number in a JSON object, by a path such as `ledger.unexplained_packets`.
#[track_caller]
pub fn number(value: &Value, path: &str) -> u64 {
    let found = path.split('.').fold(value, |value, name| &value[name]);
    found.as_u64().unwrap_or_else(|| panic!("no number at {path} in {value}"))
}

/// Packets that the segments of a recording hold, by the reader of captures.
#[allow(dead_code)]
pub fn packets_in_segments(result: &Value) -> u64 {
    let mut packets = 0;
    for segment in result["segments"].as_array().unwrap() {
        let mut reader = store::CaptureReader::open(segment["path"].as_str().unwrap()).unwrap();
        while reader.next_record().unwrap().is_some() {
            packets += 1;
        }
    }
    packets
}
