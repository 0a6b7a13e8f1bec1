//! How a machine was measured: the `[measured]` table of a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::Problem;

/// Where and when the figures of a machine file were measured, and how far they spread.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The day, in UTC, as RFC 3339 has it: `2026-11-21`.
    pub date: String,
    /// The program that measured, with its version.
    pub by: String,
    /// The processor's name, as the system tells it.
    pub processor: String,
    /// The system's name and release.
    pub system: String,
    /// The CPUs that were described, as the system numbers them.
    pub cpus: String,
    /// How the threads that measured were scheduled.
    pub priority: String,
    /// What a reader should know: what was left out, what is not measured but derived.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Each figure by its key in the file, those that have a value per distance with `.` and its
    /// name after the key; and by names of their own the figures that the model does not have.
    pub figures: BTreeMap<String, MeasuredFigure>,
}

/// The middle half of what was measured of one thing, in the unit of its key.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MeasuredFigure {
    /// A quarter of the samples is below.
    pub low: f64,
    /// Half of them is below.
    pub median: f64,
    /// A quarter is above.
    pub high: f64,
    /// How many samples there are.
    pub samples: u64,
}

/// Checks texts, which are printed, and figures.
pub(super) fn check(measured: &Measured) -> Result<(), Problem> {
    let Measured { date, by, processor, system, cpus, priority, notes, figures } = measured;
    let texts = [
        ("date", date),
        ("by", by),
        ("processor", processor),
        ("system", system),
        ("cpus", cpus),
        ("priority", priority),
    ];
    for (key, text) in texts.into_iter().chain(notes.iter().map(|note| ("notes", note))) {
        if text.chars().any(char::is_control) {
            let problem = "holds a control character: it is printed in reports";
            return Err(Problem::new(format!("measured.{key}"), problem));
        }
    }
    if !is_date(date) {
        return Err(Problem::new("measured.date", format!("is `{date}`, must be a day as in 2026-11-21")));
    }
    for (name, figure) in figures {
        let key = || format!("measured.figures.\"{}\"", name.escape_debug());
        let MeasuredFigure { low, median, high, samples } = *figure;
        if !(0.0 <= low && low <= median && median <= high && high.is_finite()) {
            let problem =
                format!("is {low}, {median}, {high}: must be finite, 0 or more, and in ascending order");
            return Err(Problem::new(key(), problem));
        }
        if samples == 0 {
            return Err(Problem::new(key(), "has 0 samples, must have at least 1"));
        }
    }
    Ok(())
}

/// Whether it is four, two and two digits, with the month and the day within bounds.
fn is_date(text: &str) -> bool {
    let digits = |part: &str, len: usize| {
        (part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
    };
    let mut parts = text.split('-');
    let mut part = |len| digits(parts.next()?, len).flatten();
    let (year, month, day) = (part(4), part(2), part(2));
    let in_bounds = year.is_some()
        && month.is_some_and(|month| (1..=12).contains(&month))
        && day.is_some_and(|day| (1..=31).contains(&day));
    in_bounds && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_a_form() {
        for good in ["2026-11-21", "1970-01-01"] {
            assert!(is_date(good), "{good}");
        }
        for bad in ["", "2026-11", "2026-11-21-1", "2026-13-01", "2026-11-00", "26-11-21", "2026-1-+1", "now"]
        {
            assert!(!is_date(bad), "{bad}");
        }
    }
}
