//! Quantities as people write them: `200kpps`, `1Gbps`, `64MiB`, `2h30m`, RFC 3339 times.
//!
//! Decimal prefixes are powers of 1000 (k, M, G, T), binary ones of 1024 (Ki, Mi, Gi, Ti). Every
//! error says what was expected, with an example.

use std::time::Duration;

use engine::pacer::{FCS_BYTES, L1_OVERHEAD_BYTES, Rate};
pub use store::words::{counted, grouped};

const DECIMAL: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
const BINARY: [(&str, f64); 4] = [
    ("Ki", 1024.0),
    ("Mi", 1024.0 * 1024.0),
    ("Gi", 1024.0 * 1024.0 * 1024.0),
    ("Ti", 1024.0 * 1024.0 * 1024.0 * 1024.0),
];

/// Splits `12.5kpps` into the number and what follows it.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.replace('_', "").parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

fn factor(prefix: &str, table: &[(&str, f64)]) -> Option<f64> {
    // K is written for k so often that refusing it helps nobody.
    let prefix = if prefix == "K" { "k" } else { prefix };
    table.iter().find(|(name, _)| *name == prefix).map(|(_, factor)| *factor)
}

/// A sending rate: `200kpps`, `1.5Mpps`, `1Gbps` (layer 2, FCS counted), `10Gbps/l1` (on the wire:
/// preamble and gap counted too), `max`.
pub fn rate(text: &str) -> Result<Rate, String> {
    const EXPECTED: &str = "expected a rate such as 200kpps, 1.5Mpps, 1Gbps (layer 2 with FCS), \
                            10Gbps/l1 (layer 1, on the wire) or max";
    if text == "max" {
        return Ok(Rate::Unlimited);
    }
    let wrong = || format!("«{text}»: {EXPECTED}");
    let (number, unit) = split_number(text).ok_or_else(wrong)?;
    if number <= 0.0 {
        return Err(format!("«{text}»: a rate is more than 0; {EXPECTED}"));
    }
    if let Some(prefix) = unit.strip_suffix("pps") {
        return Ok(Rate::Packets(number * factor(prefix, &DECIMAL).ok_or_else(wrong)?));
    }
    let (unit, overhead_bytes) = match unit.rsplit_once('/') {
        Some((unit, "l1" | "L1")) => (unit, L1_OVERHEAD_BYTES),
        Some((unit, "l2" | "L2")) => (unit, FCS_BYTES),
        Some((_, "s")) | None => (unit, FCS_BYTES),
        Some(_) => return Err(wrong()),
    };
    let prefix = ["bps", "bit/s", "b/s"].iter().find_map(|suffix| unit.strip_suffix(suffix));
    let bps = number * factor(prefix.ok_or_else(wrong)?, &DECIMAL).ok_or_else(wrong)?;
    Ok(Rate::Bits { bps, overhead_bytes })
}

/// Says a rate in words, with the layer that it counts.
pub fn rate_in_words(rate: Rate) -> String {
    match rate {
        Rate::Unlimited => "as fast as the port takes them".into(),
        Rate::Packets(pps) => format!("{}pps", scaled(pps)),
        Rate::Bits { bps, overhead_bytes: L1_OVERHEAD_BYTES } => {
            format!("{}bit/s on layer 1 (preamble, FCS and gap counted)", scaled(bps))
        }
        Rate::Bits { bps, .. } => format!("{}bit/s on layer 2 (FCS counted)", scaled(bps)),
    }
}

/// A span of time: `10s`, `500ms`, `2h30m`, `1.5h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("«{text}»: expected a time such as 10s, 500ms, 2h30m (ns, us, ms, s, m, h, d)");
    let mut rest = text.trim();
    let mut total_ns = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit_ns = match rest[..end].trim() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3_600e9,
            "d" => 86_400e9,
            _ => return Err(wrong()),
        };
        total_ns += number * unit_ns;
        rest = &rest[end..];
    }
    if total_ns == 0.0 && !text.trim().is_empty() {
        return Err(format!("«{text}»: a time is more than 0, such as 10s, 500ms, 2h30m"));
    }
    if total_ns <= 0.0 || total_ns >= u64::MAX as f64 {
        return Err(wrong());
    }
    Ok(Duration::from_nanos(total_ns.round() as u64))
}

/// An amount of memory or disk in bytes: `1500`, `64MiB`, `1GB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("«{text}»: expected a size such as 1500, 64MiB or 1GB");
    let (number, unit) = split_number(text).ok_or_else(wrong)?;
    let prefix = unit.strip_suffix('B').unwrap_or(unit);
    let factor = factor(prefix, &DECIMAL).or_else(|| factor(prefix, &BINARY)).ok_or_else(wrong)?;
    let bytes = number * factor;
    if bytes >= u64::MAX as f64 { Err(wrong()) } else { Ok(bytes.round() as u64) }
}

/// The same, where less than `bytes_min` is of no use.
pub fn bytes_from(bytes_min: u64, text: &str) -> Result<u64, String> {
    match bytes(text)? {
        enough if enough >= bytes_min => Ok(enough),
        _ => Err(format!("«{text}»: at least {}MiB are needed", bytes_min >> 20)),
    }
}

/// A whole number, as people write large ones: `1000000`, `1_000_000`, `1M`, `2.5k`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("«{text}»: expected a whole number such as 1000000, 1_000_000 or 1M");
    let (number, unit) = split_number(text).ok_or_else(wrong)?;
    let value = number * factor(unit, &DECIMAL).ok_or_else(wrong)?;
    if value.fract() != 0.0 || value >= 2f64.powi(63) { Err(wrong()) } else { Ok(value as u64) }
}

