//! The examples of README.md and docs/ that name eth0, on an interface of that name.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use program::{command, number};
use rustix::process::{Pid, Signal, kill_process};
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};

use crate::pages::{docs, examples, pages};
use crate::{Outcome, Run, Running, Wire, program};

/// A run that takes longer is ended by a signal, as its user would.
const LONGEST: Duration = Duration::from_secs(2);

/// An end named eth0, and one named `far`.
fn network() -> Wire {
    let (here, there) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    VethPair::create(&here, "eth0", &there, "far", &VethConfig::default()).unwrap();
    Wire { here, there }
}

/// Every example of the pages, from top to bottom, beside an interface of that name.
pub fn examples_on_an_interface_run_as_written() -> Outcome {
    let network = network();
    let mut on_interface = 0;
    for page in pages() {
        let directory = tempfile::tempdir()?;
        let data = directory.path().join("capture").display().to_string();
        for example in examples(&std::fs::read_to_string(&page)?) {
            let example: Vec<_> =
                example.iter().map(|word| word.replace("/data/capture", &data)).collect();
            let arguments: Vec<&str> = example.iter().map(String::as_str).collect();
            let mut command = command(&arguments);
            command.current_dir(directory.path());
            let mut child = network.here.run(|| command.spawn())??;
            let begun = Instant::now();
            while child.try_wait()?.is_none() && begun.elapsed() < LONGEST {
                std::thread::sleep(Duration::from_millis(10));
            }
            if child.try_wait()?.is_none() {
                kill_process(Pid::from_child(&child), Signal::INT)?;
            }
            let run = Run::from(child.wait_with_output()?);
            assert_eq!(run.code, Some(0), "{}: {example:?}: {}", page.display(), run.stderr);
            on_interface += usize::from(example.iter().any(|word| word.contains("eth0")));
        }
    }
    assert!(on_interface >= 7, "only {on_interface} examples were found");
    Ok(())
}

/// The README's pair: record, and find what a host sent to a port.
pub fn the_readme_records_and_finds() -> Outcome {
    let network = network();
    let directory = tempfile::tempdir()?;
    let page = std::fs::read_to_string(docs().join("../README.md"))?;
    let store = directory.path().join("capture").display().to_string();
    let example = |begin: &str| -> Vec<String> {
        let line = page.lines().find(|line| line.starts_with(begin)).unwrap();
        let line = line.split(" | ").next().unwrap();
        line.split_whitespace().skip(1).map(|word| word.replace("/data/capture", &store)).collect()
    };
    let (record, find) = (example("linerate record"), example("linerate find"));
    let words = |line: &[String]| line.join(" ");
    assert_eq!(words(&record), format!("record eth0 --to {store}"));
    let mut record: Vec<&str> = record.iter().map(String::as_str).collect();
    record.push("--json");
    let recorder: Running = Wire::start(&network.here, &record);
    for (host, port, count) in [(1, "53", "70"), (1, "80", "20"), (2, "53", "10")] {
        let host = Ipv4Addr::new(10, 0, 0, host).to_string();
        let send = [
            "generate", "far", "--src", &host, "--dport", port, "--count", count, "--rate", "1kpps",
        ];
        Wire::run(&network.there, &send).expect(0);
    }
    recorder.signal(Signal::INT);
    let recorded = recorder.finish().expect(0).result();
    assert_eq!(number(&recorded, "recorded_packets"), 100, "{recorded}");
    let find: Vec<&str> = find.iter().map(String::as_str).collect();
    let answer = Run::of(&find).expect(0);
    let mut reader = store::CaptureReader::new(std::io::Cursor::new(answer.stdout), "answer")?;
    let mut found = 0;
    while reader.next_record()?.is_some() {
        found += 1;
    }
    assert_eq!(found, 70, "{}", answer.stderr);
    Ok(())
}
