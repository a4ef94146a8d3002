//! An expression's filters: one for each kind of link that packets come from.

use std::io::{self, IsTerminal};

use filter::{Filter, FilterError, Link, Packet};
use store::record::{Interface, LinkType};

use crate::exit::Usage;
use crate::output::{Output, complain};

/// Made of one expression.
pub(super) struct Filters<'a> {
    text: &'a str,
    output: Output,
    of: Vec<(Link, Filter)>,
    /// By interface of a capture, the number of its link's filter.
    by_interface: Vec<Result<usize, LinkType>>,
}

impl<'a> Filters<'a> {
    /// Refuses a text that is none on any link.
    pub(super) fn new(text: &'a str, output: Output) -> Result<Self, Usage> {
        let filters = Self { text, output, of: Vec::new(), by_interface: Vec::new() };
        match filter::parse::parse(text) {
            Ok(_) => Ok(filters),
            Err(error) => Err(filters.refuse(&error)),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.text
    }

    /// Each link that was asked for, with its filter.
    pub(super) fn all(&self) -> impl Iterator<Item = (Link, &Filter)> {
        self.of.iter().map(|(link, filter)| (*link, filter))
    }

    /// The number of the filter for a link.
    pub(super) fn of(&mut self, link: Link) -> Result<usize, Usage> {
        if let Some(number) = self.of.iter().position(|(known, _)| *known == link) {
            return Ok(number);
        }
        let filter = Filter::new(self.text, link).map_err(|error| self.refuse(&error))?;
        self.of.push((link, filter));
        Ok(self.of.len() - 1)
    }

    /// Learns of the interfaces of a capture that are new.
    pub(super) fn learn(&mut self, interfaces: &[Interface]) -> Result<(), Usage> {
        for interface in interfaces.iter().skip(self.by_interface.len()) {
            let number = match Link::of_number(interface.link_type.0) {
                Some(link) => Ok(self.of(link)?),
                // No harm is done unless a packet is of it.
                None => Err(interface.link_type),
            };
            self.by_interface.push(number);
        }
        Ok(())
    }

    /// Whether interface `number` is known.
    pub(super) fn knows(&self, interface: u32) -> bool {
        (interface as usize) < self.by_interface.len()
    }

    /// Whether a packet of an interface matches; its link type, if there are no filters for it.
    pub(super) fn matches(&self, interface: u32, packet: &Packet<'_>) -> Result<bool, LinkType> {
        let number = self.by_interface.get(interface as usize).copied();
        let filter = self.of.get(number.transpose()?.unwrap_or(usize::MAX));
        Ok(filter.is_some_and(|(_, filter)| filter.matches(packet)))
    }

    /// Shows people the place in the text; a script gets the one line that names it.
    fn refuse(&self, error: &FilterError) -> Usage {
        if !self.output.is_json() && io::stderr().is_terminal() {
            complain(&error.pointed(self.text));
        }
        Usage(error.to_string())
    }
}
