//! Arithmetic on a packet's bytes, and comparisons of it.

use super::Compiler;
use super::link_type::IPV6;
use super::protocol::ICMPV6;
use crate::condition::{Condition, Operand, Relation, Size, Test, Value, ValueId};
use crate::error::{FilterError, Result};
use crate::syntax::{Arithmetic, Comparison, Operator, Protocol};

/// A number and what must hold for it to be there.
struct Number {
    guard: Option<Condition>,
    value: ValueId,
}

/// Registers of libpcap, each a word of the classic machine's memory. An expression that
/// needs more of them at a time is refused.
const REGISTERS: u32 = 16;

impl Compiler<'_> {
    pub(super) fn relation(
        &mut self,
        left: &Arithmetic,
        comparison: Comparison,
        right: &Arithmetic,
    ) -> Result<Condition> {
        let left = self.number(left)?;
        let right = self.number(right)?;
        self.registers -= 2;
        let mut parts: Vec<Condition> = left.guard.into_iter().chain(right.guard).collect();
        parts.push(match comparison {
            Comparison::Equal => self.compared(left.value, Relation::Equal, right.value),
            Comparison::NotEqual => !self.compared(left.value, Relation::Equal, right.value),
            Comparison::Greater => self.compared(left.value, Relation::Greater, right.value),
            Comparison::GreaterEqual => {
                self.compared(left.value, Relation::GreaterEqual, right.value)
            }
            Comparison::Less => !self.compared(left.value, Relation::GreaterEqual, right.value),
            Comparison::LessEqual => !self.compared(left.value, Relation::Greater, right.value),
        });
        Ok(Condition::And(parts))
    }

    /// A test with the constant, if there is one, on its right side.
    fn compared(&mut self, left: ValueId, relation: Relation, right: ValueId) -> Condition {
        let test = |value, relation, operand| {
            Condition::Test(Test { value, mask: u32::MAX, relation, operand })
        };
        match (self.values.constant(left), self.values.constant(right)) {
            (Some(left), Some(right)) => {
                let holds = match relation {
                    Relation::Equal => left == right,
                    Relation::Greater => left > right,
                    Relation::GreaterEqual => left >= right,
                };
                if holds { Condition::Always } else { Condition::Never }
            }
            (_, Some(right)) => test(left, relation, Operand::Constant(right)),
            (Some(left), None) => {
                let operand = Operand::Constant(left);
                match relation {
                    Relation::Equal => test(right, Relation::Equal, operand),
                    Relation::Greater => !test(right, Relation::GreaterEqual, operand),
                    Relation::GreaterEqual => !test(right, Relation::Greater, operand),
                }
            }
            (None, None) => test(left, relation, Operand::Value(right)),
        }
    }

    fn number(&mut self, arithmetic: &Arithmetic) -> Result<Number> {
        Ok(match arithmetic {
            Arithmetic::Number(number) => self.plain(Value::Constant(*number))?,
            Arithmetic::Length => self.plain(Value::Length)?,
            Arithmetic::Negative(inner) => {
                let inner = self.number(inner)?;
                let zero = self.values.id(Value::Constant(0));
                let value = self.folded(Operator::Sub, zero, inner.value);
                Number { guard: inner.guard, value }
            }
            Arithmetic::Binary { operator, left, right, span } => {
                let first = first_number(right);
                let left = self.number(left)?;
                let right = self.number(right)?;
                self.registers -= 1;
                if let Some(first) = first {
                    check_right_side(*operator, first)
                        .map_err(|message| FilterError::new(span.clone(), message))?;
                }
                // Only the left side's: so it is in libpcap.
                Number { guard: left.guard, value: self.folded(*operator, left.value, right.value) }
            }
            Arithmetic::Load { protocol, at, bytes, span } => {
                let size = match bytes {
                    1 => Size::Byte,
                    2 => Size::Half,
                    4 => Size::Word,
                    _ => {
                        let message = format!("{bytes} bytes at once: 1, 2 or 4 can be read");
                        return Err(FilterError::new(span.clone(), message));
                    }
                };
                let at = self.number(at)?;
                self.take_registers(1)?;
                self.registers -= 1;
                self.bytes_of(*protocol, at, size)?
            }
        })
    }

    fn plain(&mut self, value: Value) -> Result<Number> {
        self.take_registers(1)?;
        Ok(Number { guard: None, value: self.values.id(value) })
    }

    /// Notes that so many more of libpcap's registers are in use.
    pub(super) fn take_registers(&mut self, count: u32) -> Result<()> {
        self.registers += count;
        if self.registers > REGISTERS {
            return self.refuse("this needs more than 16 intermediate results at a time");
        }
        Ok(())
    }

    /// The value of an operation, already computed if both sides are constants.
    fn folded(&mut self, operator: Operator, left: ValueId, right: ValueId) -> ValueId {
        let (a, b) = (self.values.constant(left), self.values.constant(right));
        if let (Some(a), Some(b)) = (a, b)
            && let Some(result) = operate(operator, a, b)
        {
            return self.values.id(Value::Constant(result));
        }
        self.values.id(Value::Operation(operator, left, right))
    }

    /// Bytes of a protocol's header.
    fn bytes_of(&mut self, protocol: Protocol, at: Number, size: Size) -> Result<Number> {
        use Protocol as P;
        let network = self.headers.network_at();
        let base = |compiler: &mut Self, variable: Option<_>| {
            variable.map(|variable| compiler.values.id(Value::Variable(variable)))
        };
        Ok(match protocol {
            P::Link => {
                let link = self.headers.link;
                let base = base(self, link.base);
                Number { guard: at.guard, value: self.indexed(base, link.offset, at.value, size) }
            }
            P::Ip
            | P::Arp
            | P::Rarp
            | P::Atalk
            | P::Decnet
            | P::Sca
            | P::Lat
            | P::Moprc
            | P::Mopdl
            | P::Ip6 => {
                let base = base(self, network.base);
                let value = self.indexed(base, network.offset, at.value, size);
                let is_protocol = self.protocol(protocol)?;
                Number { guard: both(at.guard, Some(is_protocol)), value }
            }
            P::Sctp
            | P::Tcp
            | P::Udp
            | P::Icmp
            | P::Igmp
            | P::Igrp
            | P::Pim
            | P::Vrrp
            | P::Carp => {
                let base = Some(self.ipv4_header_bytes());
                let value = self.indexed(base, network.offset, at.value, size);
                let is_ip = self.protocol(P::Ip)?;
                let is_protocol = self.protocol(protocol)?;
                let first = self.first_fragment();
                let parts = [Some(is_ip), at.guard, Some(is_protocol), Some(first)];
                let guard = Condition::And(parts.into_iter().flatten().collect());
                Number { guard: Some(guard), value }
            }
            P::Icmp6 => {
                let base = base(self, network.base);
                let value = self.indexed(base, network.offset.wrapping_add(40), at.value, size);
                let is_ip6 = self.link_type(IPV6)?;
                let is_icmp6 = self.equal(network.plus(6), Size::Byte, ICMPV6);
                let parts = [at.guard, Some(is_ip6), Some(is_icmp6)];
                let guard = Condition::And(parts.into_iter().flatten().collect());
                Number { guard: Some(guard), value }
            }
            _ => return self.refuse("the bytes of this protocol cannot be indexed"),
        })
    }

    /// Bytes so far behind a base.
    fn indexed(
        &mut self,
        base: Option<ValueId>,
        offset: u32,
        index: ValueId,
        size: Size,
    ) -> ValueId {
        if let Some(index) = self.values.constant(index) {
            return self.values.id(Value::Load { at: base, offset: place_of(offset, index), size });
        }
        let at = match base {
            Some(base) => self.values.id(Value::Operation(Operator::Add, index, base)),
            None => index,
        };
        self.values.id(Value::Load { at: Some(at), offset, size })
    }
}

