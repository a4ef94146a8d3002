//! The examples of the documentation, run as they are written.
//!
//! Each page of docs/ is run from top to bottom in a directory of its own: every line of a `console`
//! block that begins with `$ linerate`. Lines that name eth0 need an interface that a test must not
//! touch; those on packet ports run in the tests of the program on its own network.
#![allow(clippy::unwrap_used, clippy::panic)]

mod program;

use std::path::{Path, PathBuf};

use program::{Run, command, number};

/// The folder of the documentation, beside the sources when the test runs.
fn docs() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    Path::new(&package.unwrap_or(env!("CARGO_MANIFEST_DIR").into())).join("../../docs")
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(docs())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// The commands in the `console` blocks of a page, without the word `linerate`.
fn examples(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.trim() {
            "```console" => inside = true,
            "```" => inside = false,
            line if inside => {
                if let Some(arguments) = line.strip_prefix("$ linerate ") {
                    commands.push(arguments.split_whitespace().map(str::to_owned).collect());
                }
            }
            _ => {}
        }
    }
    commands
}

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
    for page in ["generate", "receive", "record", "find", "replay", "demo", "doctor"] {
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
