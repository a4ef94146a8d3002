//! The doctor on interfaces in known states.

use std::path::Path;

use serde_json::Value;
use sys::ethtool::{Ethtool, Offloads};
use sys::link::Links;
use sys::namespace::{Namespace, Rights};
use sys::veth::{VethConfig, VethPair};

use crate::program::{Run, number};
use crate::{Outcome, Wire};

/// The finding of that check about `subject`.
#[track_caller]
fn finding(run: &Run, subject: &str, check: &str) -> Value {
    let found = findings(run)
        .into_iter()
        .find(|it| it["check"] == check && it["subject"].as_str().unwrap_or("") == subject);
    found.unwrap_or_else(|| panic!("no finding {check} about {subject}: {run:?}"))
}

fn findings(run: &Run) -> Vec<Value> {
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    objects.filter(|object| object["kind"] == "finding").collect()
}

/// Merging by GRO is found, with the command against it; without it all is well.
pub fn merging_is_found() -> Outcome {
    let wire = Wire::new(&VethConfig { gro: true, ..VethConfig::default() });
    let run = Wire::run(&wire.there, &["doctor", "there", "--json"]).expect(0);
    let found = finding(&run, "there", "receive merging");
    assert_eq!(found["severity"], "warning");
    assert_eq!(found["facts"]["gro"], true);
    assert_eq!(found["command"], "sudo ethtool -K there gro off");
    let ethtool = Ethtool::open(&wire.there, "there").unwrap();
    ethtool.set_offloads(&Offloads::NONE).unwrap();
    let run = Wire::run(&wire.there, &["doctor", "there", "--json"]).expect(0);
    assert_eq!(finding(&run, "there", "receive merging")["severity"], "ok");
    // What was not named is a note at most.
    ethtool.set_offloads(&Offloads { gro: true, ..Offloads::NONE }).unwrap();
    let run = Wire::run(&wire.there, &["doctor", "--json"]).expect(0);
    assert_eq!(finding(&run, "there", "receive merging")["severity"], "note");
    Ok(())
}

/// A NAPI thread changes the finding, from either end where both are seen.
pub fn threads_are_found() -> Outcome {
    let wire = Wire::new(&VethConfig { gro: true, ..VethConfig::default() });
    let look = || Wire::run(&wire.there, &["doctor", "there", "--json"]).expect(0);
    let run = look();
    let found = finding(&run, "there", "napi");
    assert_eq!(
        (&found["facts"]["napi"], &found["facts"]["threaded"]),
        (&true.into(), &false.into())
    );
    // With one CPU a thread is of no use.
    let cpus = number(&finding(&run, "", "count"), "facts.online");
    if cpus > 1 {
        assert_eq!(found["severity"], "warning", "{found}");
        assert!(found["command"].as_str().unwrap().contains("/sys/class/net/there/threaded"));
    }
    assert_eq!(finding(&run, "there", "far end")["facts"]["visible"], false);
    sys::napi::set_threaded(&wire.there, "there", true).unwrap();
    let found = finding(&look(), "there", "napi");
    assert_eq!((&found["facts"]["threaded"], &found["severity"]), (&true.into(), &"ok".into()));

    let both = Namespace::create().unwrap();
    VethPair::create(&both, "left", &both, "right", &VethConfig::default()).unwrap();
    let run = Wire::run(&both, &["doctor", "left", "--json"]).expect(0);
    let found = finding(&run, "left", "far end");
    assert_eq!(found["facts"]["interface"], "right");
    assert_eq!(found["facts"]["napi"], false);
    Ok(())
}

/// A far end with a smaller MTU is a warning, in sight or in a namespace that one has a right to.
pub fn a_far_end_with_a_smaller_mtu_is_found() -> Outcome {
    let wire = Wire::new(&VethConfig { mtu_bytes: 9_000, ..VethConfig::default() });
    let look = |namespace: &Namespace, name: &str| {
        let run = Wire::run(namespace, &["doctor", name, "--json"]).expect(0);
        finding(&run, name, "far end mtu")
    };
    let found = look(&wire.here, "here");
    let facts = serde_json::json!({
        "interface": "there", "mtu_bytes": 9_000, "frame_bytes_max": 9_018,
    });
    assert_eq!((&found["severity"], &found["facts"]), (&"ok".into(), &facts));
    Links::of(&wire.there)?.set_mtu("there", 1_500)?;
    let found = look(&wire.here, "here");
    assert_eq!(found["severity"], "warning");
    assert_eq!(found["seen"], "there: MTU 1500, so frames of up to 1518 bytes");
    // What this end sends is the other end's business.
    assert_eq!(look(&wire.there, "there")["severity"], "ok");

    let both = Namespace::create()?;
    VethPair::create(&both, "near", &both, "far", &VethConfig::default())?;
    Links::of(&both)?.set_mtu("near", 9_000)?;
    let found = look(&both, "near");
    assert_eq!(found["command"], "sudo ip link set far mtu 9000");
    Ok(())
}

/// What is advised about GRO and NAPI settles: who follows it is not told to go back.
pub fn advice_about_merging_settles() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let look = || Wire::run(&wire.there, &["doctor", "there", "--json"]);
    let run = look().expect(0);
    assert_eq!(finding(&run, "there", "receive merging")["severity"], "ok");
    let napi = finding(&run, "there", "napi");
    assert_eq!((&napi["facts"]["napi"], &napi["severity"]), (&false.into(), &"note".into()));
    if let Some(remedy) = napi["remedy"].as_str() {
        assert!(remedy.contains("if no TCP is recorded"), "{remedy}");
    }
    // Down there is no NAPI though GRO is on: nobody is told to switch on what is on.
    let ethtool = Ethtool::open(&wire.there, "there").unwrap();
    ethtool.set_offloads(&Offloads { gro: true, ..Offloads::NONE }).unwrap();
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    let napi = finding(&look().expect(4), "there", "napi");
    assert_eq!(napi["facts"]["napi"], false, "{napi}");
    assert!(napi["command"].is_null() && napi["remedy"].is_null(), "{napi}");
    Ok(())
}

