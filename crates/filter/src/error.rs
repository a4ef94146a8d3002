//! Why an expression is no filter, and where in its text.

use std::ops::Range;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, FilterError>;

/// An expression that cannot be used, with the place in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter, character {}: {message}", .span.start + 1)]
pub struct FilterError {
    /// Bytes of the text that are meant; empty and at its end if something is missing there.
    pub span: Range<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl FilterError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// The text with a line of carets under the place.
    pub fn pointed(&self, text: &str) -> String {
        let line: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let before = text.get(..self.span.start).map_or(0, |text| text.chars().count());
        let meant = text.get(self.span.clone()).map_or(0, |text| text.chars().count());
        format!("{line}\n{}{}", " ".repeat(before), "^".repeat(meant.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_under_what_is_meant() {
        let error = FilterError::new(5..9, "unknown");
        assert_eq!(error.pointed("host\tabcd"), "host abcd\n     ^^^^");
        assert_eq!(error.to_string(), "filter, character 6: unknown");
        assert_eq!(FilterError::new(4..4, "missing").pointed("port"), "port\n    ^");
    }
}
