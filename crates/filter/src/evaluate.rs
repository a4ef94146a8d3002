//! Asks a filter about frames.
//!
//! Most tests look at some bits of bytes at a fixed place, or at one behind an IPv4 header: these
//! are one step each. All others compute their value by a list of operations on a stack.

use crate::condition::{Operand, Relation, Size, Value, ValueId, Values};
use crate::graph::{Graph, Node, Target};
use crate::meaning::{ANCILLARY, INTERFACE, OUTGOING, PACKET_TYPE, operate};
use crate::syntax::Operator;

/// What is asked about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Packet<'a> {
    /// The captured bytes.
    pub data: &'a [u8],
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// Whether it was sent by this machine, where that is known.
    pub outbound: Option<bool>,
    /// Number of the interface, where that is known.
    pub interface: Option<u32>,
}

impl<'a> Packet<'a> {
    /// A packet of which only the bytes are known, all of them.
    pub fn whole(data: &'a [u8]) -> Self {
        Self { data, wire_bytes: data.len() as u32, ..Self::default() }
    }
}

/// End of the filter, as a step's number.
const ACCEPT: u32 = u32::MAX;
const REJECT: u32 = u32::MAX - 1;

/// A graph's nodes, made for being run.
#[derive(Debug, Clone)]
pub(crate) struct Evaluator {
    steps: Vec<Step>,
    operations: Vec<Operation>,
    variables: usize,
    root: u32,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    what: What,
    mask: u32,
    relation: Relation,
    constant: u32,
    yes: u32,
    no: u32,
}

/// What a step looks at.
#[derive(Debug, Clone, Copy)]
enum What {
    Byte {
        offset: u32,
    },
    Half {
        offset: u32,
    },
    Word {
        offset: u32,
    },
    /// Bytes behind the IPv4 header at `header`.
    Behind {
        header: u32,
        offset: u32,
        size: Size,
    },
    /// The value of `operations[first..end]`.
    Computed {
        first: u32,
        end: u32,
    },
    /// Bytes on the wire.
    Length,
    /// Two values, one on top of the other.
    Pair {
        first: u32,
        end: u32,
        relation: Relation,
    },
    /// The variable gets the value.
    Set {
        first: u32,
        end: u32,
        variable: u32,
    },
}

/// What is done to the stack.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Push(u32),
    Length,
    Variable(u32),
    Load {
        offset: u32,
        size: Size,
    },
    /// The place is on the stack.
    LoadAt {
        offset: u32,
        size: Size,
    },
    HeaderBytes {
        offset: u32,
    },
    Binary(Operator),
}

/// Values on the stack, at most: an expression is refused that needs more.
const STACK_MAX: usize = 64;

