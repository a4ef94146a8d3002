//! From tokens to a tree.
//!
//! `and` and `or` bind equally and from the left, `not` binds tighter. An identifier without words in
//! front (`port 80 or 443`) inherits those of the one before. A parenthesis may hold an expression,
//! identifiers that inherit, or arithmetic; which of them shows only inside, so all three are
//! read by one function, as an [`Item`].

mod arithmetic;
mod cursor;
mod term;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::error::{FilterError, Result};
use crate::keyword::Keyword;
use crate::syntax::{
    Arithmetic, Comparison, Direction, Expression, Id, Joint, Kind, Primitive, Protocol, Qualifiers,
};
use crate::token::{Token, tokens};

use cursor::Cursor;

/// Parentheses, `not` and `[` within each other, at most.
const DEPTH_MAX: usize = 400;

/// What a piece of text turns out to be.
enum Item {
    /// A bare number: an identifier or an operand.
    Number(u32),
    /// An operand that is no bare number.
    Arithmetic(Arithmetic),
    /// A term or several, and the qualifiers that an identifier behind it inherits.
    Expression(Expression, Option<Qualifiers>),
}

/// Reads `text`. `None` for an empty one, which every packet matches.
pub fn parse(text: &str) -> Result<Option<Expression>> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut parser = Parser { cursor: Cursor::new(tokens, text.len()), depth: 0 };
    let item = parser.item(None)?;
    let (first, qualifiers) = parser.whole(item)?;
    let (expression, _) = parser.chain(first, qualifiers)?;
    match parser.cursor.peek() {
        None => Ok(Some(expression)),
        Some(Token::Sign(')')) => Err(parser.cursor.error("this closes no parenthesis")),
        Some(_) => Err(parser.cursor.error("expected «and», «or» or the end")),
    }
}

struct Parser {
    cursor: Cursor,
    depth: usize,
}

impl Parser {
    /// Terms joined to `first`.
    fn chain(
        &mut self,
        first: Expression,
        mut qualifiers: Option<Qualifiers>,
    ) -> Result<(Expression, Option<Qualifiers>)> {
        let mut joined = Vec::new();
        while let Some(joint) = self.cursor.joint() {
            let (next, inherited) = self.joined(qualifiers)?;
            joined.push((joint, next));
            qualifiers = inherited;
        }
        let expression = match joined.is_empty() {
            true => first,
            false => Expression::Chain(Box::new(first), joined),
        };
        Ok((expression, qualifiers))
    }

    /// What stands behind `and` or `or`: a term, or an identifier that inherits `qualifiers`.
    fn joined(
        &mut self,
        qualifiers: Option<Qualifiers>,
    ) -> Result<(Expression, Option<Qualifiers>)> {
        let start = self.cursor.start();
        match self.item(qualifiers)? {
            Item::Number(number) => {
                self.inheriting(Id::Number(number), qualifiers, self.cursor.since(start))
            }
            item => self.whole(item),
        }
    }

    /// An item that must be an expression.
    fn whole(&self, item: Item) -> Result<(Expression, Option<Qualifiers>)> {
        match item {
            Item::Expression(expression, qualifiers) => Ok((expression, qualifiers)),
            Item::Number(_) | Item::Arithmetic(_) => {
                Err(self.cursor.error("expected a comparison: =, !=, <, <=, > or >="))
            }
        }
    }

    fn inheriting(
        &self,
        id: Id,
        qualifiers: Option<Qualifiers>,
        span: Range<usize>,
    ) -> Result<(Expression, Option<Qualifiers>)> {
        let Some(qualifiers) = qualifiers else {
            return Err(FilterError::new(
                span,
                "expected a word such as host, net or port in front",
            ));
        };
        let primitive = Primitive::Id { qualifiers, id };
        Ok((Expression::Primitive(primitive, span), Some(qualifiers)))
    }

