//! Interface names that were mistyped.

use std::io;

use crate::Error;

/// The error for an interface that does not exist: the remedy names those that are written
/// similarly, or else all that there are.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    let near: Vec<&str> = known.iter().copied().filter(|known| is_near(name, known)).collect();
    let remedy = match (near.as_slice(), known.as_slice()) {
        ([], []) => "there is no interface here that could be used".to_string(),
        ([], all) => format!("interfaces here: {}", all.join(", ")),
        (near, all) => {
            format!("did you mean {}? Interfaces here: {}", near.join(" or "), all.join(", "))
        }
    };
    Error::new(
        format!("looking up the interface {name}"),
        io::Error::from_raw_os_error(libc::ENODEV),
    )
    .remedy(remedy)
}

/// Near is: the same but for case, one a beginning of the other, or at most a third of the
/// letters (and at least one) edited.
fn is_near(asked: &str, known: &str) -> bool {
    let (asked, known) = (asked.to_lowercase(), known.to_lowercase());
    let allowed = (known.len() / 3).max(1);
    let begins = !asked.is_empty() && (known.starts_with(&asked) || asked.starts_with(&known));
    begins || edits(&asked, &known) <= allowed
}

/// Levenshtein's distance in characters.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (above, other) in row.iter_mut().skip(1).zip(&to) {
            let here = (diagonal + usize::from(letter != *other)).min(left + 1).min(*above + 1);
            diagonal = *above;
            *above = here;
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn distances() {
        for (from, to, distance) in [
            ("", "", 0),
            ("", "lo", 2),
            ("eth0", "eth0", 0),
            ("eht0", "eth0", 2),
            ("enp3s0", "enp3s1", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edits(from, to), distance, "{from} {to}");
            assert_eq!(edits(to, from), distance, "{to} {from}");
        }
    }

    #[test]
    fn near_names_come_first_and_all_follow() {
        let known = ["lo", "enp3s0f0", "enp3s0f1", "docker0"];
        let error = unknown("enp3s0f", known.into_iter());
        assert_eq!(error.kind(), Kind::NotFound);
        assert!(error.to_string().ends_with(
            "did you mean enp3s0f0 or enp3s0f1? Interfaces here: lo, enp3s0f0, enp3s0f1, docker0"
        ));
        let error = unknown("wlan7", known.into_iter());
        assert!(error.to_string().ends_with("; interfaces here: lo, enp3s0f0, enp3s0f1, docker0"));
    }
}
