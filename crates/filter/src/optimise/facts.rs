//! What holds at a node: bits, bounds and exclusions of values, on all ways to it.

use std::collections::HashMap;

use super::Knowledge;
use crate::condition::{Operand, Relation, Test, Value, ValueId, Values};
use crate::graph::Node;

/// What is known of one value.
#[derive(Debug, Clone, PartialEq)]
struct Fact {
    /// Bits that are known, and which they are.
    known: u32,
    bits: u32,
    /// Bounds, both included.
    least: u32,
    most: u32,
    /// What the value is not, under masks.
    not: Vec<(u32, u32)>,
    /// Answers of tests against other values.
    answers: Vec<(Test, bool)>,
}

impl Default for Fact {
    fn default() -> Self {
        Self { known: 0, bits: 0, least: 0, most: u32::MAX, not: Vec::new(), answers: Vec::new() }
    }
}

/// What holds on a way through the graph, by value. A value with an entry has been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    of: HashMap<ValueId, Fact>,
}

impl Knowledge for Facts {
    fn may_pass(&self, values: &Values, test: &Test) -> bool {
        self.is_read(values, test.value)
            && match test.operand {
                Operand::Constant(_) => true,
                Operand::Value(value) => self.is_read(values, value),
            }
    }

    fn after(&self, values: &Values, _: u32, node: &Node, answer: bool) -> Self {
        let mut facts = self.clone();
        match node {
            Node::Test { test, .. } => {
                facts.read(values, test.value);
                if let Operand::Value(value) = test.operand {
                    facts.read(values, value);
                }
                facts.of.entry(test.value).or_default().learn(test, answer);
            }
            Node::Set { variable, value, .. } => {
                facts.read(values, *value);
                facts.of.retain(|value, _| !values.depends_on(*value, *variable));
                for fact in facts.of.values_mut() {
                    fact.answers.retain(|(test, _)| match test.operand {
                        Operand::Value(value) => !values.depends_on(value, *variable),
                        Operand::Constant(_) => true,
                    });
                }
            }
        }
        facts
    }

    fn common(&self, other: &Self) -> Self {
        let (small, large) =
            if self.of.len() <= other.of.len() { (self, other) } else { (other, self) };
        let both = small.of.iter().filter_map(|(value, fact)| {
            large.of.get(value).map(|other| (*value, fact.common(other)))
        });
        Self { of: both.collect() }
    }

    fn answer(&self, test: &Test) -> Option<bool> {
        match self.of.get(&test.value) {
            Some(fact) => fact.answer(test),
            None => Fact::default().answer(test),
        }
    }
}

impl Facts {
    /// Whether computing `value` cannot end the filter here.
    fn is_read(&self, values: &Values, value: ValueId) -> bool {
        self.of.contains_key(&value) || !values.can_fail(value)
    }

    /// Notes that a value, and all that it is made of, is there.
    fn read(&mut self, values: &Values, value: ValueId) {
        self.of.entry(value).or_default();
        match values.get(value) {
            Value::Load { at: Some(at), .. } => self.read(values, at),
            Value::Operation(_, left, right) => {
                self.read(values, left);
                self.read(values, right);
            }
            _ => {}
        }
    }
}

impl Fact {
    fn learn(&mut self, test: &Test, answer: bool) {
        let Operand::Constant(constant) = test.operand else {
            self.answers.push((*test, answer));
            return;
        };
        match (test.relation, answer) {
            (Relation::Equal, true) => {
                self.known |= test.mask;
                self.bits = self.bits & !test.mask | constant & test.mask;
            }
            (Relation::Equal, false) => self.not.push((test.mask, constant)),
            _ if test.mask != u32::MAX => self.answers.push((*test, answer)),
            (Relation::Greater, true) => self.least = self.least.max(constant.saturating_add(1)),
            (Relation::Greater, false) => self.most = self.most.min(constant),
            (Relation::GreaterEqual, true) => self.least = self.least.max(constant),
            (Relation::GreaterEqual, false) => {
                self.most = self.most.min(constant.saturating_sub(1));
            }
        }
    }

    fn answer(&self, test: &Test) -> Option<bool> {
        if let Some((_, answer)) = self.answers.iter().find(|(known, _)| known == test) {
            return Some(*answer);
        }
        let Operand::Constant(constant) = test.operand else { return None };
        if test.mask & !self.known == 0 {
            return test.answer(self.bits & test.mask);
        }
        match test.relation {
            Relation::Equal => self.is_excluded(test.mask, constant).then_some(false),
            _ if test.mask != u32::MAX => None,
            Relation::Greater if self.least > constant => Some(true),
            Relation::Greater if self.most <= constant => Some(false),
            Relation::GreaterEqual if self.least >= constant => Some(true),
            Relation::GreaterEqual if self.most < constant => Some(false),
            _ => None,
        }
    }

    /// Whether the value's bits under `mask` cannot be `constant`.
    fn is_excluded(&self, mask: u32, constant: u32) -> bool {
        let differs = (self.bits ^ constant) & self.known & mask != 0;
        let is_known_not = self.not.iter().any(|(other_mask, other)| {
            // Equal under `mask` would make it equal under a part of it.
            other_mask & !mask == 0 && constant & other_mask == *other
        });
        let out_of_bounds = mask == u32::MAX && (constant < self.least || constant > self.most);
        differs || is_known_not || out_of_bounds
    }

    fn common(&self, other: &Self) -> Self {
        let known = self.known & other.known & !(self.bits ^ other.bits);
        let not = self.not.iter().filter(|(mask, constant)| {
            other.not.contains(&(*mask, *constant)) || other.is_excluded(*mask, *constant)
        });
        let others_not = other.not.iter().filter(|(mask, constant)| {
            !self.not.contains(&(*mask, *constant)) && self.is_excluded(*mask, *constant)
        });
        Self {
            known,
            bits: self.bits & known,
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            not: not.chain(others_not).copied().collect(),
            answers: self
                .answers
                .iter()
                .filter(|answer| other.answers.contains(answer))
                .copied()
                .collect(),
        }
    }
}
