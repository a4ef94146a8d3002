//! Asks a filter about up to 64 frames at once.
//!
//! Step by step, not frame by frame: each value that the filter looks at is a *column* with a cell for
//! every frame (its *lane*), which is filled for those lanes alone that come to need it, and once.
//! Each step has a set of lanes that have come to it, as bits, and parts them by one comparison of a
//! whole column. What is decided per frame by an interpreter, and often guessed wrong by the CPU, is so
//! decided once for all of them.

use crate::condition::{Operand, Relation, Size, Test, Value, ValueId, Values};
use crate::evaluate::{Packet, header_bytes, load, load_or_fact};
use crate::graph::{Graph, Node, Target};
use crate::meaning::{ANCILLARY, operate};
use crate::syntax::Operator;

/// Packets that are asked about at once.
pub const BATCH_PACKETS_MAX: usize = 64;

/// As many lanes are compared one by one sooner than all of them at once.
const FEW: u32 = 4;

type Column = [u32; BATCH_PACKETS_MAX];

/// A filter that is asked about batches: it keeps the memory that this takes.
#[derive(Debug, Clone)]
pub struct Batch {
    steps: Vec<Step>,
    /// Numbers of columns, each behind those that it is computed from.
    needs: Vec<u32>,
    sources: Vec<Source>,
    columns: Vec<Column>,
    /// Lanes of each column that are filled,
    known: Vec<u64>,
    /// and those that could not be: their frames do not match.
    failed: Vec<u64>,
    /// Lanes that have come to each step.
    reached: Vec<u64>,
    root: End,
}

/// Where lanes go.
#[derive(Debug, Clone, Copy)]
enum End {
    Accept,
    Reject,
    Step(u32),
}

#[derive(Debug, Clone)]
struct Step {
    /// Columns to fill: `needs[first..end]`.
    first: u32,
    end: u32,
    action: Action,
    yes: End,
    no: End,
}

#[derive(Debug, Clone)]
enum Action {
    /// Whether bits of a column are within a range.
    Ask { column: u32, range: Range },
    /// How bits of a column compare with another one.
    Compare { left: u32, mask: u32, relation: Relation, right: u32 },
    /// A column becomes the variable's; those that depend on it are not known any more.
    Set { variable: u32, value: u32, dependents: Vec<u32> },
}

/// From `low` to `span` more than it, looking at the bits of `mask`.
#[derive(Debug, Clone, Copy)]
struct Range {
    mask: u32,
    low: u32,
    span: u32,
}

impl Range {
    /// What bits under `mask` stand in `relation` to `constant`.
    fn of(mask: u32, relation: Relation, constant: u32) -> Self {
        let from = |low: u32| Self { mask, low, span: u32::MAX - low };
        match (relation, constant) {
            (Relation::Equal, _) => Self { mask, low: constant, span: 0 },
            (Relation::GreaterEqual, _) => from(constant),
            // Nothing is: no bit is 1.
            (Relation::Greater, u32::MAX) => Self { mask: 0, low: 1, span: 0 },
            (Relation::Greater, _) => from(constant + 1),
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy)]
enum Source {
    Constant(u32),
    Length,
    Byte(u32),
    Half(u32),
    Word(u32),
    Fact { offset: u32, size: Size },
    LoadAt { at: u32, offset: u32, size: Size },
    HeaderBytes(u32),
    Binary(Operator, u32, u32),
    Variable,
}

/// Columns by value.
struct Builder<'a> {
    values: &'a Values,
    /// By number of a value.
    column_of: Vec<Option<u32>>,
    value_of: Vec<ValueId>,
    sources: Vec<Source>,
}

