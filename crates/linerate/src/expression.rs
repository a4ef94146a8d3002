//! A pcap filter expression from the command line, and how it is refused.

use std::io::{self, IsTerminal};

use filter::{Filter, FilterError, Link};

use crate::exit::Usage;
use crate::output::{Output, complain};

/// An expression whose syntax was checked.
#[derive(Clone, Copy)]
pub struct Expression<'a> {
    text: &'a str,
    output: Output,
}

impl<'a> Expression<'a> {
    /// Refuses a text that is none on any link.
    pub fn new(text: &'a str, output: Output) -> Result<Self, Usage> {
        let expression = Self { text, output };
        filter::parse::parse(text).map_err(|error| expression.refuse(&error))?;
        Ok(expression)
    }

    /// As it was written.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// What it means on a link, if it means anything there.
    pub fn on(&self, link: Link) -> Result<Filter, Usage> {
        Filter::new(self.text, link).map_err(|error| self.refuse(&error))
    }

    /// Shows people the place in the text; a script gets the one line that names it.
    fn refuse(&self, error: &FilterError) -> Usage {
        if !self.output.is_json() && io::stderr().is_terminal() {
            complain(&error.pointed(self.text));
        }
        Usage(error.to_string())
    }
}
