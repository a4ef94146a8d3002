//! A condition as a graph of tests without loops: every answer leads to another test or to the end.

use std::collections::HashMap;

use crate::condition::{Condition, Test, ValueId, Values, Variable};
use crate::syntax::Joint;

/// Where an answer leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The frame matches.
    Accept,
    /// It does not.
    Reject,
    /// To this node.
    Node(u32),
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A question.
    Test {
        /// Which.
        test: Test,
        /// Where yes leads.
        yes: Target,
        /// Where no leads.
        no: Target,
    },
    /// A variable gets a value.
    Set {
        /// Which.
        variable: Variable,
        /// What value.
        value: ValueId,
        /// What follows.
        next: Target,
    },
}

impl Node {
    /// Where it leads: twice the same, if to one place only.
    pub fn targets(&self) -> [Target; 2] {
        match *self {
            Self::Test { yes, no, .. } => [yes, no],
            Self::Set { next, .. } => [next, next],
        }
    }

    /// The same step with other targets.
    pub fn map(self, mut map: impl FnMut(Target) -> Target) -> Self {
        match self {
            Self::Test { test, yes, no } => Self::Test { test, yes: map(yes), no: map(no) },
            Self::Set { variable, value, next } => Self::Set { variable, value, next: map(next) },
        }
    }
}

/// Nodes, each once, of which each leads to ones with smaller numbers only.
#[derive(Debug, Clone)]
pub struct Graph {
    /// What the nodes' numbers of values stand for.
    pub values: Values,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Where to begin.
    pub root: Target,
}

impl Graph {
    /// The graph of a condition.
    pub fn of(values: Values, condition: &Condition) -> Self {
        let mut builder = Builder::default();
        let root = builder.lower(condition, Target::Accept, Target::Reject);
        Self { values, nodes: builder.nodes, root }
    }

    /// The graph of a filter that every frame matches.
    pub fn accepting() -> Self {
        Self { values: Values::default(), nodes: Vec::new(), root: Target::Accept }
    }

    /// Numbers of the nodes that are reached, the first one first, each before those it leads to.
    pub fn order(&self) -> Vec<u32> {
        let mut is_reached = vec![false; self.nodes.len()];
        if let Target::Node(root) = self.root {
            is_reached[root as usize] = true;
        }
        let mut order = Vec::new();
        for number in (0..self.nodes.len()).rev() {
            if is_reached[number] {
                order.push(number as u32);
                for target in self.nodes[number].targets() {
                    if let Target::Node(next) = target {
                        is_reached[next as usize] = true;
                    }
                }
            }
        }
        order
    }

    /// Leaves out what is not reached, and keeps equal nodes once.
    pub fn compact(&mut self) {
        let mut builder = Builder::default();
        let mut moved = vec![Target::Reject; self.nodes.len()];
        let place = |moved: &[Target], target: Target| match target {
            Target::Node(number) => moved[number as usize],
            end => end,
        };
        for number in self.order().into_iter().rev() {
            let node = self.nodes[number as usize].map(|target| place(&moved, target));
            moved[number as usize] = builder.node(node);
        }
        self.root = place(&moved, self.root);
        self.nodes = builder.nodes;
    }
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    numbers: HashMap<Node, u32>,
}

impl Builder {
    fn node(&mut self, node: Node) -> Target {
        if let Node::Test { yes: Target::Reject, no: Target::Reject, .. } = node {
            // Whatever its answer, and whether it has one.
            return Target::Reject;
        }
        Target::Node(*self.numbers.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        }))
    }

    /// The way into `condition` if it leads to `yes` where it is met and to `no` elsewhere.
    fn lower(&mut self, condition: &Condition, yes: Target, no: Target) -> Target {
        match condition {
            Condition::Always => yes,
            Condition::Never => no,
            Condition::Test(test) => self.node(Node::Test { test: *test, yes, no }),
            Condition::Set(variable, value) => {
                self.node(Node::Set { variable: *variable, value: *value, next: yes })
            }
            Condition::Not(inner) => self.lower(inner, no, yes),
            Condition::And(parts) => {
                parts.iter().rev().fold(yes, |next, part| self.lower(part, next, no))
            }
            Condition::Or(parts) => {
                parts.iter().rev().fold(no, |next, part| self.lower(part, yes, next))
            }
            Condition::Chain(first, joined) => {
                let (mut yes, mut no) = (yes, no);
                for (joint, part) in joined.iter().rev() {
                    let entry = self.lower(part, yes, no);
                    match joint {
                        Joint::And => yes = entry,
                        Joint::Or => no = entry,
                    }
                }
                self.lower(first, yes, no)
            }
        }
    }
}
