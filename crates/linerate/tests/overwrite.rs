//! What is recorded is not written over.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use program::{Run, capture};

#[test]
fn no_verb_writes_over_a_recording() {
    let (directory, path) = capture(50, &[]);
    let at = |name: &str| directory.path().join(name).display().to_string();
    let store = at("store");
    let recorded = Run::of(&["record", &format!("pcap:{path}"), "--to", &store, "--json"]);
    let recorded = recorded.expect(0).result();
    let segment = recorded["segments"][0]["path"].as_str().unwrap();
    let index = segment.replace(".pcapng", ".time-index");
    std::os::unix::fs::symlink(segment, at("link.pcapng")).unwrap();
    let before = [segment, &index].map(|file| std::fs::read(file).unwrap());
    for target in [
        segment,
        &index,
        &at("link.pcapng"),
        // Such a one would be taken for an unfinished segment.
        &at("store/s00-000007.open.pcapng"),
        &at("store/.s00.lock"),
    ] {
        let port = format!("pcap:{target}");
        for arguments in [
            &["generate", &port, "--count", "1"][..],
            &["find", &path, "--write", target],
            &["replay", &path, "--onto", &port, "--rate", "max"],
        ] {
            let run = Run::of(arguments).expect(2);
            let expected = format!("writing {target}: it has the name of a segment");
            assert!(run.stderr.contains(&expected), "{arguments:?}: {}", run.stderr);
        }
    }
    assert!(before == [segment, &index].map(|file| std::fs::read(file).unwrap()));
    // A second name of the segment becomes that of a new file.
    let hard = at("hard.pcapng");
    std::fs::hard_link(segment, &hard).unwrap();
    Run::of(&["generate", &format!("pcap:{hard}"), "--count", "3"]).expect(0);
    assert!(before == [segment, &index].map(|file| std::fs::read(file).unwrap()));
    assert!(Run::of(&["find", &hard]).expect(0).stderr.contains("3 of 3 packets"));
    // The name alone, where nobody records, is anybody's.
    let port = format!("pcap:{}", at("host-s1-2.pcapng"));
    for _ in 0..2 {
        Run::of(&["generate", &port, "--count", "1"]).expect(0);
    }
}
