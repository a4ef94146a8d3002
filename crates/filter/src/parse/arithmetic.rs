//! Numbers, loads and their operators.
//!
//! `*` and `/` bind tighter than `+` and `-`, these than shifts, then `&`, then `|`, each from the
//! left. `%` and `^` have no rank in libpcap's grammar: whatever follows one of them belongs to its
//! right side, and whatever precedes it is not taken apart for it.

use super::{Item, Parser};
use crate::error::Result;
use crate::keyword::Keyword;
use crate::syntax::{Arithmetic, Operator, Protocol};
use crate::token::Token;

/// Of an operator, if it has one.
fn rank(operator: Operator) -> Option<u8> {
    Some(match operator {
        Operator::Or => 1,
        Operator::And => 2,
        Operator::ShiftLeft | Operator::ShiftRight => 3,
        Operator::Add | Operator::Sub => 4,
        Operator::Mul | Operator::Div => 5,
        Operator::Mod | Operator::Xor => return None,
    })
}

/// Whether what stands left of `next` is complete, if `before` is the operator in front of it.
fn is_done(before: Operator, next: Operator) -> bool {
    matches!((rank(before), rank(next)), (Some(before), Some(next)) if before >= next)
}

impl Parser {
    pub(super) fn at_operator(&self) -> bool {
        self.operator().is_some()
    }

    fn operator(&self) -> Option<Operator> {
        Some(match self.cursor.peek()? {
            Token::Sign('+') => Operator::Add,
            Token::Sign('-') => Operator::Sub,
            Token::Sign('*') => Operator::Mul,
            Token::Sign('/') => Operator::Div,
            Token::Sign('%') => Operator::Mod,
            Token::Sign('&') => Operator::And,
            Token::Sign('|') => Operator::Or,
            Token::Sign('^') => Operator::Xor,
            Token::ShiftLeft => Operator::ShiftLeft,
            Token::ShiftRight => Operator::ShiftRight,
            _ => return None,
        })
    }

    /// A whole arithmetic expression.
    pub(super) fn arithmetic(&mut self) -> Result<Arithmetic> {
        let start = self.cursor.start();
        let first = self.primary()?;
        self.arithmetic_from(first, start)
    }

    /// The arithmetic expression that begins with `first`, read up to its first operator.
    pub(super) fn arithmetic_from(
        &mut self,
        first: Arithmetic,
        start: usize,
    ) -> Result<Arithmetic> {
        let mut operands = vec![(first, start)];
        let mut operators: Vec<Operator> = Vec::new();
        while let Some(next) = self.operator() {
            while let Some(&before) = operators.last() {
                if !is_done(before, next) {
                    break;
                }
                self.join(&mut operands, &mut operators);
            }
            self.cursor.advance();
            operators.push(next);
            let start = self.cursor.start();
            operands.push((self.primary()?, start));
        }
        while !operators.is_empty() {
            self.join(&mut operands, &mut operators);
        }
        match operands.pop() {
            Some((whole, _)) => Ok(whole),
            None => Err(self.cursor.error("expected a number")),
        }
    }

    /// Makes one of the last two operands.
    fn join(&self, operands: &mut Vec<(Arithmetic, usize)>, operators: &mut Vec<Operator>) {
        let (Some(operator), Some((right, _)), Some((left, start))) =
            (operators.pop(), operands.pop(), operands.pop())
        else {
            return;
        };
        let (left, right) = (Box::new(left), Box::new(right));
        let span = self.cursor.since(start);
        operands.push((Arithmetic::Binary { operator, left, right, span }, start));
    }

    /// An operand: a number, a load, a length, a negative one, or one in parentheses.
    pub(super) fn primary(&mut self) -> Result<Arithmetic> {
        let start = self.cursor.start();
        match self.cursor.peek() {
            Some(&Token::Number(number)) => {
                self.cursor.advance();
                Ok(Arithmetic::Number(number))
            }
            Some(Token::Keyword(Keyword::Length)) => {
                self.cursor.advance();
                Ok(Arithmetic::Length)
            }
            Some(Token::Sign('-')) => {
                self.cursor.advance();
                let inner = self.deeper(Self::negated)?;
                Ok(Arithmetic::Negative(Box::new(inner)))
            }
            Some(Token::Sign('(')) => match self.deeper(|parser| parser.parenthesis(None))? {
                Item::Number(number) => Ok(Arithmetic::Number(number)),
                Item::Arithmetic(inner) => Ok(inner),
                Item::Expression(..) => {
                    Err(self.cursor.error_before("expected a number in these parentheses"))
                }
            },
            Some(&Token::Keyword(Keyword::Protocol(protocol))) => {
                self.cursor.advance();
                self.load(protocol, start)
            }
            _ => Err(self.cursor.error("expected a number, len, or bytes such as ip[0:2]")),
        }
    }

    /// Behind a minus: one operand, and with it what `%` and `^` tie to it.
    fn negated(&mut self) -> Result<Arithmetic> {
        let start = self.cursor.start();
        let first = self.primary()?;
        match self.operator() {
            Some(operator) if rank(operator).is_none() => self.arithmetic_from(first, start),
            _ => Ok(first),
        }
    }

    /// Behind the protocol of `proto[at:bytes]`.
    pub(super) fn load(&mut self, protocol: Protocol, start: usize) -> Result<Arithmetic> {
        if !self.cursor.take_sign('[') {
            return Err(self.cursor.error("expected «[»"));
        }
        let at = Box::new(self.deeper(Self::arithmetic)?);
        let bytes = if self.cursor.take_sign(':') { self.number()? } else { 1 };
        if !self.cursor.take_sign(']') {
            return Err(self.cursor.error("expected «]», or «:» and 1, 2 or 4"));
        }
        Ok(Arithmetic::Load { protocol, at, bytes, span: self.cursor.since(start) })
    }
}