impl Builder<'_> {
    fn column(&self, value: ValueId) -> u32 {
        self.column_of.get(value.0 as usize).copied().flatten().unwrap_or(0)
    }

    /// Adds the columns that `wanted` takes; returns them, each behind what it is computed from.
    fn needs(&mut self, wanted: &[ValueId]) -> Vec<u32> {
        // A value's parts have smaller numbers than itself.
        let mut open: std::collections::BTreeSet<ValueId> = wanted.iter().copied().collect();
        let mut all = Vec::new();
        while let Some(value) = open.pop_last() {
            all.push(value);
            match self.values.get(value) {
                Value::Load { at: Some(at), .. } => open.extend([at]),
                Value::Operation(_, left, right) => open.extend([left, right]),
                _ => {}
            }
        }
        all.iter().rev().map(|value| self.add(*value)).collect()
    }

    fn add(&mut self, value: ValueId) -> u32 {
        if let Some(column) = self.column_of[value.0 as usize] {
            return column;
        }
        let source = match self.values.get(value) {
            Value::Constant(constant) => Source::Constant(constant),
            Value::Length => Source::Length,
            Value::Variable(_) => Source::Variable,
            Value::HeaderBytes { offset } => Source::HeaderBytes(offset),
            Value::Load { at: None, offset: offset @ ANCILLARY.., size } => {
                Source::Fact { offset, size }
            }
            Value::Load { at: None, offset, size } => match size {
                Size::Byte => Source::Byte(offset),
                Size::Half => Source::Half(offset),
                Size::Word => Source::Word(offset),
            },
            Value::Load { at: Some(at), offset, size } => {
                Source::LoadAt { at: self.column(at), offset, size }
            }
            Value::Operation(operator, left, right) => {
                Source::Binary(operator, self.column(left), self.column(right))
            }
        };
        let column = self.sources.len() as u32;
        self.sources.push(source);
        self.value_of.push(value);
        self.column_of[value.0 as usize] = Some(column);
        column
    }
}