    /// One term, one identifier if there are qualifiers to inherit, or an operand.
    fn item(&mut self, qualifiers: Option<Qualifiers>) -> Result<Item> {
        let start = self.cursor.start();
        if self.cursor.take_sign('!') {
            let (inner, inherited) = self.deeper(|parser| parser.joined(qualifiers))?;
            return Ok(Item::Expression(Expression::Not(Box::new(inner)), inherited));
        }
        if self.at_id() {
            let id = self.id_word()?;
            let (id, inherited) = self.inheriting(id, qualifiers, self.cursor.since(start))?;
            return Ok(Item::Expression(id, inherited));
        }
        let left = match self.operand(qualifiers)? {
            Item::Expression(expression, inherited) => {
                return Ok(Item::Expression(expression, inherited));
            }
            Item::Number(number) if !self.at_operator() => {
                if self.comparison_ahead().is_none() {
                    return Ok(Item::Number(number));
                }
                Arithmetic::Number(number)
            }
            Item::Number(number) => self.arithmetic_from(Arithmetic::Number(number), start)?,
            Item::Arithmetic(left) => self.arithmetic_from(left, start)?,
        };
        let Some(comparison) = self.comparison_ahead() else { return Ok(Item::Arithmetic(left)) };
        self.cursor.advance();
        let right = self.arithmetic()?;
        let primitive = Primitive::Relation { left, comparison, right };
        let relation = Expression::Primitive(primitive, self.cursor.since(start));
        Ok(Item::Expression(relation, None))
    }

    /// What an item begins with, up to the first operator.
    fn operand(&mut self, qualifiers: Option<Qualifiers>) -> Result<Item> {
        let start = self.cursor.start();
        match self.cursor.peek() {
            Some(Token::Sign('(')) => self.deeper(|parser| parser.parenthesis(qualifiers)),
            Some(&Token::Number(number)) => {
                self.cursor.advance();
                Ok(Item::Number(number))
            }
            Some(Token::Sign('-') | Token::Keyword(Keyword::Length)) => {
                Ok(Item::Arithmetic(self.primary()?))
            }
            Some(&Token::Keyword(Keyword::Protocol(protocol))) => {
                self.cursor.advance();
                if self.cursor.peek() == Some(&Token::Sign('[')) {
                    return Ok(Item::Arithmetic(self.load(protocol, start)?));
                }
                self.after_protocol(Some(protocol), start)
            }
            Some(Token::Keyword(_)) => self.after_protocol(None, start),
            _ => Err(self
                .cursor
                .error("expected a test, such as host 10.0.0.1, tcp, port 80, vlan or ip[8] < 5")),
        }
    }

    /// Behind `(`, up to its `)`.
    fn parenthesis(&mut self, qualifiers: Option<Qualifiers>) -> Result<Item> {
        self.cursor.advance();
        let start = self.cursor.start();
        if self.at_id() || self.at_negated_id() {
            let (first, _) = self.id(qualifiers)?;
            return self.ids(first, qualifiers);
        }
        let item = match self.item(qualifiers)? {
            Item::Number(number) if self.cursor.at_joint() => {
                let span = self.cursor.since(start);
                let (first, _) = self.inheriting(Id::Number(number), qualifiers, span)?;
                return self.ids(first, qualifiers);
            }
            Item::Expression(first, inherited) => {
                let (expression, _) = self.chain(first, inherited)?;
                Item::Expression(expression, qualifiers)
            }
            operand => operand,
        };
        self.close()?;
        Ok(item)
    }

    /// Identifiers joined to `first`, up to `)`.
    fn ids(&mut self, first: Expression, qualifiers: Option<Qualifiers>) -> Result<Item> {
        let mut joined = Vec::new();
        while let Some(joint) = self.cursor.joint() {
            let (id, _) = self.id(qualifiers)?;
            joined.push((joint, id));
        }
        self.close()?;
        let ids = match joined.is_empty() {
            true => first,
            false => Expression::Chain(Box::new(first), joined),
        };
        Ok(Item::Expression(ids, qualifiers))
    }

