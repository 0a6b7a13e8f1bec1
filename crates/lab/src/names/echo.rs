//! What a user has written, as messages repeat it.

/// The greatest length of a repeated name, in characters.
const LENGTH_MAX: usize = 60;

/// The text with its control characters escaped, which a terminal would obey.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The text with its control characters escaped, and without the end of a long one.
pub fn echoed(text: &str) -> String {
    const ELLIPSIS: &str = "...";
    let escaped = escaped(text);
    if escaped.chars().count() <= LENGTH_MAX {
        return escaped;
    }
    escaped.chars().take(LENGTH_MAX - ELLIPSIS.len()).chain(ELLIPSIS.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_names_are_shortened() {
        assert_eq!(echoed("cna-v13"), "cna-v13");
        assert_eq!(echoed("\u{1f512}"), "\u{1f512}");
        assert_eq!(echoed("\u{1b}[31mred\n\u{9b}"), "\\u{1b}[31mred\\n\\u{9b}");
        assert_eq!(echoed(&"a".repeat(60)), "a".repeat(60));
        assert_eq!(echoed(&"\u{e4}".repeat(61)), format!("{}...", "\u{e4}".repeat(57)));
    }
}
