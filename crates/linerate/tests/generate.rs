//! What `generate` makes of its options, on files, without any rights.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use program::{Run, capture, number};

#[test]
fn the_same_seed_makes_the_same_frames() {
    let options = ["--src", "random:10.0.0.0/8", "--size", "random:60-1514", "--seed", "77"];
    let frames = |path: &str| {
        let mut reader = store::CaptureReader::open(path).unwrap();
        let mut frames = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            // All but the time in the stamp, and the transport checksum that covers it.
            let mut data = record.data.to_vec();
            data[52..60].fill(0);
            data[40..42].fill(0);
            frames.push(data);
        }
        frames
    };
    let (_one, first) = capture(300, &options);
    let (_two, second) = capture(300, &options);
    assert_eq!(frames(&first), frames(&second));
    let (_three, other) = capture(300, &["--src", "random:10.0.0.0/8", "--seed", "78"]);
    assert_ne!(frames(&first), frames(&other));
}

/// Without `--size` a frame is the smallest that holds its headers and its stamp.
#[test]
fn the_size_follows_from_the_headers() {
    for (options, bytes) in [
        (&[][..], 60),
        (&["--vlan", "10"], 64),
        (&["--vlan", "10,20", "--mpls", "16"], 72),
        (&["--proto", "tcp", "--dst", "2001:2::1"], 92),
        (&["--stamp", "none", "--proto", "tcp"], 60),
    ] {
        let (_directory, path) = capture(3, options);
        let mut reader = store::CaptureReader::open(path).unwrap();
        while let Some(record) = reader.next_record().unwrap() {
            assert_eq!(record.data.len(), bytes, "{options:?}");
        }
    }
    Run::of(&["generate", "null:", "--count", "1", "--size", "60", "--vlan", "10"]).expect(2);
}

#[test]
fn a_rate_is_kept_and_its_layer_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let port = format!("pcap:{}", directory.path().join("x.pcapng").display());
    let run = Run::of(&["generate", &port, "--rate", "10Mbps/l1", "--duration", "300ms"]).expect(0);
    assert!(String::from_utf8_lossy(&run.stdout).contains("layer 1"), "{run:?}");
    let run = Run::of(&["generate", "null:", "--rate", "1kpps", "--duration", "1s", "--json"])
        .expect(0)
        .result();
    // Over a second 1,000 frames are due, the first one at once.
    let late = number(&run, "pacing.late_packets");
    let sent = number(&run, "transmitted_packets");
    assert!(sent.abs_diff(1_000) <= 2 + late, "{run}");
}
