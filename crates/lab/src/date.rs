//! Days.

use std::time::{Duration, SystemTime};

/// The day of a moment, in UTC, as RFC 3339 has it.
///
/// Source: the calendar of eras of 400 years that begin in March; Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`.
pub fn date(moment: SystemTime) -> String {
    const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // Since 1 March of the year 0.
    let days = since.as_secs() / SECONDS_PER_DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let cases = [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(day(seconds), expected);
        }
    }
}
