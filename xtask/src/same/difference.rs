//! The differences between two results.

use serde_json::Value;

use super::program::Output;

/// How many differences of a run are shown.
const SHOWN: usize = 4;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// A path within the JSON, such as `/3/ops_per_us`, or the part of the output.
    place: String,
    old: String,
    new: String,
}

impl Difference {
    fn new(place: impl Into<String>, old: impl ToString, new: impl ToString) -> Self {
        Self { place: place.into(), old: old.to_string(), new: new.to_string() }
    }

    /// The place without the numbers of rows.
    pub(super) fn part(&self) -> String {
        let part = |part: &str| if part.parse::<usize>().is_ok() { "*".to_owned() } else { part.to_owned() };
        self.place.split('/').map(part).collect::<Vec<_>>().join("/")
    }
}

/// The differences in text form, one per line.
pub(super) fn listed(differences: &[Difference]) -> String {
    let mut text = String::new();
    for Difference { place, old, new } in differences.iter().take(SHOWN) {
        text += &format!("\n    {place}: {old} is now {new}");
    }
    if let Some(more) = differences.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text += &format!("\n    and {more} more");
    }
    text
}

/// All differences.
pub(super) fn between(old: &Output, new: &Output) -> Vec<Difference> {
    let mut differences = Vec::new();
    if old.status != new.status {
        let status = |output: &Output| output.status.map_or("none".to_owned(), |status| status.to_string());
        differences.push(Difference::new("exit status", status(old), status(new)));
    }
    match (serde_json::from_str(&old.out), serde_json::from_str(&new.out)) {
        (Ok(before), Ok(after)) => values(String::new(), &before, &after, &mut differences),
        _ => differences.extend(texts("standard output", &old.out, &new.out)),
    }
    if differences.is_empty() {
        // The values are the same, but written in another way.
        differences.extend(texts("standard output", &old.out, &new.out));
    }
    differences.extend(texts("standard error", &old.err, &new.err));
    differences
}

/// The text for a value that is on one side only.
const NOTHING: &str = "(nothing)";

fn values(place: String, old: &Value, new: &Value, differences: &mut Vec<Difference>) {
    let mut both = |key: &str, old: Option<&Value>, new: Option<&Value>| {
        let place = format!("{place}/{key}");
        match (old, new) {
            (Some(old), Some(new)) => values(place, old, new, differences),
            (old, new) => {
                let shown = |value: Option<&Value>| value.map_or(NOTHING.to_owned(), Value::to_string);
                differences.push(Difference::new(place, shown(old), shown(new)));
            }
        }
    };
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                both(&index.to_string(), old.get(index), new.get(index));
            }
        }
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                both(key, old.get(key), new.get(key));
            }
        }
        _ if old == new => {}
        _ => differences.push(Difference::new(place, old, new)),
    }
}

/// The first line that differs.
fn texts(place: &str, old: &str, new: &str) -> Option<Difference> {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or(NOTHING).to_owned();
    (old != new).then(|| Difference::new(format!("{place}, line {}", same + 1), line(old), line(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(out: &str) -> Output {
        Output { status: Some(0), out: out.to_owned(), err: String::new() }
    }

    fn shown(old: &str, new: &str) -> Vec<String> {
        let differences = between(&output(old), &output(new));
        differences.iter().map(|d| format!("{}: {} -> {}", d.place, d.old, d.new)).collect()
    }

    #[test]
    fn values_are_named_by_their_place() {
        let old = r#"[{"ops": 1.5, "events": {"sleeps": 3}}, {"ops": 2.5}]"#;
        assert_eq!(shown(old, old), [""; 0]);
        let new = r#"[{"ops": 1.25, "events": {"wakes": 3}}]"#;
        let expected = [
            "/0/events/sleeps: 3 -> (nothing)",
            "/0/events/wakes: (nothing) -> 3",
            "/0/ops: 1.5 -> 1.25",
            r#"/1: {"ops":2.5} -> (nothing)"#,
        ];
        assert_eq!(shown(old, new), expected);
    }

    #[test]
    fn output_that_is_no_json_is_shown_by_its_first_line() {
        assert_eq!(shown("a\nb\n", "a\nc\n"), ["standard output, line 2: b -> c"]);
        assert_eq!(shown("[]", ""), ["standard output, line 1: [] -> (nothing)"]);
        assert_eq!(shown("[1]", "[ 1]"), ["standard output, line 1: [1] -> [ 1]"]);
    }

    #[test]
    fn endings_and_messages_count_too() {
        let failed = Output { status: Some(1), out: "[]".into(), err: "error: deadlock".into() };
        let differences = between(&output("[]"), &failed);
        let expected = [
            Difference::new("exit status", 0, 1),
            Difference::new("standard error, line 1", NOTHING, "error: deadlock"),
        ];
        assert_eq!(differences, expected);
    }

    #[test]
    fn a_few_are_listed_and_parts_have_no_rows() {
        let differences: Vec<_> = (0..6).map(|row| Difference::new(format!("/{row}/ops"), 1, 2)).collect();
        let text = listed(&differences);
        assert!(text.starts_with("\n    /0/ops: 1 is now 2\n"), "{text}");
        assert!(text.ends_with("\n    /3/ops: 1 is now 2\n    and 2 more"), "{text}");
        assert!(differences.iter().all(|difference| difference.part() == "/*/ops"));
    }
}
