//! Answers that were given on all ways to a node: what libpcap's optimiser goes by.

use std::collections::BTreeMap;

use super::Knowledge;
use crate::condition::{Operand, Relation, Test, Values};
use crate::graph::Node;

/// Tests and their answers, by the node that asked: one that was asked by different nodes on
/// different ways is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    of: BTreeMap<u32, (Test, bool)>,
}

impl Knowledge for Answers {
    /// A load beyond the captured bytes is no match either: to pass it makes no filter emptier.
    fn may_pass(&self, _: &Values, _: &Test) -> bool {
        true
    }

    fn after(&self, _: &Values, number: u32, node: &Node, answer: bool) -> Self {
        let mut after = self.clone();
        match *node {
            Node::Test { test, .. } => {
                after.of.insert(number, (test, answer));
            }
            // Whatever is known of values that depend on the variable ends here.
            Node::Set { .. } => after.of.clear(),
        }
        after
    }

    fn common(&self, other: &Self) -> Self {
        let both = self.of.iter().filter(|(number, _)| other.of.contains_key(number));
        let agreed = both.filter(|(number, known)| other.of.get(number) == Some(known));
        Self { of: agreed.map(|(number, known)| (*number, *known)).collect() }
    }

    fn answer(&self, test: &Test) -> Option<bool> {
        if let (Operand::Constant(_), 0) = (test.operand, test.mask) {
            return test.answer(0);
        }
        self.of.values().find_map(|(known, answer)| {
            if known == test {
                return Some(*answer);
            }
            let is_other = (known.value, known.mask) == (test.value, test.mask)
                && *answer
                && equals_constant(known)
                && equals_constant(test);
            is_other.then_some(false)
        })
    }
}

/// Whether libpcap compares by `jeq` with a constant; bits that are not set are asked by `jset`.
fn equals_constant(test: &Test) -> bool {
    let is_bits = test.mask != u32::MAX && test.operand == Operand::Constant(0);
    test.relation == Relation::Equal && matches!(test.operand, Operand::Constant(_)) && !is_bits
}