impl Batch {
    pub(crate) fn of(graph: &Graph) -> Self {
        let order = graph.order();
        let mut places = vec![0; graph.nodes.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        let end = |target: Target| match target {
            Target::Accept => End::Accept,
            Target::Reject => End::Reject,
            Target::Node(number) => End::Step(places[number as usize]),
        };
        let mut builder = Builder {
            values: &graph.values,
            column_of: vec![None; graph.values.count()],
            value_of: Vec::new(),
            sources: Vec::new(),
        };
        let (mut steps, mut needs, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for number in &order {
            let node = graph.nodes[*number as usize];
            let wanted = match node {
                Node::Test { test: Test { value, operand: Operand::Value(other), .. }, .. } => {
                    vec![value, other]
                }
                Node::Test { test, .. } => vec![test.value],
                Node::Set { value, .. } => vec![value],
            };
            let first = needs.len() as u32;
            needs.extend(builder.needs(&wanted));
            let action = match node {
                Node::Test { test, .. } => ask(&builder, &test),
                Node::Set { variable, value, .. } => {
                    set.push((steps.len(), variable));
                    Action::Set {
                        variable: graph
                            .values
                            .find(Value::Variable(variable))
                            .map_or(u32::MAX, |variable| builder.add(variable)),
                        value: builder.column(value),
                        dependents: Vec::new(),
                    }
                }
            };
            let [yes, no] = node.targets().map(end);
            steps.push(Step { first, end: needs.len() as u32, action, yes, no });
        }
        // Which those are is known when all columns are.
        for (place, set_variable) in set {
            if let Action::Set { variable, dependents, .. } = &mut steps[place].action {
                let depends = |column: &u32| {
                    let value = builder.value_of[*column as usize];
                    *column != *variable && graph.values.depends_on(value, set_variable)
                };
                *dependents = (0..builder.sources.len() as u32).filter(depends).collect();
            }
        }
        let columns = builder.sources.len();
        Self {
            reached: vec![0; steps.len()],
            steps,
            needs,
            sources: builder.sources,
            columns: vec![[0; BATCH_PACKETS_MAX]; columns],
            known: vec![0; columns],
            failed: vec![0; columns],
            root: end(graph.root),
        }
    }

    /// Which packets match: bit N is set if packet N does. Those behind the 64th are not looked at.
    pub fn matches(&mut self, packets: &[Packet<'_>]) -> u64 {
        let packets = &packets[..packets.len().min(BATCH_PACKETS_MAX)];
        let all = match packets.len() {
            0 => return 0,
            count => u64::MAX >> (BATCH_PACKETS_MAX - count),
        };
        self.known.fill(0);
        self.failed.fill(0);
        let mut accepted = 0;
        match self.root {
            End::Accept => return all,
            End::Reject => return 0,
            End::Step(root) => self.reached[root as usize] = all,
        }
        for place in 0..self.steps.len() {
            // Also for the next batch.
            let lanes = std::mem::take(&mut self.reached[place]);
            if lanes == 0 {
                continue;
            }
            for need in self.steps[place].first..self.steps[place].end {
                let column = self.needs[need as usize] as usize;
                let missing = lanes & !self.known[column];
                if missing != 0 {
                    self.fill(column, missing, packets);
                }
            }
            let (yes, no) = self.part(place, lanes);
            let step = &self.steps[place];
            for (lanes, end) in [(yes, step.yes), (no, step.no)] {
                match end {
                    End::Accept => accepted |= lanes,
                    End::Reject => {}
                    End::Step(next) => self.reached[next as usize] |= lanes,
                }
            }
        }
        accepted
    }

    /// Lanes that go on by yes, and by no.
    fn part(&mut self, place: usize, lanes: u64) -> (u64, u64) {
        match &self.steps[place].action {
            Action::Ask { column, range } => {
                let column = *column as usize;
                let lanes = lanes & !self.failed[column];
                let answers = within(&self.columns[column], lanes, *range);
                (lanes & answers, lanes & !answers)
            }
            Action::Compare { left, mask, relation, right } => {
                let (left, right) = (*left as usize, *right as usize);
                let answers = compared(&self.columns[left], *mask, *relation, &self.columns[right]);
                let lanes = lanes & !(self.failed[left] | self.failed[right]);
                (lanes & answers, lanes & !answers)
            }
            Action::Set { variable, value, dependents } => {
                let lanes = lanes & !self.failed[*value as usize];
                let values = self.columns[*value as usize];
                // One that is never read has no column.
                if let Some(column) = self.columns.get_mut(*variable as usize) {
                    for lane in Lanes(lanes) {
                        column[lane] = values[lane];
                    }
                    self.known[*variable as usize] |= lanes;
                }
                for column in dependents {
                    self.known[*column as usize] &= !lanes;
                    self.failed[*column as usize] &= !lanes;
                }
                (lanes, 0)
            }
        }
    }

    /// Fills `lanes` of a column from packets or from columns that are filled there.
    fn fill(&mut self, number: usize, lanes: u64, packets: &[Packet<'_>]) {
        // What a column is computed from stands before it.
        let (before, from_here) = self.columns.split_at_mut(number);
        let Some(to) = from_here.first_mut() else { return };
        let failed = match self.sources[number] {
            Source::Constant(constant) => {
                to.fill(constant);
                0
            }
            Source::Length => each(lanes, packets, to, |packet| Some(packet.wire_bytes)),
            Source::Byte(offset) => {
                each(lanes, packets, to, |packet| load(packet.data, offset, Size::Byte))
            }
            Source::Half(offset) => {
                each(lanes, packets, to, |packet| load(packet.data, offset, Size::Half))
            }
            Source::Word(offset) => {
                each(lanes, packets, to, |packet| load(packet.data, offset, Size::Word))
            }
            Source::Fact { offset, size } => {
                each(lanes, packets, to, |packet| load_or_fact(packet, offset, size))
            }
            Source::HeaderBytes(offset) => {
                each(lanes, packets, to, |packet| header_bytes(packet.data, offset))
            }
            Source::LoadAt { at, offset, size } => {
                let at = at as usize;
                let places = &before[at];
                let without = lanes & self.failed[at];
                without
                    | each_lane(lanes & !without, to, |lane| {
                        load(packets.get(lane)?.data, places[lane].checked_add(offset)?, size)
                    })
            }
            Source::Binary(operator, left, right) => {
                let (left, right) = (left as usize, right as usize);
                let without = lanes & (self.failed[left] | self.failed[right]);
                let (left, right) = (&before[left], &before[right]);
                without
                    | each_lane(lanes & !without, to, |lane| {
                        operate(operator, left[lane], right[lane])
                    })
            }
            // Until it is set.
            Source::Variable => each_lane(lanes, to, |_| Some(0)),
        };
        self.known[number] |= lanes;
        self.failed[number] |= failed;
    }
}

fn ask(builder: &Builder<'_>, test: &Test) -> Action {
    let (column, mask) = (builder.column(test.value), test.mask);
    match test.operand {
        Operand::Constant(constant) => {
            Action::Ask { column, range: Range::of(mask, test.relation, constant) }
        }
        Operand::Value(operand) => Action::Compare {
            left: column,
            mask,
            relation: test.relation,
            right: builder.column(operand),
        },
    }
}

/// Numbers of the bits that are set.
struct Lanes(u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        // Never more; the mask spares a look at the bounds.
        let lane = self.0.trailing_zeros() as usize & (BATCH_PACKETS_MAX - 1);
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// Fills `lanes` from their packets; returns those that have no value.
#[inline]
fn each<'a>(
    lanes: u64,
    packets: &[Packet<'a>],
    column: &mut Column,
    value: impl Fn(&Packet<'a>) -> Option<u32>,
) -> u64 {
    if lanes.count_ones() as usize != packets.len() {
        return each_lane(lanes, column, |lane| packets.get(lane).and_then(&value));
    }
    let mut failed = 0;
    for (lane, (packet, cell)) in packets.iter().zip(column).enumerate() {
        match value(packet) {
            Some(value) => *cell = value,
            None => failed |= 1 << lane,
        }
    }
    failed
}

/// Fills `lanes`; returns those that have no value.
#[inline]
fn each_lane(lanes: u64, column: &mut Column, value: impl Fn(usize) -> Option<u32>) -> u64 {
    let mut failed = 0;
    for lane in Lanes(lanes) {
        match value(lane) {
            Some(value) => column[lane] = value,
            None => failed |= 1 << lane,
        }
    }
    failed
}

/// Lanes whose bits are within the range; what it says of others than `lanes` means nothing.
fn within(column: &Column, lanes: u64, range: Range) -> u64 {
    let Range { mask, low, span } = range;
    if lanes.count_ones() <= FEW {
        let is_within = |lane: &usize| (column[*lane] & mask).wrapping_sub(low) <= span;
        return Lanes(lanes).filter(is_within).fold(0, |answers, lane| answers | 1 << lane);
    }
    let mut answers = [0; BATCH_PACKETS_MAX];
    // Without a span there is a shorter way, which most tests take.
    if span == 0 {
        for (answer, value) in answers.iter_mut().zip(column) {
            *answer = u8::from(value & mask == low);
        }
    } else {
        for (answer, value) in answers.iter_mut().zip(column) {
            *answer = u8::from((value & mask).wrapping_sub(low) <= span);
        }
    }
    bits(&answers)
}

fn compared(left: &Column, mask: u32, relation: Relation, right: &Column) -> u64 {
    let mut answers = [0; BATCH_PACKETS_MAX];
    for (answer, (left, right)) in answers.iter_mut().zip(left.iter().zip(right)) {
        *answer = u8::from(relation.holds(left & mask, *right));
    }
    bits(&answers)
}

/// Zeros and ones as bits, the first one lowest.
fn bits(answers: &[u8; BATCH_PACKETS_MAX]) -> u64 {
    let (eights, _) = answers.as_chunks::<8>();
    let mut bits = 0;
    for (place, eight) in eights.iter().enumerate() {
        // Moves the lowest bit of byte N to bit 56 + N.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= gathered << (8 * place);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Link};

    #[test]
    fn answers_are_gathered_in_order() {
        for lane in 0..BATCH_PACKETS_MAX {
            let mut answers = [0; BATCH_PACKETS_MAX];
            answers[lane] = 1;
            assert_eq!(bits(&answers), 1 << lane);
        }
        assert_eq!(bits(&[1; BATCH_PACKETS_MAX]), u64::MAX);
    }

    #[test]
    fn batches_of_any_size_are_answered_one_by_one() {
        let frames: Vec<[u8; 20]> = (0..70).map(|number| [number; 20]).collect();
        let packets: Vec<Packet<'_>> = frames.iter().map(|frame| Packet::whole(frame)).collect();
        for text in ["ether[3] = 5 or ether[19] > 60", "ether[25] = 0 or len = 20", "", "len < 3"] {
            let filter = Filter::new(text, Link::Ethernet).unwrap();
            let mut batch = filter.batch();
            for count in [0, 1, 2, 63, 64, 70] {
                let answers = batch.matches(&packets[..count]);
                for (lane, packet) in packets[..count].iter().take(64).enumerate() {
                    assert_eq!(answers >> lane & 1 == 1, filter.matches(packet), "{text} {lane}");
                }
                assert!(count >= 64 || answers >> count == 0);
            }
        }
    }
}
