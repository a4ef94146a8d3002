//! Frames of a recording that the port cannot take.

use std::path::Path;

use program::{Run, command, number};
use serde_json::json;
use store::{Interface, LinkType, PcapngWriter, Record, Section};
use sys::link::Links;
use sys::veth::VethConfig;

use crate::{Outcome, Wire, program};

/// A capture of frames of these lengths.
fn capture(path: &Path, lengths: impl IntoIterator<Item = usize>) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
    for (number, length) in lengths.into_iter().enumerate() {
        let data = vec![2; length];
        writer.write_record(&Record::new(1_000_000 + number as u64, &data)).unwrap();
    }
    writer.finish().unwrap();
}

/// One frame of a merged segment, or a piece of one, keeps no other from being sent.
pub fn frames_that_do_not_fit_are_left_out() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("frames.pcapng");
    let bad = |number: usize| match number {
        20 | 90 => Some(65_226),
        50 => Some(10),
        _ => None,
    };
    capture(&path, (0..103).map(|number| bad(number).unwrap_or(60 + number)));
    let good_bytes: u64 = (0..103).filter(|it| bad(*it).is_none()).map(|it| 60 + it as u64).sum();
    let wire = Wire::new(&VethConfig::default());
    let path = path.display().to_string();
    let mut received = 0;
    for pace in [&[][..], &["--rate", "max"], &["--rate", "100kpps"]] {
        let replay = ["replay", &path, "--onto", "packet:here"];
        let run = Wire::run(&wire.here, &[&replay[..], pace, &["--json"]].concat()).expect(4);
        let result = run.result();
        let account = &result["ledger"]["accounts"][1];
        let left = &account["left"];
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert_eq!(number(account, "entered.intended_packets"), 103, "{result}");
        assert_eq!(number(left, "transmitted_packets"), 100, "{result}");
        assert_eq!(number(left, "transmitted_bytes"), good_bytes, "{result}");
        assert_eq!(number(left, "rejected_packets"), 3, "{result}");
        assert_eq!(number(&result["ledger"], "lost_packets"), 3, "{result}");
        assert_eq!(number(&result, "replayed_packets"), 100);
        assert!(result["error"].is_null(), "{result}");
        let unfit = json!({
            "packets": 3, "bytes": 130_462, "longest_bytes": 65_226, "shortest_bytes": 10,
        });
        assert_eq!(result["unfit"], unfit);
        received += 100;
        let far = Links::of(&wire.there)?.named("there")?.statistics;
        assert_eq!(far.rx_packets, received);
        let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), run.stderr);
        assert!(!said.contains("--size"), "{said}");
        let words = "not sent, since packet:here takes frames of 14 to 1,514 bytes: 3 packets of 10 to \
                     65,226 bytes; raise the MTU of here, 1500 bytes, or record";
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
    // Where they fit, nothing is left out.
    let result = {
        let onto = format!("pcap:{}", directory.path().join("again.pcapng").display());
        Run::of(&["replay", &path, "--onto", &onto, "--json"]).expect(0).result()
    };
    assert_eq!(number(&result, "replayed_packets"), 103, "{result}");
    assert!(result["unfit"].is_null(), "{result}");
    Ok(())
}

/// What is left out comes before damage to the capture in the exit code, and what was sent comes first.
pub fn a_damaged_capture_of_frames_that_do_not_fit() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cut.pcapng");
    let wire = Wire::new(&VethConfig::default());
    for (lengths, code) in [([60, 60, 60], 6), ([60, 2_000, 60], 4)] {
        capture(&path, lengths);
        let bytes = std::fs::read(&path)?;
        std::fs::write(&path, &bytes[..bytes.len() - 20])?;
        let path = path.display().to_string();
        let replay = ["replay", &path, "--onto", "packet:here", "--json"];
        let result = Wire::run(&wire.here, &replay).expect(code).result();
        assert_eq!(result["problems"].as_array().map(Vec::len), Some(1), "{result}");
    }
    Ok(())
}

/// A wire whose near end takes frames that the far one refuses.
fn unequal() -> Wire {
    let wire = Wire::new(&VethConfig { mtu_bytes: 9_000, ..VethConfig::default() });
    Links::of(&wire.there).unwrap().set_mtu("there", 1_500).unwrap();
    wire
}