/// A moment in ns since the Unix epoch: RFC 3339 with a zone (`2026-12-01T10:00:00Z`,
/// `…10:00:00.000000001+01:00`), `now`, a time before now (`-5m`), or seconds since the epoch
/// (`@1764583200.5`).
pub fn moment(text: &str, now_ns: u64) -> Result<u64, String> {
    let wrong = |why: &str| {
        format!(
            "«{text}»: {why}expected a time with a zone such as 2026-12-01T10:00:00Z or \
             2026-12-01T11:00:00.5+01:00, a time before now such as -5m, now, or @SECONDS"
        )
    };
    if text == "now" {
        return Ok(now_ns);
    }
    if let Some(before) = text.strip_prefix('-') {
        let before_ns = duration(before).map_err(|_| wrong(""))?.as_nanos() as u64;
        return Ok(now_ns.saturating_sub(before_ns));
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return epoch_ns(seconds).ok_or_else(|| wrong(""));
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(timestamp) => u64::try_from(timestamp.as_nanosecond())
            .map_err(|_| wrong("times before 1970 or after 2554 cannot be kept; ")),
        Err(_) if text.parse::<jiff::civil::DateTime>().is_ok() => {
            Err(wrong("the zone is missing (append Z for UTC); "))
        }
        Err(_) => Err(wrong("")),
    }
}

/// `1764583200.000000001` exactly, which floating point could not hold.
fn epoch_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction_ns: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// A moment as RFC 3339 in UTC with ns; empty for 0, which stands for «unknown».
pub fn moment_in_words(time_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(time_ns)) {
        Ok(timestamp) if time_ns > 0 => format!("{timestamp:.9}"),
        _ => String::new(),
    }
}

/// Three significant digits and a decimal prefix, with a space before what follows: `1.23 M`.
pub fn scaled(value: f64) -> String {
    let mut scale = DECIMAL[0];
    for candidate in DECIMAL {
        if value.abs() >= candidate.1 {
            scale = candidate;
        }
    }
    let shown = value / scale.1;
    let digits = match shown.abs() {
        small if scale.1 == 1.0 && small.fract() == 0.0 => 0,
        small if small < 10.0 => 2,
        medium if medium < 100.0 => 1,
        _ => 0,
    };
    format!("{shown:.digits$} {}", scale.0)
}

/// A span of ns in the unit that suits it: `1.23 µs`.
pub fn ns_in_words(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!(rate("200kpps"), Ok(Rate::Packets(200_000.0)));
        assert_eq!(rate("1.5Mpps"), Ok(Rate::Packets(1_500_000.0)));
        assert_eq!(rate("7pps"), Ok(Rate::Packets(7.0)));
        let l2 = Rate::Bits { bps: 1e9, overhead_bytes: FCS_BYTES };
        assert_eq!(rate("1Gbps"), Ok(l2));
        assert_eq!(rate("1Gbit/s"), Ok(l2));
        assert_eq!(rate("1000Mbps/l2"), Ok(l2));
        let l1 = Rate::Bits { bps: 1e10, overhead_bytes: L1_OVERHEAD_BYTES };
        assert_eq!(rate("10Gbps/l1"), Ok(l1));
        assert_eq!(rate("max"), Ok(Rate::Unlimited));
        for wrong in ["", "fast", "0pps", "10", "10Xpps", "10Gbps/l3", "-5pps", "1e3pps"] {
            assert!(rate(wrong).unwrap_err().contains("200kpps"), "{wrong}");
        }
    }

    #[test]
    fn durations_add_up() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2h30m"), Ok(Duration::from_secs(9_000)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1_500)));
        for wrong in ["", "10", "s", "10x", "0s", "999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(duration("0h0m").unwrap_err().starts_with("«0h0m»: a time is more than 0"));
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("1GB"), Ok(1_000_000_000));
        assert_eq!(bytes("1500"), Ok(1_500));
        assert_eq!(bytes("4k"), Ok(4_000));
        assert!(bytes("12 parsecs").is_err());
        assert_eq!(bytes_from(2 << 20, "2MiB"), Ok(2 << 20));
        for less in ["0", "2097151", "2MB"] {
            let expected = format!("«{less}»: at least 2MiB are needed");
            assert_eq!(bytes_from(2 << 20, less), Err(expected));
        }
        assert_eq!(count("1M"), Ok(1_000_000));
        assert_eq!(count("1_000"), Ok(1_000));
        assert!(count("1.5").is_err());
        assert!(count("lots").is_err());
    }

    #[test]
    fn moments_need_a_zone_and_keep_nanoseconds() {
        let now = 2_000_000_000_000_000_000;
        assert_eq!(moment("1970-01-01T00:00:01.000000005Z", now), Ok(1_000_000_005));
        assert_eq!(moment("1970-01-01T01:00:01+01:00", now), Ok(1_000_000_000));
        assert_eq!(moment("-10s", now), Ok(now - 10_000_000_000));
        assert_eq!(moment("now", now), Ok(now));
        assert_eq!(moment("@1764583200.000000001", now), Ok(1_764_583_200_000_000_001));
        let error = moment("2026-12-01T10:00:00", now).unwrap_err();
        assert!(error.contains("zone is missing"), "{error}");
        assert!(moment("yesterday", now).is_err());
        assert!(moment("1960-01-01T00:00:00Z", now).unwrap_err().contains("1970"));
    }

    #[test]
    fn figures_are_shown_with_sense() {
        assert_eq!(scaled(1_234_567.0), "1.23 M");
        assert_eq!(scaled(0.5), "0.50 ");
        assert_eq!(scaled(42.0), "42 ");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(ns_in_words(1_500), "1.50 µs");
        assert_eq!(moment_in_words(1_000_000_005), "1970-01-01T00:00:01.000000005Z");
    }
}
