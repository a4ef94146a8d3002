//! Ports whose other end is down.

use std::time::Duration;

use program::{Run, number};
use rustix::process::Signal;
use sys::link::Links;
use sys::veth::VethConfig;

use crate::{Outcome, Wire, program};

/// What a run says while nothing can pass, in words and for programs.
#[track_caller]
fn said(run: &Run) -> (String, String) {
    let stdout = String::from_utf8_lossy(&run.stdout).into_owned();
    let event = stdout.lines().find(|line| line.contains("\"event\"")).unwrap_or_default();
    (event.to_owned(), run.stderr.clone())
}

/// What was made and never left is no progress.
pub fn progress_without_a_carrier_is_none() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    Links::of(&wire.there)?.set_up("there", false)?;
    let generate = ["generate", "packet:here", "--rate", "1kpps", "--duration", "1500ms", "--json"];
    let run = Wire::run(&wire.here, &generate).expect(0);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let progress = text.lines().find(|line| line.contains("\"progress\"")).unwrap_or_default();
    assert!(progress.contains("\"packets\":0,"), "{text}");
    assert_eq!(number(&run.result(), "transmitted_packets"), 0);
    Ok(())
}

/// Nothing passes, every verb says why, and receivers end well.
pub fn a_missing_carrier_is_said() -> Outcome {
    let directory = tempfile::tempdir()?;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (frames, store) = (at("frames.pcapng"), at("store"));
    Run::of(&["generate", &format!("pcap:{frames}"), "--count", "10"]).expect(0);
    let wire = Wire::new(&VethConfig::default());
    let verbs = [
        (&["receive", "here"][..], "nothing arrives"),
        (&["record", "packet:here", "--to", &store], "nothing arrives"),
        (&["generate", "packet:here", "--rate", "1kpps"], "the kernel takes no frame"),
        (&["replay", &frames, "--onto", "here", "--rate", "max"], "the kernel takes no frame"),
    ];
    let run = |arguments: &[&str], json: &[&str]| {
        Wire::run(&wire.here, &[arguments, &["--duration", "200ms"], json].concat()).expect(0)
    };
    for (arguments, _) in verbs {
        let (event, words) = said(&run(arguments, &["--json"]));
        assert!(!event.contains("carrier") && !words.contains("carrier"), "{event} {words}");
    }
    Links::of(&wire.there)?.set_up("there", false)?;
    for (arguments, meanwhile) in verbs {
        let json = run(arguments, &["--json"]);
        let words = run(arguments, &[]);
        for said in [said(&json).0, said(&words).1] {
            let expected = "no carrier: this end is up, and the far end, interface number ";
            assert!(said.contains(expected) && said.contains(meanwhile), "{said}");
        }
        let result = json.result();
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        if arguments[0] == "generate" {
            let account = &result["ledger"]["accounts"][0];
            assert_eq!(number(&result, "transmitted_packets"), 0);
            assert_eq!(number(&result, "intended_packets"), 200);
            let left = &account["left"];
            let unsent = number(left, "late_packets") + number(left, "ring_full_packets");
            assert_eq!(unsent, 200, "{result}");
            // The interface counts each frame that it has no room for.
            assert!(number(account, "facts.device_refused_packets") > 0, "{result}");
        }
    }
    Ok(())
}

/// What the kernel throws away uncounted while an interface goes down is charged to the interface.
pub fn a_link_that_flaps_is_accounted_for() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let directory = tempfile::tempdir()?;
    let recorder = wire.record_there(&directory.path().join("store").display().to_string());
    let sender = Wire::start(
        &wire.here,
        &["generate", "packet:here", "--rate", "20kpps", "--duration", "3s", "--json"],
    );
    for _ in 0..20 {
        Links::of(&wire.there)?.set_up("there", false)?;
        Links::of(&wire.there)?.set_up("there", true)?;
        std::thread::sleep(Duration::from_millis(90));
    }
    let sent = sender.finish().expect(0).result();
    recorder.signal(Signal::INT);
    let result = recorder.finish().expect(0).result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let account = &result["ledger"]["accounts"][0];
    let device = number(account, "facts.device_packets");
    assert_eq!(device, number(&sent, "transmitted_packets"), "{result}");
    assert_eq!(number(account, "entered.wire_packets"), device, "{result}");
    Ok(())
}