    /// One identifier, several in parentheses, or not.
    fn id(&mut self, qualifiers: Option<Qualifiers>) -> Result<(Expression, Option<Qualifiers>)> {
        let start = self.cursor.start();
        if self.cursor.take_sign('!') {
            let (inner, inherited) = self.deeper(|parser| parser.id(qualifiers))?;
            return Ok((Expression::Not(Box::new(inner)), inherited));
        }
        if self.at_id() {
            let id = self.id_word()?;
            return self.inheriting(id, qualifiers, self.cursor.since(start));
        }
        match self.cursor.peek() {
            Some(&Token::Number(number)) => {
                self.cursor.advance();
                self.inheriting(Id::Number(number), qualifiers, self.cursor.since(start))
            }
            Some(Token::Sign('(')) => match self.deeper(|parser| parser.ids_within(qualifiers))? {
                Item::Number(number) => {
                    self.inheriting(Id::Number(number), qualifiers, self.cursor.since(start))
                }
                item => self.whole(item),
            },
            _ => Err(self.cursor.error("expected an address, a number or a name")),
        }
    }

    /// Behind the `(` of identifiers: a number in any number of parentheses, or several identifiers.
    fn ids_within(&mut self, qualifiers: Option<Qualifiers>) -> Result<Item> {
        self.cursor.advance();
        let start = self.cursor.start();
        let first = match self.cursor.peek() {
            Some(Token::Sign('(')) => match self.deeper(|parser| parser.ids_within(qualifiers))? {
                Item::Number(number) => Id::Number(number),
                _ => return Err(self.cursor.error("expected a number in these parentheses")),
            },
            Some(&Token::Number(number)) => {
                self.cursor.advance();
                Id::Number(number)
            }
            _ if self.at_id() => self.id_word()?,
            Some(Token::Sign('!')) => {
                let (first, _) = self.id(qualifiers)?;
                return self.ids(first, qualifiers);
            }
            _ => return Err(self.cursor.error("expected an address, a number or a name")),
        };
        if let (Id::Number(number), false) = (&first, self.cursor.at_joint()) {
            let number = *number;
            self.close()?;
            return Ok(Item::Number(number));
        }
        let (first, _) = self.inheriting(first, qualifiers, self.cursor.since(start))?;
        self.ids(first, qualifiers)
    }

    fn close(&mut self) -> Result<()> {
        if self.cursor.take_sign(')') {
            return Ok(());
        }
        Err(self.cursor.error("expected «)», «and» or «or»"))
    }

    /// A term behind its protocol, if it has one.
    fn after_protocol(&mut self, protocol: Option<Protocol>, start: usize) -> Result<Item> {
        let direction = self.direction()?;
        if let Some(kind) = self.kind(direction.is_some()) {
            self.cursor.advance();
            return self.qualified(Qualifiers { protocol, direction, kind: Some(kind) });
        }
        if direction.is_some() {
            return self.qualified(Qualifiers { protocol, direction, kind: None });
        }
        let keyword = match self.cursor.peek() {
            Some(&Token::Keyword(keyword)) => Some(keyword),
            _ => None,
        };
        let primitive = match (protocol, keyword) {
            (_, Some(Keyword::Broadcast)) => self.plain(Primitive::Broadcast(protocol)),
            (_, Some(Keyword::Multicast)) => self.plain(Primitive::Multicast(protocol)),
            (Some(protocol), _) => Primitive::Protocol(protocol),
            (None, Some(keyword)) => self.other(keyword)?,
            (None, None) => return Err(self.cursor.error("expected a test")),
        };
        Ok(Item::Expression(Expression::Primitive(primitive, self.cursor.since(start)), None))
    }

