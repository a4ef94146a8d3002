//! An expression's text in tokens.
//!
//! The rules are those of libpcap: of all readings of what comes next the longest counts, and of
//! equally long ones keyword before MAC address, number, IPv4 address, IPv6 address, name.

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::error::{FilterError, Result};
use crate::keyword::{Keyword, keyword};

/// What a piece of text is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Token {
    Keyword(Keyword),
    Number(u32),
    /// Two to four numbers with dots between.
    Dotted(String),
    Ipv6(Ipv6Addr),
    Mac([u8; 6]),
    Arcnet,
    Name(String),
    /// `+ - * / % : [ ] ( ) & | ^ < >` and `=` for `==`, `!` for `not`.
    Sign(char),
    GreaterEqual,
    LessEqual,
    NotEqual,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
}

/// A token and its bytes in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned {
    /// What it is.
    pub token: Token,
    /// Where it stands.
    pub span: Range<usize>,
}

const SIGNS: &str = "+-*/%:[]!<>()&|^=";

/// Cuts `text` into tokens.
pub fn tokens(text: &str) -> Result<Vec<Spanned>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if matches!(first, ' ' | '\r' | '\n' | '\t') {
            at += 1;
            continue;
        }
        let (token, bytes) = next(&text[at..]).map_err(|(bytes, message)| {
            FilterError::new(at..at + bytes.max(first.len_utf8()), message)
        })?;
        tokens.push(Spanned { token, span: at..at + bytes });
        at += bytes;
    }
    Ok(tokens)
}

type Cut = std::result::Result<(Token, usize), (usize, String)>;

/// The token that `text` begins with, and its bytes.
fn next(text: &str) -> Cut {
    let word_bytes = word_bytes(text);
    let (mac, mac_bytes) = mac(text).map_or((None, 0), |(mac, bytes)| (Some(mac), bytes));
    let ipv6_bytes = ipv6_bytes(text);
    let bogus_bytes = bogus_mac_bytes(text);
    let longest = word_bytes.max(mac_bytes).max(ipv6_bytes).max(bogus_bytes);
    let longest_text = &text[..longest];
    if longest == 0 {
        return sign(text);
    }
    if word_bytes == longest
        && let Some(keyword) = keyword(longest_text)
    {
        return Ok((of_keyword(keyword), longest));
    }
    if let (Some(mac), true) = (mac, mac_bytes == longest) {
        return Ok((Token::Mac(mac), longest));
    }
    if word_bytes == longest {
        return word(longest_text);
    }
    if ipv6_bytes == longest {
        let address = longest_text.parse();
        let refuse = |_| (longest, format!("{longest_text} is no IPv6 address"));
        return address.map(|address| (Token::Ipv6(address), longest)).map_err(refuse);
    }
    Err((longest, format!("{longest_text} is no MAC address: six bytes are expected")))
}

fn of_keyword(keyword: Keyword) -> Token {
    match keyword {
        Keyword::And => Token::And,
        Keyword::Or => Token::Or,
        Keyword::Not => Token::Sign('!'),
        Keyword::Number(number) => Token::Number(number),
        other => Token::Keyword(other),
    }
}

/// A number, dotted numbers or a name.
fn word(text: &str) -> Cut {
    if is_number(text) {
        return number(text).map(|number| (Token::Number(number), text.len()));
    }
    let parts = text.split('.').count();
    let token = match parts {
        2..=4 if text.split('.').all(is_number) => Token::Dotted(text.into()),
        _ => Token::Name(text.into()),
    };
    Ok((token, text.len()))
}

