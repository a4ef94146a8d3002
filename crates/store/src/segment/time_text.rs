//! Nanoseconds since the Unix epoch as text in UTC that sorts by time: `20261201T031522.123456789Z`.

const NS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// The time in ISO 8601's basic format. Years 1970 to 2554, in the Gregorian calendar.
pub(super) fn utc(time_ns: u64) -> String {
    let seconds = time_ns / NS_PER_SECOND;
    let (year, month, day) = date(seconds / SECONDS_PER_DAY);
    let second_of_day = seconds % SECONDS_PER_DAY;
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}.{:09}Z",
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
        time_ns % NS_PER_SECOND
    )
}

/// Year, month and day of a day counted from 1970-01-01.
fn date(mut day: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let february = days_of_year(year) - 337;
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

fn days_of_year(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        // Checked against date(1): date -u -d @SECONDS.
        for (seconds, text) in [
            (0, "19700101T000000"),
            (951_782_399, "20000228T235959"),
            (951_782_400, "20000229T000000"),
            (1_709_164_800, "20240229T000000"),
            (1_796_094_922, "20261201T031522"),
            (4_107_542_399, "21000228T235959"),
            (4_107_542_400, "21000301T000000"),
            (18_446_744_073, "25540721T233433"),
        ] {
            assert_eq!(utc(seconds * NS_PER_SECOND), format!("{text}.000000000Z"));
        }
        assert_eq!(utc(u64::MAX), "25540721T233433.709551615Z");
    }
}
