//! The pages of the documentation and the examples in them.

use std::path::{Path, PathBuf};

/// The folder of the documentation, beside the sources when the test runs.
pub fn docs() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    Path::new(&package.unwrap_or(env!("CARGO_MANIFEST_DIR").into())).join("../../docs")
}

pub fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(docs())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// The commands in the `console` blocks of a page, without the word `linerate`.
pub fn examples(text: &str) -> Vec<Vec<String>> {
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