fn sign(text: &str) -> Cut {
    for (sign, token) in [
        ("&&", Token::And),
        ("||", Token::Or),
        (">=", Token::GreaterEqual),
        ("<=", Token::LessEqual),
        ("!=", Token::NotEqual),
        ("==", Token::Sign('=')),
        ("<<", Token::ShiftLeft),
        (">>", Token::ShiftRight),
    ] {
        if text.starts_with(sign) {
            return Ok((token, sign.len()));
        }
    }
    let first = text.chars().next().unwrap_or(' ');
    if SIGNS.contains(first) {
        return Ok((Token::Sign(first), 1));
    }
    if let Some(name) = text.strip_prefix('\\') {
        let ends = |c: char| matches!(c, ' ' | '!' | '(' | ')' | '\n' | '\t');
        let bytes = name.find(ends).unwrap_or(name.len());
        if bytes > 0 {
            return Ok((Token::Name(name[..bytes].into()), bytes + 1));
        }
    }
    if let Some(node) = text.strip_prefix('$') {
        let digits = leading_hex(node).min(2);
        if digits > 0 {
            return Ok((Token::Arcnet, digits + 1));
        }
    }
    Err((0, format!("«{}» has no meaning here", first.escape_default())))
}

/// Bytes of the word that `text` begins with: letters, digits, dots, and inside also `-` and `_`.
fn word_bytes(text: &str) -> usize {
    let is_end = |c: u8| c.is_ascii_alphanumeric() || c == b'.';
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let inside = bytes.iter().take_while(|&&c| is_end(c) || matches!(c, b'-' | b'_')).count();
    let last = bytes[..inside].iter().rposition(|&c| is_end(c));
    last.map_or(0, |last| last + 1)
}

fn leading_hex(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

/// The MAC address that `text` begins with: `a:b:c:d:e:f` with `:`, `-` or `.`, `aabb.ccdd.eeff`, or
/// twelve digits.
fn mac(text: &str) -> Option<([u8; 6], usize)> {
    let separated = [':', '-', '.'].into_iter().filter_map(|sign| mac_of_bytes(text, sign));
    let others = [mac_of_words(text, Some('.')), mac_of_words(text, None)];
    separated.chain(others.into_iter().flatten()).max_by_key(|(_, bytes)| *bytes)
}

fn mac_of_bytes(text: &str, sign: char) -> Option<([u8; 6], usize)> {
    let mut mac = [0; 6];
    let mut at = 0;
    for (place, byte) in mac.iter_mut().enumerate() {
        if place > 0 {
            at += text[at..].strip_prefix(sign).map(|_| 1)?;
        }
        let digits = leading_hex(&text[at..]).min(2);
        *byte = u8::from_str_radix(text.get(at..at + digits)?, 16).ok()?;
        at += digits;
    }
    Some((mac, at))
}

fn mac_of_words(text: &str, sign: Option<char>) -> Option<([u8; 6], usize)> {
    let mut mac = [0; 6];
    let mut at = 0;
    for (place, pair) in mac.chunks_mut(2).enumerate() {
        if let (1.., Some(sign)) = (place, sign) {
            at += text[at..].strip_prefix(sign).map(|_| 1)?;
        }
        if leading_hex(&text[at..]) < 4 {
            return None;
        }
        let word = u16::from_str_radix(&text[at..at + 4], 16).ok()?;
        pair.copy_from_slice(&word.to_be_bytes());
        at += 4;
    }
    Some((mac, at))
}

/// Bytes of what looks like a MAC address and ends in a colon: pairs of digits with colons behind.
fn bogus_mac_bytes(text: &str) -> usize {
    let (mut at, mut pairs, mut end) = (0, 0, 0);
    loop {
        let digits = leading_hex(&text[at..]).min(2);
        let colons = text[at + digits..].bytes().take_while(|&c| c == b':').count();
        if digits == 0 || colons == 0 {
            return end;
        }
        at += digits + colons;
        pairs += 1;
        if pairs >= 2 {
            end = at;
        }
    }
}

/// Bytes of the IPv6 address that `text` begins with, by its form alone.
fn ipv6_bytes(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | 'x' | 'X');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if !text[..end].contains(':') {
        return 0;
    }
    // The longest address has 8 groups of 4 digits, or 6 and four numbers of any length.
    (2..=end).rev().find(|&bytes| has_form_of_ipv6(&text[..bytes])).unwrap_or(0)
}

