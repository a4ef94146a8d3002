//! What an expression asks of a frame: values, tests on them, and how tests are joined.
//!
//! Values are kept once each, in a [`Values`], and named by number, so that equal ones are the same
//! number. A value that lies outside of the captured bytes, or divides by zero, ends the whole filter
//! without a match, also under `not`: that is how the classic BPF machine works, and what libpcap's
//! expressions mean.

use std::collections::HashMap;

use crate::syntax::Operator;

/// A value of a [`Values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub(crate) u32);

/// A word of memory that holds a place; 0 until it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub(crate) u32);

/// Bytes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Size {
    Byte,
    Half,
    Word,
}

impl Size {
    /// 1, 2 or 4.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }

    /// The mask of as many bits.
    pub fn mask(self) -> u32 {
        match self {
            Self::Byte => 0xff,
            Self::Half => 0xffff,
            Self::Word => u32::MAX,
        }
    }
}

/// A number that is computed from a frame; 32 bits without sign, wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Itself.
    Constant(u32),
    /// Bytes of the frame on the wire.
    Length,
    /// Bytes of the frame in network order, at `offset` or so far behind another value.
    Load {
        /// Bytes of the frame in front, besides `offset`.
        at: Option<ValueId>,
        /// Bytes.
        offset: u32,
        /// How many.
        size: Size,
    },
    /// Four times the lower half of the byte there: the length of an IPv4 header.
    HeaderBytes {
        /// Of the header.
        offset: u32,
    },
    /// An operation on two values.
    Operation(Operator, ValueId, ValueId),
    /// What a variable holds.
    Variable(Variable),
}

/// All values of a filter, each once.
#[derive(Debug, Clone, Default)]
pub struct Values {
    values: Vec<Value>,
    ids: HashMap<Value, ValueId>,
}

impl Values {
    /// The number of `value`.
    pub fn id(&mut self, value: Value) -> ValueId {
        *self.ids.entry(value).or_insert_with(|| {
            self.values.push(value);
            ValueId(self.values.len() as u32 - 1)
        })
    }

    /// The number of `value`, if it is one of them.
    pub fn find(&self, value: Value) -> Option<ValueId> {
        self.ids.get(&value).copied()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The value of a number.
    pub fn get(&self, id: ValueId) -> Value {
        self.values[id.0 as usize]
    }

    /// The value, if it is the same in every frame.
    pub fn constant(&self, id: ValueId) -> Option<u32> {
        match self.get(id) {
            Value::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// Whether it depends on `variable`.
    pub fn depends_on(&self, id: ValueId, variable: Variable) -> bool {
        match self.get(id) {
            Value::Variable(other) => other == variable,
            Value::Load { at: Some(at), .. } => self.depends_on(at, variable),
            Value::Operation(_, left, right) => {
                self.depends_on(left, variable) || self.depends_on(right, variable)
            }
            _ => false,
        }
    }

    /// Whether computing it can end the filter.
    pub fn can_fail(&self, id: ValueId) -> bool {
        match self.get(id) {
            Value::Constant(_) | Value::Length | Value::Variable(_) => false,
            Value::Load { .. } | Value::HeaderBytes { .. } => true,
            Value::Operation(operator, left, right) => {
                let divides = matches!(operator, Operator::Div | Operator::Mod);
                divides && self.constant(right).is_none_or(|divisor| divisor == 0)
                    || self.can_fail(left)
                    || self.can_fail(right)
            }
        }
    }
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Relation {
    Equal,
    Greater,
    GreaterEqual,
}

impl Relation {
    /// Whether it holds.
    #[inline]
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
        }
    }
}

/// What a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Operand {
    Constant(u32),
    Value(ValueId),
}

/// A question with two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Test {
    /// What is looked at,
    pub value: ValueId,
    /// and which of its bits,
    pub mask: u32,
    /// compared how,
    pub relation: Relation,
    /// with what.
    pub operand: Operand,
}

impl Test {
    /// Its answer, if `value` has these bits under the mask and the operand is a constant.
    pub fn answer(&self, masked: u32) -> Option<bool> {
        let Operand::Constant(constant) = self.operand else { return None };
        Some(self.relation.holds(masked, constant))
    }
}

/// Tests, joined. Parts are asked in order, and only until the answer is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Always met.
    Always,
    /// Never met.
    Never,
    /// A test.
    Test(Test),
    /// Gives a variable a value; met.
    Set(Variable, ValueId),
    /// All of them.
    And(Vec<Condition>),
    /// One of them.
    Or(Vec<Condition>),
    /// The contrary.
    Not(Box<Condition>),
    /// A first one and those joined to all before them, from the left.
    Chain(Box<Condition>, Vec<(crate::syntax::Joint, Condition)>),
}

impl std::ops::Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }
}
