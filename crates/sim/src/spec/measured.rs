//! How a machine was measured: the `[measured]` table of a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::Problem;

/// When and where the figures of a machine file were measured, and how far they spread.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The day, in UTC, as RFC 3339 has it: `2026-11-21`.
    pub date: String,
    /// The program that measured, with its version.
    pub by: String,
    /// The processor's name, as reported by the system.
    pub processor: String,
    /// The system's name and release.
    pub system: String,
    /// The CPUs that were described, in the system's numbering.
    pub cpus: String,
    /// The scheduling of the threads that measured.
    pub priority: String,
    /// Remarks for readers: what was left out, and which figures are derived rather than measured.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Each figure by its key in the file. If a key has a value per distance, `.` and the
    /// distance's name follow the key. Figures that the model does not have are listed under other
    /// names.
    pub figures: BTreeMap<String, MeasuredFigure>,
}

/// The middle half of the samples of one figure, in the unit of its key.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MeasuredFigure {
    /// The lower quartile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub high: f64,
    /// The number of samples.
    pub samples: u64,
}

/// Checks the texts, which are printed, and the figures.
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

/// Whether the text is four, two and two digits, with month and day in range.
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