impl Evaluator {
    pub(crate) fn of(graph: &Graph) -> Self {
        let order = graph.order();
        let mut places = vec![REJECT; graph.nodes.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        let place = |target: Target| match target {
            Target::Accept => ACCEPT,
            Target::Reject => REJECT,
            Target::Node(number) => places[number as usize],
        };
        let mut evaluator = Self {
            steps: Vec::new(),
            operations: Vec::new(),
            variables: 0,
            root: place(graph.root),
        };
        for number in &order {
            let step = match graph.nodes[*number as usize] {
                Node::Test { test, yes, no } => {
                    let (what, constant) = evaluator.what(&graph.values, &test);
                    Step {
                        what,
                        mask: test.mask,
                        relation: test.relation,
                        constant,
                        yes: place(yes),
                        no: place(no),
                    }
                }
                Node::Set { variable, value, next } => {
                    evaluator.variables = evaluator.variables.max(variable.0 as usize + 1);
                    let (first, end) = evaluator.computed(&graph.values, &[value]);
                    let what = What::Set { first, end, variable: variable.0 };
                    let next = place(next);
                    Step {
                        what,
                        mask: u32::MAX,
                        relation: Relation::Equal,
                        constant: 0,
                        yes: next,
                        no: next,
                    }
                }
            };
            evaluator.steps.push(step);
        }
        evaluator
    }

    fn what(&mut self, values: &Values, test: &crate::condition::Test) -> (What, u32) {
        let relation = test.relation;
        let constant = match test.operand {
            Operand::Constant(constant) => constant,
            Operand::Value(operand) => {
                let (first, end) = self.computed(values, &[test.value, operand]);
                return (What::Pair { first, end, relation }, 0);
            }
        };
        let what = match values.get(test.value) {
            Value::Load { at: None, offset, size } if offset < ANCILLARY => match size {
                Size::Byte => What::Byte { offset },
                Size::Half => What::Half { offset },
                Size::Word => What::Word { offset },
            },
            Value::Length => What::Length,
            Value::Load { at: Some(at), offset, size } => match values.get(at) {
                Value::HeaderBytes { offset: header } => What::Behind { header, offset, size },
                _ => self.computation(values, test.value),
            },
            _ => self.computation(values, test.value),
        };
        (what, constant)
    }

    fn computation(&mut self, values: &Values, value: ValueId) -> What {
        let (first, end) = self.computed(values, &[value]);
        What::Computed { first, end }
    }

    fn computed(&mut self, values: &Values, wanted: &[ValueId]) -> (u32, u32) {
        let first = self.operations.len() as u32;
        for value in wanted {
            self.push(values, *value);
        }
        (first, self.operations.len() as u32)
    }

    fn push(&mut self, values: &Values, value: ValueId) {
        let operation = match values.get(value) {
            Value::Constant(constant) => Operation::Push(constant),
            Value::Length => Operation::Length,
            Value::Variable(variable) => {
                self.variables = self.variables.max(variable.0 as usize + 1);
                Operation::Variable(variable.0)
            }
            Value::HeaderBytes { offset } => Operation::HeaderBytes { offset },
            Value::Load { at: None, offset, size } => Operation::Load { offset, size },
            Value::Load { at: Some(at), offset, size } => {
                self.push(values, at);
                Operation::LoadAt { offset, size }
            }
            Value::Operation(operator, left, right) => {
                self.push(values, left);
                self.push(values, right);
                Operation::Binary(operator)
            }
        };
        self.operations.push(operation);
    }

    /// Whether the packet matches.
    pub(crate) fn matches(&self, packet: &Packet<'_>) -> bool {
        if self.variables == 0 {
            self.run(packet, &mut []) == ACCEPT
        } else {
            let mut variables = vec![0; self.variables];
            self.run(packet, &mut variables) == ACCEPT
        }
    }

    /// Runs from the root to the end that is reached.
    fn run(&self, packet: &Packet<'_>, variables: &mut [u32]) -> u32 {
        let data = packet.data;
        let mut at = self.root;
        while let Some(step) = self.steps.get(at as usize) {
            let value = match step.what {
                What::Half { offset } => half(data, offset),
                What::Byte { offset } => byte(data, offset),
                What::Word { offset } => word(data, offset),
                What::Length => Some(packet.wire_bytes),
                What::Behind { header, offset, size } => {
                    let behind = header_bytes(data, header).and_then(|at| at.checked_add(offset));
                    behind.and_then(|at| load(data, at, size))
                }
                What::Computed { first, end } => {
                    self.compute(packet, variables, first, end).map(|pair| pair[0])
                }
                What::Pair { first, end, relation } => {
                    let Some([left, right]) = self.compute(packet, variables, first, end) else {
                        return REJECT;
                    };
                    at = if relation.holds(left & step.mask, right) { step.yes } else { step.no };
                    continue;
                }
                What::Set { first, end, variable } => {
                    let Some([value, _]) = self.compute(packet, variables, first, end) else {
                        return REJECT;
                    };
                    variables[variable as usize] = value;
                    at = step.yes;
                    continue;
                }
            };
            let Some(value) = value else { return REJECT };
            at = match step.relation.holds(value & step.mask, step.constant) {
                true => step.yes,
                false => step.no,
            };
        }
        at
    }

    /// The one or two values that these operations leave; the second one is 0 if there is none.
    fn compute(
        &self,
        packet: &Packet<'_>,
        variables: &[u32],
        first: u32,
        end: u32,
    ) -> Option<[u32; 2]> {
        let mut stack = [0; STACK_MAX];
        let mut top = 0;
        for operation in &self.operations[first as usize..end as usize] {
            let value = match *operation {
                Operation::Push(constant) => constant,
                Operation::Length => packet.wire_bytes,
                Operation::Variable(variable) => variables[variable as usize],
                Operation::Load { offset, size } => load_or_fact(packet, offset, size)?,
                Operation::HeaderBytes { offset } => header_bytes(packet.data, offset)?,
                Operation::LoadAt { offset, size } => {
                    top -= 1;
                    let at: u32 = stack[top];
                    load(packet.data, at.checked_add(offset)?, size)?
                }
                Operation::Binary(operator) => {
                    top -= 2;
                    operate(operator, stack[top], stack[top + 1])?
                }
            };
            stack[top] = value;
            top += 1;
        }
        Some([stack[0], stack[1]])
    }
}

/// Values on the stack that computing these takes, one of them or two.
pub(crate) fn stack_of(values: &Values, value: ValueId) -> usize {
    match values.get(value) {
        Value::Load { at: Some(at), .. } => stack_of(values, at),
        Value::Operation(_, left, right) => stack_of(values, left).max(1 + stack_of(values, right)),
        _ => 1,
    }
}

/// Whether all values of a graph can be computed.
pub(crate) fn fits(graph: &Graph) -> bool {
    graph.nodes.iter().all(|node| match node {
        Node::Set { value, .. } => stack_of(&graph.values, *value) <= STACK_MAX,
        Node::Test { test, .. } => {
            let operand = match test.operand {
                Operand::Value(value) => 1 + stack_of(&graph.values, value),
                Operand::Constant(_) => 0,
            };
            stack_of(&graph.values, test.value).max(operand) <= STACK_MAX
        }
    })
}

#[inline]
fn byte(data: &[u8], offset: u32) -> Option<u32> {
    data.get(offset as usize).map(|byte| u32::from(*byte))
}

#[inline]
fn half(data: &[u8], offset: u32) -> Option<u32> {
    let offset = offset as usize;
    let bytes = data.get(offset..offset + 2)?.first_chunk()?;
    Some(u32::from(u16::from_be_bytes(*bytes)))
}

#[inline]
fn word(data: &[u8], offset: u32) -> Option<u32> {
    // 64 bits have room for this sum.
    let offset = offset as usize;
    Some(u32::from_be_bytes(*data.get(offset..offset + 4)?.first_chunk()?))
}

#[inline]
pub(crate) fn load(data: &[u8], offset: u32, size: Size) -> Option<u32> {
    match size {
        Size::Byte => byte(data, offset),
        Size::Half => half(data, offset),
        Size::Word => word(data, offset),
    }
}

#[inline]
pub(crate) fn header_bytes(data: &[u8], offset: u32) -> Option<u32> {
    byte(data, offset).map(|byte| 4 * (byte & 0xf))
}

/// Bytes of the packet, or beyond them what else is known of it.
pub(crate) fn load_or_fact(packet: &Packet<'_>, offset: u32, size: Size) -> Option<u32> {
    match offset {
        PACKET_TYPE => packet.outbound.map(|outbound| if outbound { OUTGOING } else { 0 }),
        INTERFACE => packet.interface,
        ANCILLARY.. => None,
        _ => load(packet.data, offset, size),
    }
}

#[cfg(test)]
mod tests {
    use super::Packet;
    use crate::{Filter, Link};