/// A port that is down is a problem if it was named; one that does not exist is the usual error.
pub fn ports_that_cannot_run_are_problems() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    Links::of(&wire.there).unwrap().set_up("there", false).unwrap();
    let run = Wire::run(&wire.there, &["doctor", "there", "--json"]).expect(4);
    let found = finding(&run, "there", "link");
    assert_eq!(found["severity"], "problem");
    assert_eq!(found["command"], "sudo ip link set there up");
    assert_eq!(number(&run.result(), "findings.problem"), 1);
    let run = Wire::run(&wire.here, &["doctor", "here", "--json"]).expect(4);
    let found = finding(&run, "here", "link");
    let seen = found["seen"].as_str().unwrap();
    let expected = "without carrier: this end is up, and the far end, interface number ";
    assert!(seen.starts_with(expected), "{seen}");
    assert!(seen.ends_with(" of another network namespace, is down"), "{seen}");
    assert!(found["remedy"].as_str().unwrap().contains("switch the far end on"), "{found}");
    // Where the far end is in sight it has a name.
    let both = Namespace::create().unwrap();
    VethPair::create(&both, "near", &both, "far", &VethConfig::default()).unwrap();
    Links::of(&both).unwrap().set_up("far", false).unwrap();
    let run = Wire::run(&both, &["doctor", "near", "--json"]).expect(4);
    let found = finding(&run, "near", "link");
    let expected = "without carrier: this end is up, and the far end, far, is down";
    assert_eq!((&found["seen"], &found["severity"]), (&expected.into(), &"problem".into()));
    assert_eq!(found["command"], "sudo ip link set far up");
    Wire::run(&wire.there, &["doctor", "--json"]).expect(0);

    let run = Wire::run(&wire.there, &["doctor", "nosuch0", "--json"]).expect(4);
    assert!(run.stderr.contains("nosuch0") && run.stderr.contains("there"), "{}", run.stderr);
    let run = Wire::run(&wire.there, &["doctor", "pcap:x.pcapng"]).expect(2);
    assert!(run.stderr.contains("--to"), "{}", run.stderr);
    Ok(())
}

/// A directory that takes a recording, one that cannot be written, and one that is full.
pub fn directories_are_tried() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let look = |directory: &Path| {
        let directory = directory.display().to_string();
        let run = Wire::run(&wire.there, &["doctor", "there", "--to", &directory, "--json"]);
        (run, directory)
    };
    let good = tempfile::tempdir().unwrap();
    let (run, name) = look(good.path());
    let run = run.expect(0);
    assert!(number(&finding(&run, &name, "write rate"), "facts.packets_per_s_60") > 0);
    assert_eq!(finding(&run, &name, "writable")["severity"], "ok");
    assert_eq!(std::fs::read_dir(good.path()).unwrap().count(), 0, "the trial left something");

    let (run, name) = look(Path::new("/proc/self"));
    assert_eq!(finding(&run.expect(5), &name, "writable")["severity"], "problem");
    a_full_directory(good.path());
    Ok(())
}

/// A small file system in memory, in a mount namespace of its own. In a user namespace too.
fn a_full_directory(mount_point: &Path) {
    let script = "mount -t tmpfs -o size=2m tmpfs \"$1\" && exec \"$2\" doctor --to \"$1\" --json";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    command.arg(mount_point).arg(env!("CARGO_BIN_EXE_linerate"));
    let run = Run::from(command.output().unwrap());
    // The doctor speaks whatever it finds.
    if run.stdout.is_empty() {
        eprintln!("SKIPPED a full directory: mounting needs rights: {}", run.stderr);
        return;
    }
    let run = run.expect(5);
    let found = finding(&run, &mount_point.display().to_string(), "writable");
    assert_eq!(found["severity"], "problem");
    assert!(found["remedy"].as_str().unwrap().contains("make room"), "{found}");
}

/// Every field that docs/json.md names for a finding and for the result is there.
pub fn documented_fields_are_there() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let run = Wire::run(&wire.there, &["doctor", "there", "--json"]).expect(0);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let fields = |row: &str| -> Vec<String> {
        let row = page.lines().find(|line| line.starts_with(row)).unwrap();
        row.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    };
    let (of_finding, of_result) = (fields("| `finding`"), fields("| `doctor`"));
    assert!(of_finding.len() >= 9 && of_result.len() >= 3);
    let all = findings(&run);
    assert!(all.len() > 10);
    for found in &all {
        let object = found.as_object().unwrap();
        for field in &of_finding {
            assert!(object.contains_key(field), "{field} is documented and not in {found}");
        }
        // All but those that every object has.
        assert_eq!(object.len(), of_finding.len() + 2, "a field is not documented: {found}");
        let bad = found["severity"] == "warning" || found["severity"] == "problem";
        assert!(!bad || found["remedy"].is_string(), "no remedy: {found}");
    }
    let result = run.result();
    for field in &of_result {
        assert!(result.get(field).is_some(), "{field} is documented and not in {result}");
    }
    let counted: u64 =
        ["ok", "note", "warning", "problem"].iter().map(|it| number(&result["findings"], it)).sum();
    assert_eq!(counted, all.len() as u64);
    let rights = finding(&run, "", "capabilities");
    assert_eq!(rights["facts"]["initial_user_namespace"], Rights::probe().initial);
    Ok(())
}
