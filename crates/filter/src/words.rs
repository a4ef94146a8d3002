//! A graph in words: its tests, one a line, in the order in which they are asked.

use std::fmt;

use crate::condition::{Operand, Relation, Size, Test, Value, ValueId};
use crate::graph::{Graph, Node, Target};
use crate::meaning::{INTERFACE, PACKET_TYPE};
use crate::syntax::Operator;

/// `1: half[12] = 0x800; yes: 2, no: reject`. Values are bytes of the frame in network order:
/// `byte[23]`, `half[ip(14) + 2]` behind the IPv4 header at byte 14, `len` on the wire.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = self.order();
        let mut lines = vec![0; self.nodes.len()];
        for (line, number) in order.iter().enumerate() {
            lines[*number as usize] = line + 1;
        }
        let place = |target| match target {
            Target::Accept => "accept".to_string(),
            Target::Reject => "reject".to_string(),
            Target::Node(number) => lines[number as usize].to_string(),
        };
        if !matches!(self.root, Target::Node(_)) {
            return writeln!(f, "{}", place(self.root));
        }
        for (line, number) in order.iter().enumerate() {
            let line = line + 1;
            match self.nodes[*number as usize] {
                Node::Test { test, yes, no } => {
                    let (yes, no) = (place(yes), place(no));
                    writeln!(f, "{line}: {}; yes: {yes}, no: {no}", self.test(&test))?;
                }
                Node::Set { variable, value, next } => {
                    let value = self.value(value);
                    writeln!(f, "{line}: v{} := {value}; then: {}", variable.0, place(next))?;
                }
            }
        }
        Ok(())
    }
}

impl Graph {
    fn test(&self, test: &Test) -> String {
        let mask =
            if test.mask == u32::MAX { String::new() } else { format!(" & {:#x}", test.mask) };
        let relation = match test.relation {
            Relation::Equal => "=",
            Relation::Greater => ">",
            Relation::GreaterEqual => ">=",
        };
        let operand = match test.operand {
            Operand::Constant(constant) => number(constant),
            Operand::Value(value) => self.value(value),
        };
        format!("{}{mask} {relation} {operand}", self.value(test.value))
    }

    fn value(&self, id: ValueId) -> String {
        match self.values.get(id) {
            Value::Constant(constant) => number(constant),
            Value::Length => "len".into(),
            Value::Load { at: None, offset: PACKET_TYPE, .. } => "packet type".into(),
            Value::Load { at: None, offset: INTERFACE, .. } => "interface".into(),
            Value::Load { at, offset, size } => {
                let size = match size {
                    Size::Byte => "byte",
                    Size::Half => "half",
                    Size::Word => "word",
                };
                // An offset that wraps leads back.
                let place = match (at, offset.cast_signed()) {
                    (None, _) => offset.to_string(),
                    (Some(at), 0) => self.value(at),
                    (Some(at), back @ ..0) => {
                        format!("{} - {}", self.value(at), back.unsigned_abs())
                    }
                    (Some(at), _) => format!("{} + {offset}", self.value(at)),
                };
                format!("{size}[{place}]")
            }
            Value::HeaderBytes { offset } => format!("ip({offset})"),
            Value::Operation(operator, left, right) => {
                format!("({} {} {})", self.value(left), sign(operator), self.value(right))
            }
            Value::Variable(variable) => format!("v{}", variable.0),
        }
    }
}

/// Small ones as people count, others as they stand in headers.
fn number(number: u32) -> String {
    if number < 256 { number.to_string() } else { format!("{number:#x}") }
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::Mod => "%",
        Operator::And => "&",
        Operator::Or => "|",
        Operator::Xor => "^",
        Operator::ShiftLeft => "<<",
        Operator::ShiftRight => ">>",
    }
}

#[cfg(test)]
mod tests {
    use crate::{Filter, Link};

    fn words(text: &str) -> String {
        Filter::new(text, Link::Ethernet).unwrap().graph().to_string()
    }

    #[test]
    fn tests_are_told_in_order() {
        assert_eq!(words(""), "accept\n");
        assert_eq!(words("ip"), "1: half[12] = 0x800; yes: accept, no: reject\n");
        assert_eq!(
            words("ip[0] & 0xf > 5"),
            "1: half[12] = 0x800; yes: 2, no: reject\n\
             2: (byte[14] & 15) > 5; yes: accept, no: reject\n"
        );
        let udp = words("ip and udp dst port 53");
        assert!(udp.contains("byte[23] = 17;"), "{udp}");
        assert!(udp.contains("half[20] & 0x1fff = 0;"), "{udp}");
        assert!(udp.ends_with("half[ip(14) + 16] = 53; yes: accept, no: reject\n"), "{udp}");
        assert!(words("geneve").contains("v0 := "), "{}", words("geneve"));
        assert!(words("len / (2 + ip[0]) > 300").contains("(len / (2 + byte[14])) > 0x12c"));
        assert_eq!(words("ip[0] > 5 and ip[0] < 3"), "reject\n");
    }
}
