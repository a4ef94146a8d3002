//! The terms that begin with a keyword of their own, such as `vlan` or `byte`.

use super::Parser;
use crate::error::{FilterError, Result};
use crate::keyword::{Keyword, PF, llc_kind};
use crate::syntax::{ByteTest, Primitive};
use crate::token::Token;

impl Parser {
    /// The terms that begin with a keyword of their own.
    pub(super) fn other(&mut self, keyword: Keyword) -> Result<Primitive> {
        self.cursor.advance();
        Ok(match keyword {
            Keyword::Less => Primitive::Less(self.number()?),
            Keyword::Greater => Primitive::Greater(self.number()?),
            Keyword::Byte => self.byte()?,
            Keyword::Inbound => Primitive::Inbound,
            Keyword::Outbound => Primitive::Outbound,
            Keyword::Interface => Primitive::Interface(self.number()?),
            Keyword::Vlan => Primitive::Vlan(self.number_if_any()?),
            Keyword::Mpls => Primitive::Mpls(self.number_if_any()?),
            Keyword::PppoeDiscovery => Primitive::PppoeDiscovery,
            Keyword::PppoeSession => Primitive::PppoeSession(self.number_if_any()?),
            Keyword::Geneve => Primitive::Geneve(self.number_if_any()?),
            Keyword::Llc => self.llc()?,
            Keyword::Rnr => return Err(self.foreign(PF)),
            Keyword::Foreign(link) => return Err(self.foreign(link)),
            _ => return Err(self.cursor.error_before("expected a test in front of this word")),
        })
    }

    fn foreign(&self, link: &str) -> FilterError {
        self.cursor.error_before(format!("this test is for {link}, which linerate does not read"))
    }

    fn byte(&mut self) -> Result<Primitive> {
        let at = self.number()?;
        let test = match self.cursor.peek() {
            Some(Token::Sign('=')) => ByteTest::Equal,
            Some(Token::Sign('<')) => ByteTest::Less,
            Some(Token::Sign('>')) => ByteTest::Greater,
            Some(Token::Sign('&')) => ByteTest::And,
            Some(Token::Sign('|')) => ByteTest::Or,
            _ => return Err(self.cursor.error("expected =, <, >, & or |")),
        };
        self.cursor.advance();
        Ok(Primitive::Byte { at, test, with: self.number()? })
    }

    fn llc(&mut self) -> Result<Primitive> {
        let name = match self.cursor.peek() {
            Some(Token::Name(name)) => name.as_str(),
            Some(Token::Keyword(Keyword::Rnr)) => "rnr",
            _ => return Ok(Primitive::Llc(None)),
        };
        let Some(kind) = llc_kind(name) else {
            return Err(self.cursor.error(
                "expected i, s, u, rr, rnr, rej, ui, ua, disc, dm, sabme, test, xid or frmr",
            ));
        };
        Ok(self.plain(Primitive::Llc(Some(kind))))
    }

    pub(super) fn number(&mut self) -> Result<u32> {
        match self.cursor.peek() {
            Some(&Token::Number(number)) => {
                self.cursor.advance();
                Ok(number)
            }
            _ => Err(self.cursor.error("expected a number")),
        }
    }

    /// A number in any number of parentheses, if one follows.
    fn number_if_any(&mut self) -> Result<Option<u32>> {
        let mark = self.cursor.mark();
        let mut open = 0;
        while self.cursor.take_sign('(') {
            open += 1;
        }
        let Some(&Token::Number(number)) = self.cursor.peek() else {
            self.cursor.back_to(mark);
            return Ok(None);
        };
        self.cursor.advance();
        for _ in 0..open {
            self.close()?;
        }
        Ok(Some(number))
    }
}