    fn matches(text: &str, packet: &Packet<'_>) -> bool {
        Filter::new(text, Link::Ethernet).unwrap().matches(packet)
    }

    /// UDP from port 7 to 53, 42 bytes.
    fn udp() -> [u8; 42] {
        let mut frame = [0; 42];
        (frame[12], frame[14], frame[23]) = (8, 0x45, 17);
        (frame[35], frame[37]) = (7, 53);
        frame
    }

    #[test]
    fn what_lies_behind_the_captured_bytes_matches_nothing() {
        let frame = udp();
        assert!(matches("udp port 53", &Packet::whole(&frame)));
        for text in ["udp port 53", "not udp port 54"] {
            assert!(matches(text, &Packet::whole(&frame[..38])));
            assert!(!matches(text, &Packet::whole(&frame[..37])), "{text}");
        }
        assert!(!matches("ether[42] != 1", &Packet::whole(&frame)));
        assert!(!matches("1 / ip[4] = 1 or ip", &Packet::whole(&frame[..33])));
        assert!(!matches("ip[-1] = 0", &Packet::whole(&frame)));
        assert!(!matches("not ip[4294967295] = 0", &Packet::whole(&frame)));
    }

    #[test]
    fn lengths_are_those_on_the_wire() {
        let frame = udp();
        let packet = Packet { wire_bytes: 1_000, ..Packet::whole(&frame) };
        assert!(matches("len = 1000 and greater 1000 and not less 999", &packet));
        assert!(matches("len = 42", &Packet::whole(&frame)));
    }

    #[test]
    fn what_is_not_known_of_a_packet_matches_nothing() {
        let frame = udp();
        let known = Packet { outbound: Some(true), interface: Some(3), ..Packet::whole(&frame) };
        assert!(matches("outbound and ifindex 3 and not inbound", &known));
        let inbound = Packet { outbound: Some(false), ..known };
        assert!(matches("inbound and not outbound and not ifindex 4", &inbound));
        for text in ["inbound", "outbound", "not inbound", "ifindex 0", "not ifindex 0"] {
            assert!(!matches(text, &Packet::whole(&frame)), "{text}");
        }
    }

    #[test]
    fn headers_move_with_the_length_of_ipv4() {
        let mut frame = [0; 62];
        frame[..34].copy_from_slice(&udp()[..34]);
        frame[14] = 0x4a;
        frame[57] = 53;
        assert!(matches("udp dst port 53", &Packet::whole(&frame)));
        frame[14] = 0x45;
        assert!(!matches("udp dst port 53", &Packet::whole(&frame)));
    }
}
