//! Filter expressions: made by chance from the grammar, and picked by hand.
//!
//! Their values are those of [`frames`](crate::frames), so that they often match. No name of a
//! host is among them that is looked up outside of the machine; ports and protocols have the names
//! of `/etc/services` and `/etc/protocols`.

mod arithmetic;
mod primitive;
mod value;

use std::collections::HashSet;

use wire::random::Random;

use crate::pools::{below, once_in, one_of};

const AND: [&str; 3] = ["and", "and", "&&"];
const OR: [&str; 3] = ["or", "or", "||"];
const NOT: [&str; 4] = ["not ", "not ", "!", "! "];

/// How deep they nest: most are short, as those that people write.
const DEPTHS: [usize; 20] = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5];

/// The first `count` expressions of a seed, all different. libpcap refuses some of them.
pub fn generated(seed: u64, count: usize) -> Vec<String> {
    let random = &mut Random::new(seed);
    let mut seen = HashSet::new();
    let mut expressions = Vec::new();
    while expressions.len() < count {
        let depth = one_of(random, &DEPTHS);
        let expression = nested(random, depth);
        let expression = spaced(random, expression);
        if seen.insert(expression.clone()) {
            expressions.push(expression);
        }
    }
    expressions
}

/// Expressions that people write, that the manual explains and that try the edges of the grammar,
/// among them many that libpcap refuses.
pub fn hand_picked() -> Vec<String> {
    let text = include_str!("expressions/hand_picked.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(str::to_string).chain(unwritable()).chain(long()).collect()
}

fn nested(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return primitive::primitive(random);
    }
    let below_this = |random: &mut Random| {
        let depth = below(random, depth);
        nested(random, depth)
    };
    match below(random, 10) {
        0..=3 => {
            let (left, and, right) =
                (nested(random, depth - 1), one_of(random, &AND), below_this(random));
            format!("{left} {and} {right}")
        }
        4..=6 => {
            let (left, or, right) =
                (nested(random, depth - 1), one_of(random, &OR), below_this(random));
            format!("{left} {or} {right}")
        }
        7 => format!("{}{}", one_of(random, &NOT), nested(random, depth - 1)),
        8 => format!("{}({})", one_of(random, &NOT), nested(random, depth - 1)),
        _ => {
            let (left, right) = (nested(random, depth - 1), below_this(random));
            let (outer, inner) = (one_of(random, &["and", "or"]), one_of(random, &AND));
            let middle = primitive::primitive(random);
            format!("({left} {inner} {middle}) {outer} ({right})")
        }
    }
}

/// One in thirty has other white space than others.
fn spaced(random: &mut Random, expression: String) -> String {
    if once_in(random, 30) {
        expression.replace(' ', one_of(random, &["  ", "\t", "\n", " \r\n"]))
    } else {
        expression
    }
}

/// Those that a line of text cannot hold.
fn unwritable() -> Vec<String> {
    [
        "",
        " ",
        "\t\n",
        "# ip",
        "ip\n",
        "\nip",
        "ip\nand\ntcp",
        "ip\r\nor\tarp",
        "ip\u{b}or arp",
        "ip \u{e9}",
    ]
    .map(String::from)
    .into()
}

/// Those that need long jumps, much memory or deep recursion.
fn long() -> Vec<String> {
    let joined = |count: u32, by: &str, term: &dyn Fn(u32) -> String| {
        (1..=count).map(term).collect::<Vec<_>>().join(by)
    };
    let wrapped = |count: usize, inner: &str| "(".repeat(count) + inner + &")".repeat(count);
    let host = |n: u32| format!("host 10.0.{}.{}", n / 250, n % 250);
    vec![
        wrapped(200, "ip"),
        wrapped(200, "tcp port 80 or 443"),
        wrapped(50, "ip[0] & 0xf") + " = 5",
        "(".repeat(200) + "ip",
        "not ".repeat(101) + "ip",
        "!".repeat(100) + "ip",
        joined(300, " or ", &host),
        joined(300, " or ", &|n| format!("tcp port {n}")),
        joined(300, " and ", &|n| format!("not udp port {n}")),
        format!("port {}", joined(300, " or ", &|n| n.to_string())),
        format!("port ({})", joined(300, " or ", &|n| n.to_string())),
        format!("not port {}", joined(300, " or ", &|n| n.to_string())),
        format!("ip and ({})", joined(300, " or ", &|n| format!("ip[8] = {n}"))),
        format!("({}) and tcp", joined(300, " or ", &|n| format!("src net 10.{}.0.0/16", n % 256))),
        joined(300, " or ", &|n| format!("host 2001:db8::{n:x}")),
        joined(300, " and ", &|n| format!("len != {}", n + 2000)),
        joined(100, " or ", &|n| format!("ether host 02:00:00:00:00:{n:02x}")),
        joined(100, " or ", &|n| format!("(ip[{n}] = 1 and tcp[{n}] = 2)")),
        joined(60, " and ", &|n| format!("(host 10.0.0.1 or port {n})")),
        joined(40, " and ", &|_| "vlan".into()),
        joined(40, " and ", &|_| "mpls".into()),
        joined(4, " and ", &|_| "geneve".into()),
        joined(12, " and ", &|_| "geneve".into()),
        joined(30, " or ", &|n| format!("ip6 protochain {n}")),
        format!("{} = 100", joined(100, " + ", &|_| "1".into())),
        format!("{} > 100", joined(100, " + ", &|n| format!("ip[{n}]"))),
        format!("{}1{} = 12", "(1 + ".repeat(11), ")".repeat(11)),
        format!("{}1{} = 21", "(1 + ".repeat(20), ")".repeat(20)),
        format!("{}ip[0]{} > 12", "(ip[0] + ".repeat(14), ")".repeat(14)),
        format!("{}ip[0]{} > 12", "(ip[0] + ".repeat(18), ")".repeat(18)),
        format!("{}0{} = 69", "ip[".repeat(4), "]".repeat(4)),
        format!("{}0{} = 69", "ip[".repeat(20), "]".repeat(20)),
        "ip ".repeat(50),
        "x".repeat(5000),
        format!("port {}", "9".repeat(500)),
        format!("ip proto \\{}", "a".repeat(2000)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_many_and_different_and_always_the_same() {
        let expressions = generated(1, 10_000);
        assert_eq!(expressions.len(), 10_000);
        assert_eq!(expressions.iter().collect::<HashSet<_>>().len(), 10_000);
        assert_eq!(expressions[..100], generated(1, 100));
        assert_ne!(expressions[..100], generated(2, 100));
    }

    #[test]
    fn picked_ones_are_many_and_different() {
        let expressions = hand_picked();
        let distinct: HashSet<_> = expressions.iter().collect();
        assert_eq!(distinct.len(), expressions.len());
        assert!(expressions.len() >= 400, "{}", expressions.len());
    }
}