fn has_form_of_ipv6(text: &str) -> bool {
    let (groups, quad) = match text.rsplit_once(':') {
        Some((_, last)) if last.contains('.') => (&text[..text.len() - last.len()], Some(last)),
        _ => (text, None),
    };
    let quad_groups = match quad {
        Some(quad) if quad.split('.').count() == 4 && quad.split('.').all(is_number) => 2,
        Some(_) => return false,
        None => 0,
    };
    let is_group = |group: &str| (1..=4).contains(&group.len()) && is_hex(group);
    let groups_of = |text: &str| -> Option<usize> {
        if text.is_empty() {
            return Some(0);
        }
        text.split(':').all(is_group).then(|| text.split(':').count())
    };
    match groups.split_once("::") {
        Some((head, tail)) => {
            // In front of the dotted numbers stands a colon, which is no group's end.
            let tail = if quad.is_some() { tail.strip_suffix(':').unwrap_or(tail) } else { tail };
            match (groups_of(head), groups_of(tail)) {
                (Some(head), Some(tail)) => head + tail + quad_groups <= 7,
                _ => false,
            }
        }
        None => {
            let groups =
                if quad.is_some() { groups.strip_suffix(':').unwrap_or("") } else { groups };
            groups_of(groups).is_some_and(|groups| groups + quad_groups == 8)
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Whether `text` is decimal digits or `0x` and hexadecimal ones.
fn is_number(text: &str) -> bool {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => !digits.is_empty() && is_hex(digits),
        None => !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()),
    }
}

/// The value of a number: hexadecimal after `0x`, octal after `0`, else decimal.
fn number(text: &str) -> std::result::Result<u32, (usize, String)> {
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if radix == 8 && text.contains(['8', '9']) {
        let message = format!("{text} begins with 0 and is octal: digits are 0 to 7");
        return Err((text.len(), message));
    }
    u32::from_str_radix(digits, radix)
        .map_err(|_| (text.len(), format!("{text} is above 4294967295, the largest number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|spanned| spanned.token).collect()
    }

    #[test]
    fn the_longest_reading_counts() {
        assert_eq!(of("1.2.3.4"), [Token::Dotted("1.2.3.4".into())]);
        assert_eq!(of("1.2.3.4.5"), [Token::Name("1.2.3.4.5".into())]);
        assert_eq!(of("1.2.3.4.5.6"), [Token::Mac([1, 2, 3, 4, 5, 6])]);
        assert_eq!(of("80-90"), [Token::Name("80-90".into())]);
        assert_eq!(of("001122334455"), [Token::Mac([0, 0x11, 0x22, 0x33, 0x44, 0x55])]);
        assert_eq!(of("0:1:2:3:4:ff"), [Token::Mac([0, 1, 2, 3, 4, 255])]);
        assert_eq!(of("tcpdump"), [Token::Name("tcpdump".into())]);
        assert_eq!(of("2:2"), [Token::Number(2), Token::Sign(':'), Token::Number(2)]);
        assert_eq!(of("0::1"), [Token::Ipv6("::1".parse().unwrap())]);
        assert_eq!(of("a-"), [Token::Name("a".into()), Token::Sign('-')]);
        assert_eq!(of("\\ip)"), [Token::Name("ip".into()), Token::Sign(')')]);
        assert_eq!(of("&&&"), [Token::And, Token::Sign('&')]);
        assert_eq!(of("icmp-echo"), [Token::Number(8)]);
    }

    #[test]
    fn ipv6_addresses_in_all_forms() {
        for text in [
            "::",
            "::1",
            "1::",
            "fe80::1:2",
            "1:2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:7::",
        ] {
            assert_eq!(of(text), [Token::Ipv6(text.parse().unwrap())], "{text}");
        }
        assert!(tokens("::300.1.1.1").is_err());
        assert!(tokens("00:11:22:").is_err());
    }

    #[test]
    fn numbers_have_their_radix_and_their_end() {
        assert_eq!(of("0x10 010 10"), [Token::Number(16), Token::Number(8), Token::Number(10)]);
        assert_eq!(of("4294967295"), [Token::Number(u32::MAX)]);
        assert_eq!(tokens("port 4294967296").unwrap_err().span, 5..15);
        assert!(tokens("08").is_err());
        assert!(tokens("0x100000000").is_err());
    }

    #[test]
    fn what_means_nothing_is_pointed_at() {
        assert_eq!(tokens("host ü").unwrap_err().span, 5..7);
        assert_eq!(tokens("a # b").unwrap_err().span, 2..3);
    }
}