/// Behind the end of every frame. The kernel takes offsets above for facts about a packet or for its
/// own headers, and refuses those that it has no meaning for.
const BEYOND: u32 = i32::MAX as u32;

/// A constant offset and index together.
pub(super) fn place_of(offset: u32, index: u32) -> u32 {
    offset.saturating_add(index).min(BEYOND)
}

fn both(first: Option<Condition>, second: Option<Condition>) -> Option<Condition> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Condition::And(vec![first, second])),
        (first, second) => first.or(second),
    }
}

/// The number that an operand's text begins with, but for parentheses. libpcap takes it for the
/// whole operand where it looks for divisions by zero, and refuses `1 / ip[0]`.
fn first_number(arithmetic: &Arithmetic) -> Option<u32> {
    match arithmetic {
        Arithmetic::Number(number) => Some(*number),
        Arithmetic::Length => None,
        Arithmetic::Load { at, .. } => first_number(at),
        Arithmetic::Negative(inner) => first_number(inner),
        Arithmetic::Binary { left, .. } => first_number(left),
    }
}

fn check_right_side(operator: Operator, right: u32) -> std::result::Result<(), &'static str> {
    match operator {
        Operator::Div | Operator::Mod if right == 0 => {
            Err("this divides by zero, or by something that begins with one")
        }
        Operator::ShiftLeft | Operator::ShiftRight if right > 31 => {
            Err("this shifts by more than 31 bits, or by something that begins with such a number")
        }
        _ => Ok(()),
    }
}

/// What an operation gives; `None` for a division by zero. Shifts by more than 31 bits give 0.
pub(crate) fn operate(operator: Operator, a: u32, b: u32) -> Option<u32> {
    Some(match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Sub => a.wrapping_sub(b),
        Operator::Mul => a.wrapping_mul(b),
        Operator::Div => a.checked_div(b)?,
        Operator::Mod => a.checked_rem(b)?,
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor => a ^ b,
        Operator::ShiftLeft => a.checked_shl(b).unwrap_or(0),
        Operator::ShiftRight => a.checked_shr(b).unwrap_or(0),
    })
}
