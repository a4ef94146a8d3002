//! Frames of a recording that the port cannot take.

use std::path::Path;

use program::number;
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
        program::Run::of(&["replay", &path, "--onto", &onto, "--json"]).expect(0).result()
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
