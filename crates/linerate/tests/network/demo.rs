//! The demo: what it keeps, and by which rights it makes its network.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use testing::{Outcome, skip};

use crate::program::{Run, command, number};

/// A user without rights.
const NOBODY: u32 = 65_534;

/// What is kept is named by file, and a second demo does not mix its packets with it.
pub fn a_directory_holds_one_demo() -> Outcome {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("kept").display().to_string();
    let (store, found) = (format!("{directory}/store"), format!("{directory}/found.pcapng"));
    let arguments = ["demo", "--count", "1000", "--to", &directory];
    let run = Run::of(&arguments).expect(0);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains(&format!("the recording is in {store}\n")), "{said}");
    assert!(said.contains(&format!("the flow that was found is in {found}\n")), "{said}");
    let held = |path: &str| {
        let result = Run::of(&["find", path, "--json"]).expect(0).result();
        number(&result, "found_packets")
    };
    assert_eq!((held(&store), held(&found)), (1000, 4));
    for left in [&store, &found] {
        let run = Run::of(&arguments).expect(2);
        let why = format!("--to {directory}: {left} is there already");
        assert!(run.stderr.contains(&why), "{run:?}");
        assert!(run.stderr.contains("name another directory or remove it"), "{run:?}");
        assert!(run.stdout.is_empty(), "before a network is made: {run:?}");
        if left == &store {
            assert_eq!((held(&store), held(&found)), (1000, 4));
            fs::remove_dir_all(&store)?;
        }
    }
    fs::remove_file(&found)?;
    let result = Run::of(&[&arguments[..], &["--json"]].concat()).expect(0).result();
    assert_eq!(result["kept"], directory, "{result}");
    assert_eq!((&result["recording"], &result["found"]), (&store.into(), &found.into()));
    let result = Run::of(&["demo", "--count", "1000", "--json"]).expect(0).result();
    for name in ["kept", "recording", "found"] {
        assert!(result.as_object().is_some_and(|fields| fields[name].is_null()), "{result}");
    }
    Ok(())
}

/// A program that its user may not read is not dumpable, as one with file capabilities: its files
/// in /proc are root's, and it enters a user namespace all the same.
pub fn a_process_that_is_not_dumpable_makes_its_network() -> Outcome {
    if let Err(error) = sys::namespace::check_user_namespace() {
        return skip(error);
    }
    let place = tempfile::tempdir()?;
    fs::set_permissions(place.path(), Permissions::from_mode(0o777))?;
    let program = place.path().join("linerate");
    fs::copy(command(&[]).get_program(), &program)?;
    fs::set_permissions(&program, Permissions::from_mode(0o111))?;
    let mut demo = Command::new(&program);
    demo.args(["demo", "--count", "1000", "--json"]).env("TMPDIR", place.path());
    if rustix::process::geteuid().is_root() {
        demo.uid(NOBODY).gid(NOBODY);
    }
    let output = match demo.output() {
        // EINVAL: in a user namespace of an ordinary user there is no second user.
        Err(error) if error.raw_os_error() == Some(22) => return skip("it needs a second user"),
        output => output?,
    };
    let result = Run::from(output).expect(0).result();
    assert_eq!(result["rights"], "user namespace", "{result}");
    assert_eq!(number(&result, "recorded_packets"), 1000, "{result}");
    Ok(())
}
