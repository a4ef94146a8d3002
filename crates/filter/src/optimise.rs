//! Leaves out of a graph what is known already.
//!
//! At each node those facts are known that hold on all ways to it. Where an edge's facts answer the
//! test that it leads to, the edge leads past it; that makes ways fewer and facts more, so it is
//! repeated until nothing changes. A test whose value may lie beyond the captured bytes is
//! passed only where the same bytes were read before: otherwise it could have ended the filter.

mod answers;
mod facts;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use crate::condition::{Test, Values};
use crate::graph::{Graph, Node, Target};

use answers::Answers;
use facts::Facts;

/// Rounds at most; each shortens some way.
const ROUNDS_MAX: usize = 64;

/// Improves `graph`; every frame is answered as before.
pub fn optimise(graph: &mut Graph) {
    by::<Facts>(graph);
}

/// Whether no frame can match by what libpcap's optimiser knows, which is less than ours does: it then
/// refuses the expression. It sees less still of expressions that set variables: never, then.
pub(crate) fn is_plainly_empty(mut graph: Graph) -> bool {
    if graph.nodes.iter().any(|node| matches!(node, Node::Set { .. })) {
        return false;
    }
    by::<Answers>(&mut graph);
    graph.root == Target::Reject
}

/// What is known on all ways to a node.
trait Knowledge: Clone + Default {
    /// Whether asking `test` cannot end the filter here.
    fn may_pass(&self, values: &Values, test: &Test) -> bool;

    /// What is known behind `node`, whose number is given, if its answer is `answer`.
    fn after(&self, values: &Values, number: u32, node: &Node, answer: bool) -> Self;

    /// What both know.
    fn common(&self, other: &Self) -> Self;

    /// The answer of `test`, if it is known.
    fn answer(&self, test: &Test) -> Option<bool>;
}

fn by<K: Knowledge>(graph: &mut Graph) {
    graph.compact();
    for _ in 0..ROUNDS_MAX {
        if !thread::<K>(graph) {
            break;
        }
        graph.compact();
    }
}

/// Lets each edge lead as far as its facts allow. Whether any changed.
fn thread<K: Knowledge>(graph: &mut Graph) -> bool {
    let order = graph.order();
    let mut facts: Vec<Option<Rc<K>>> = vec![None; graph.nodes.len()];
    let mut is_changed = false;
    let start = Rc::new(K::default());
    let root = lead(graph, graph.root, &*start);
    is_changed |= root != graph.root;
    graph.root = root;
    arrive(&mut facts, root, &start);
    for number in order {
        let Some(known) = facts[number as usize].clone() else { continue };
        let node = graph.nodes[number as usize];
        let outgoing = |answer| Rc::new(known.after(&graph.values, number, &node, answer));
        let after = [outgoing(true), outgoing(false)];
        let mut which = 0;
        let mut edges = Vec::with_capacity(2);
        let threaded = node.map(|target| {
            let target = lead(graph, target, &*after[which]);
            edges.push((target, which));
            which += 1;
            target
        });
        for (target, which) in edges {
            arrive(&mut facts, target, &after[which]);
        }
        is_changed |= threaded != node;
        graph.nodes[number as usize] = threaded;
    }
    is_changed
}

fn arrive<K: Knowledge>(facts: &mut [Option<Rc<K>>], target: Target, known: &Rc<K>) {
    let Target::Node(number) = target else { return };
    let place = &mut facts[number as usize];
    *place = Some(match place.take() {
        None => known.clone(),
        Some(before) => Rc::new(before.common(known)),
    });
}

/// Where `target` leads if `known` holds.
fn lead(graph: &Graph, mut target: Target, known: &impl Knowledge) -> Target {
    while let Target::Node(number) = target {
        let Node::Test { test, yes, no } = graph.nodes[number as usize] else { break };
        if !known.may_pass(&graph.values, &test) {
            break;
        }
        target = match known.answer(&test) {
            Some(true) => yes,
            Some(false) => no,
            None if yes == no => yes,
            None => break,
        };
    }
    target
}
