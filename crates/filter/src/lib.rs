//! The pcap filter language: from an expression to a condition, to a graph of tests, to an evaluator
//! and to classic BPF.
//!
//! | step | module |
//! |---|---|
//! | text to tokens | [`token`] |
//! | tokens to a tree | [`parse`] |
//! | a tree's meaning on a link | `meaning` |
//! | tests, joined | [`condition`] |
//! | a graph of tests, and what is superfluous in it | [`graph`], [`optimise`] |
//! | asking it about packets, one by one or up to 64 at once | `evaluate`, `batch` |
//! | a graph in words | `words` |
//! | instructions for libpcap and the kernel | [`program`] |
//!
//! # Example
//!
//! ```
//! use filter::{Filter, Link, Packet};
//!
//! let filter = Filter::new("udp port 53 and not ip6", Link::Raw)?;
//! let mut packet = [0; 28];
//! packet[0] = 0x45;
//! packet[9] = 17;
//! packet[23] = 53;
//! assert!(filter.matches(&Packet::whole(&packet)));
//! # Ok::<(), filter::FilterError>(())
//! ```
//!
//! # What an expression means
//!
//! What libpcap 1.10 says that it means; pcap-filter(7) is its manual. Two things surprise there and
//! are so here too. A test that looks beyond the captured bytes ends the filter without a match, even
//! under `not`. And `vlan`, `mpls`, `pppoes` and `geneve` move the headers for all tests behind
//! them in the text, not only for those that are joined to them by `and`.
//!
//! # Limits
//!
//! Links: Ethernet, raw IP, Linux cooked capture v1 and v2. Refused by name: `protochain` (it needs a loop),
//! `gateway`, and the tests for ATM, SS7, 802.11, ARCnet and pf's log. At most 400 levels within each other.

#![forbid(unsafe_code)]

mod batch;
pub mod condition;
mod error;
mod evaluate;
pub mod graph;
mod keyword;
mod link;
mod meaning;
mod names;
pub mod optimise;
pub mod parse;
pub mod program;
pub mod syntax;
pub mod token;
mod words;

pub use batch::{BATCH_PACKETS_MAX, Batch};
pub use error::{FilterError, Result};
pub use evaluate::Packet;
pub use link::Link;
pub use names::{Names, PortName, SystemNames};
pub use program::{Instruction, Program};

use evaluate::Evaluator;
use graph::{Graph, Target};

/// What an expression may need to know beyond its text.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Where names are looked up.
    pub names: &'a dyn Names,
    /// The netmask of the network whose broadcast addresses `ip broadcast` means.
    pub netmask: Option<u32>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { names: &SystemNames, netmask: None }
    }
}

/// An expression, ready to be asked about packets of a link.
#[derive(Debug, Clone)]
pub struct Filter {
    graph: Graph,
    evaluator: Evaluator,
}

impl Filter {
    /// Compiles `text`; an empty one matches every packet.
    ///
    /// # Errors
    ///
    /// What libpcap refuses is refused: bad syntax, unknown names, numbers out of range, tests
    /// that the link does not have, and expressions that no packet can match, as far as libpcap's
    /// optimiser finds that out (`ip and arp`). Where it takes more than equal tests and different
    /// constants to see it (`ip[0] > 5 and ip[0] < 3`), the filter is accepted and matches nothing.
    pub fn new(text: &str, link: Link) -> Result<Self> {
        Self::with(text, link, &Options::default())
    }

    /// As [`Self::new`], with names and netmask from `options`.
    pub fn with(text: &str, link: Link, options: &Options<'_>) -> Result<Self> {
        let mut graph = match parse::parse(text)? {
            None => Graph::accepting(),
            Some(expression) => {
                let meaning = meaning::of(&expression, link, options.netmask, options.names)?;
                Graph::of(meaning.values, &meaning.condition)
            }
        };
        let whole = || 0..text.len();
        if !evaluate::fits(&graph) {
            let message = "this expression's arithmetic is nested too deeply";
            return Err(FilterError::new(whole(), message));
        }
        let written = graph.clone();
        optimise::optimise(&mut graph);
        if graph.root == Target::Reject && optimise::is_plainly_empty(written) {
            return Err(FilterError::new(whole(), "no packet can match this expression"));
        }
        Ok(Self { evaluator: Evaluator::of(&graph), graph })
    }

    /// Whether the packet matches.
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        self.evaluator.matches(packet)
    }

    /// The same filter for batches of packets, which it is asked about at less cost for each.
    pub fn batch(&self) -> Batch {
        Batch::of(&self.graph)
    }

    /// The filter as classic BPF, for libpcap's machine and, up to
    /// [`program::KERNEL_INSTRUCTIONS_MAX`], for the kernel's. `None` if its arithmetic needs more words of
    /// memory than that machine has.
    pub fn program(&self) -> Option<Program> {
        Program::of(&self.graph)
    }

    /// The tests that it consists of.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}
