//! A place in the tokens of an expression.

use std::ops::Range;

use crate::error::FilterError;
use crate::syntax::Joint;
use crate::token::{Spanned, Token};

/// The tokens and how far they are read.
pub(super) struct Cursor {
    tokens: Vec<Spanned>,
    at: usize,
    text_bytes: usize,
}

impl Cursor {
    pub(super) fn new(tokens: Vec<Spanned>, text_bytes: usize) -> Self {
        Self { tokens, at: 0, text_bytes }
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.ahead(0)
    }

    /// The token behind `count` others.
    pub(super) fn ahead(&self, count: usize) -> Option<&Token> {
        self.tokens.get(self.at + count).map(|spanned| &spanned.token)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn mark(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, mark: usize) {
        self.at = mark;
    }

    /// Takes the sign if it comes next.
    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn at_joint(&self) -> bool {
        matches!(self.peek(), Some(Token::And | Token::Or))
    }

    /// Takes `and` or `or` if one comes next.
    pub(super) fn joint(&mut self) -> Option<Joint> {
        let joint = match self.peek()? {
            Token::And => Joint::And,
            Token::Or => Joint::Or,
            _ => return None,
        };
        self.advance();
        Some(joint)
    }

    /// Where the next token begins, in bytes of the text.
    pub(super) fn start(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text_bytes, |spanned| spanned.span.start)
    }

    /// From `start` to the end of the last token that was taken.
    pub(super) fn since(&self, start: usize) -> Range<usize> {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |spanned| spanned.span.end.max(start))
    }

    /// An error at the next token.
    pub(super) fn error(&self, message: impl Into<String>) -> FilterError {
        let span = match self.tokens.get(self.at) {
            Some(spanned) => spanned.span.clone(),
            None => self.text_bytes..self.text_bytes,
        };
        FilterError::new(span, message)
    }

    /// An error at the token that was just taken.
    pub(super) fn error_before(&self, message: impl Into<String>) -> FilterError {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        let span = last.map_or(0..0, |spanned| spanned.span.clone());
        FilterError::new(span, message)
    }
}