    fn qualified(&mut self, qualifiers: Qualifiers) -> Result<Item> {
        let (id, inherited) = self.id(Some(qualifiers))?;
        Ok(Item::Expression(id, inherited))
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn direction(&mut self) -> Result<Option<Direction>> {
        let Some(&Token::Keyword(Keyword::Direction(first))) = self.cursor.peek() else {
            return Ok(None);
        };
        self.cursor.advance();
        let Some(joint) = self.cursor.joint() else { return Ok(Some(first)) };
        let second = match (first, self.cursor.peek()) {
            (Direction::Source, Some(&Token::Keyword(Keyword::Direction(second)))) => {
                second == Direction::Destination
            }
            (Direction::Destination, Some(&Token::Keyword(Keyword::Direction(second)))) => {
                second == Direction::Source
            }
            _ => false,
        };
        if !second {
            return Err(self.cursor.error("expected «src or dst», «src and dst», or an address"));
        }
        self.cursor.advance();
        Ok(Some(match joint {
            Joint::Or => Direction::Either,
            Joint::And => Direction::Both,
        }))
    }

    /// `host`, `net`, `port`, …; those without a direction only where there is none.
    fn kind(&self, has_direction: bool) -> Option<Kind> {
        match self.cursor.peek() {
            Some(&Token::Keyword(Keyword::Kind(kind))) => match kind {
                Kind::Host | Kind::Net | Kind::Port | Kind::PortRange => Some(kind),
                Kind::Gateway | Kind::Proto | Kind::ProtoChain => (!has_direction).then_some(kind),
            },
            _ => None,
        }
    }

    fn plain(&mut self, primitive: Primitive) -> Primitive {
        self.cursor.advance();
        primitive
    }

    /// Whether an identifier follows that is no number.
    fn at_id(&self) -> bool {
        self.cursor.peek().is_some_and(is_id)
    }

    /// Whether a negated identifier follows.
    fn at_negated_id(&self) -> bool {
        let signs = (0..).take_while(|at| self.cursor.ahead(*at) == Some(&Token::Sign('!')));
        let at = signs.count();
        at > 0
            && match self.cursor.ahead(at) {
                // Not the operand of a comparison.
                Some(Token::Number(_)) => matches!(
                    self.cursor.ahead(at + 1),
                    None | Some(Token::And | Token::Or | Token::Sign(')'))
                ),
                token => token.is_some_and(is_id),
            }
    }

    fn id_word(&mut self) -> Result<Id> {
        let Some(token) = self.cursor.peek().cloned() else {
            return Err(self.cursor.error("expected an address or a name"));
        };
        self.cursor.advance();
        Ok(match token {
            Token::Name(name) => Id::Name(name),
            Token::Dotted(text) => self.ipv4(text)?,
            Token::Ipv6(address) => {
                let length = if self.cursor.take_sign('/') { Some(self.number()?) } else { None };
                Id::Ipv6 { address, length }
            }
            Token::Mac(mac) => Id::Mac(mac),
            _ => Id::Arcnet,
        })
    }

    fn ipv4(&mut self, text: String) -> Result<Id> {
        if self.cursor.take_sign('/') {
            return Ok(Id::Ipv4 { text, mask: None, length: Some(self.number()?) });
        }
        if self.cursor.peek() != Some(&Token::Keyword(Keyword::Mask)) {
            return Ok(Id::Ipv4 { text, mask: None, length: None });
        }
        self.cursor.advance();
        match self.cursor.peek().cloned() {
            Some(Token::Dotted(mask)) => {
                self.cursor.advance();
                Ok(Id::Ipv4 { text, mask: Some(mask), length: None })
            }
            _ => Err(self.cursor.error("expected a mask such as 255.255.0.0")),
        }
    }

    /// The comparison that follows, if one does.
    fn comparison_ahead(&self) -> Option<Comparison> {
        Some(match self.cursor.peek()? {
            Token::Sign('=') => Comparison::Equal,
            Token::Sign('>') => Comparison::Greater,
            Token::Sign('<') => Comparison::Less,
            Token::NotEqual => Comparison::NotEqual,
            Token::GreaterEqual => Comparison::GreaterEqual,
            Token::LessEqual => Comparison::LessEqual,
            _ => return None,
        })
    }

    /// Runs `inner` one level deeper.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} levels within each other");
            return Err(self.cursor.error(message));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}

/// Whether a token is an identifier other than a number.
fn is_id(token: &Token) -> bool {
    matches!(
        token,
        Token::Name(_) | Token::Dotted(_) | Token::Ipv6(_) | Token::Mac(_) | Token::Arcnet
    )
}