/// What a far end with a smaller MTU refuses is named, and the remedy with it; nothing waits for it.
pub fn frames_that_the_far_end_refuses_are_rejected() -> Outcome {
    let wire = unequal();
    let remedy = "raise the MTU of the far end, there, 1500 bytes";
    let generate = |size: &str| {
        let arguments = ["generate", "packet:here", "--count", "10", "--size", size, "--json"];
        Wire::run(&wire.here, &arguments)
    };
    let run = generate("4000").expect(4);
    let said = "a frame of 4000 bytes is longer than the 1518 bytes that the port takes";
    assert!(run.stderr.contains(said) && run.stderr.contains(remedy), "{}", run.stderr);
    let result = run.result();
    let left = &result["ledger"]["accounts"][0]["left"];
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let figures = ["transmitted_packets", "rejected_packets", "ring_full_packets", "late_packets"];
    assert_eq!(figures.map(|name| number(left, name)), [0, 10, 0, 0], "{result}");
    // A tag's length is allowed on top, with or without a tag.
    generate("1519").expect(4);
    assert_eq!(number(&generate("1518").expect(0).result(), "transmitted_packets"), 10);

    let directory = tempfile::tempdir()?;
    let path = directory.path().join("frames.pcapng");
    capture(&path, (0..103).map(|number| if number % 40 == 10 { 4_000 } else { 1_518 }));
    let replay = ["replay", &path.display().to_string(), "--onto", "packet:here", "--json"];
    let run = Wire::run(&wire.here, &replay).expect(4);
    let result = run.result();
    let left = &result["ledger"]["accounts"][1]["left"];
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert_eq!(figures.map(|name| number(left, name)), [100, 3, 0, 0], "{result}");
    assert_eq!(result["unfit"]["longest_bytes"], 4_000);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(said.matches(remedy).count(), 1, "{said}");
    let (near, far) =
        (Links::of(&wire.here)?.named("here")?, Links::of(&wire.there)?.named("there")?);
    assert_eq!((near.statistics.tx_packets, near.statistics.tx_dropped), (110, 0));
    assert_eq!(far.statistics.rx_packets, 110);
    Ok(())
}

/// An MTU that sinks at the far end while frames are sent ends a run that would wait without end.
pub fn a_far_end_whose_mtu_sinks_is_noticed() -> Outcome {
    let wire = Wire::new(&VethConfig { mtu_bytes: 9_000, ..VethConfig::default() });
    let generate = ["generate", "packet:here", "--size", "4000", "--rate", "1kpps", "--json"];
    let run = Wire::start(&wire.here, &generate);
    Links::of(&wire.there)?.set_mtu("there", 1_500)?;
    let run = run.finish().expect(4);
    assert!(run.stderr.contains("raise the MTU of the far end, there, 1500 bytes"), "{run:?}");
    let result = run.result();
    let left = &result["ledger"]["accounts"][0]["left"];
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert!(number(left, "transmitted_packets") > 0, "{result}");
    assert!(number(left, "rejected_packets") > 0, "{result}");
    let far = Links::of(&wire.there)?.named("there")?.statistics;
    assert_eq!(far.rx_packets, number(left, "transmitted_packets"), "{result}");
    Ok(())
}

/// Where the far end is out of sight, its MTU is named as what may be wrong.
pub fn a_far_end_out_of_sight_may_be_why() -> Outcome {
    let wire = unequal();
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("frames.pcapng");
    capture(&path, [4_000; 10]);
    let path = path.display().to_string();
    let program = command(&[]).get_program().to_owned();
    for verb in [
        &["generate", "packet:here", "--size", "4000", "--count", "10"][..],
        &["replay", &path, "--onto", "packet:here", "--rate", "max"],
    ] {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"]).arg(&program);
        command.args(verb).args(["--duration", "200ms", "--json"]);
        let output = match wire.here.run(|| command.output())? {
            Err(error) => return testing::skip(format!("setpriv: {error}")),
            Ok(output) => output,
        };
        let result = Run::from(output).expect(0).result();
        let account = result["ledger"]["accounts"].as_array().and_then(|it| it.last()).unwrap();
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert_eq!(number(account, "left.transmitted_packets"), 0, "{result}");
        let left = &account["left"];
        let unsent = number(left, "ring_full_packets") + number(left, "late_packets");
        assert_eq!(unsent, 10, "{result}");
        assert!(number(account, "facts.device_refused_packets") > 0, "{result}");
        let advice = result["advice"].as_str().unwrap();
        assert!(advice.contains("may have a smaller MTU than 9000"), "{advice}");
    }
    Ok(())
}
