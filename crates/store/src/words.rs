//! Numbers in sentences.

/// A number with its noun, which is plural unless there is just one: `1 packet`, `2,000 packets`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// A whole number in groups of three digits: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let said = [0, 1, 2, 1_234_567].map(|count| counted(count, "packet"));
        assert_eq!(said, ["0 packets", "1 packet", "2 packets", "1,234,567 packets"]);
        assert_eq!(grouped(123), "123");
    }
}
