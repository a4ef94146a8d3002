//! Recordings whose files are taken away.

use std::time::Duration;

use program::number;
use rustix::process::Signal;
use sys::veth::VethConfig;

use crate::{Outcome, Wire, program};

/// A recording whose segment is cut under it keeps what is left and counts the rest.
pub fn a_segment_that_is_cut_is_said() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("store");
    let recorder = wire.record_there(&store.display().to_string());
    let generate = ["generate", "packet:here", "--count", "1000", "--rate", "10kpps"];
    Wire::run(&wire.here, &generate).expect(0);
    std::thread::sleep(Duration::from_millis(1500));
    let open =
        std::fs::OpenOptions::new().write(true).open(store.join("s00-000001.open.pcapng"))?;
    open.set_len(0)?;
    std::thread::sleep(Duration::from_millis(1500));
    Wire::run(&wire.here, &generate).expect(0);
    recorder.signal(Signal::INT);
    let run = recorder.finish().expect(5);
    let result = run.result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert_eq!(number(&result, "recorded_packets"), 1000, "{result}");
    assert_eq!(program::packets_in_segments(&result), 1000);
    let left = &result["ledger"]["accounts"][1]["left"];
    assert_eq!(number(left, "storage_packets"), 1000, "{result}");
    let events = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(events.contains("was cut while it was recorded to"), "{events}");
    Ok(())
}

/// A recording whose directory is removed or moved under it does not end as if all were there.
pub fn a_removed_directory_is_said() -> Outcome {
    let wire = Wire::new(&VethConfig::default());
    let generate = ["generate", "packet:here", "--count", "1000", "--rate", "10kpps"];
    for (is_moved, stored, said) in
        [(false, 0, "was removed while it was recorded to"), (true, 1000, "could not be sealed")]
    {
        let directory = tempfile::tempdir()?;
        let store = directory.path().join("store");
        let recorder = wire.record_there(&store.display().to_string());
        Wire::run(&wire.here, &generate).expect(0);
        std::thread::sleep(Duration::from_millis(1500));
        if is_moved {
            std::fs::rename(&store, directory.path().join("moved"))?;
        } else {
            std::fs::remove_dir_all(&store)?;
        }
        std::thread::sleep(Duration::from_millis(1500));
        recorder.signal(Signal::INT);
        let run = recorder.finish().expect(5);
        let result = run.result();
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert_eq!(number(&result, "recorded_packets"), stored, "{result}");
        let left = &result["ledger"]["accounts"][1]["left"];
        assert_eq!(number(left, "storage_packets"), 1000 - stored, "{result}");
        let events = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(events.contains(said), "{events}");
    }
    Ok(())
}
