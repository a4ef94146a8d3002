//! The examples of the documentation, run as they are written.
//!
//! Each page of docs/ is run from top to bottom in a directory of its own: every line of a `console`
//! block that begins with `$ linerate`. Lines that name eth0 run in the tests of the program on a network
//! of its own (`network/pages.rs`), as README.md does.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "program/pages.rs"]
mod pages;
mod program;

use pages::{docs, examples, pages};
use program::{Run, command, number};

#[test]
fn examples_run_as_they_are_written() {
    let mut count = 0;
    for page in pages() {
        let directory = tempfile::tempdir().unwrap();
        for example in examples(&std::fs::read_to_string(&page).unwrap()) {
            if example.iter().any(|word| word.contains("eth0")) {
                continue;
            }
            let arguments: Vec<&str> = example.iter().map(String::as_str).collect();
            let output = command(&arguments).current_dir(directory.path()).output().unwrap();
            let run = Run::from(output);
            assert_eq!(run.code, Some(0), "{}: {example:?}: {}", page.display(), run.stderr);
            count += 1;
        }
    }
    assert!(count >= 8, "only {count} examples were found");
}

#[test]
fn every_verb_has_its_page() {
    let help = Run::of(&["--help"]).expect(0);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for page in ["generate", "receive", "record", "find", "filter", "replay", "demo", "doctor"] {
        assert!(text.contains(page));
        assert!(pages().iter().any(|path| path.ends_with(format!("{page}.md"))), "{page}");
    }
}

#[test]
fn documented_fields_are_there() {
    let result = Run::of(&["generate", "null:", "--count", "7", "--json"]).expect(0).result();
    assert_eq!(number(&result, "transmitted_packets"), 7);
    let page = std::fs::read_to_string(docs().join("json.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| `generate`")).unwrap();
    for field in row.split('`').skip(3).step_by(2) {
        assert!(result.get(field).is_some(), "{field} is documented and not in {result}");
    }
}
