//! Numbers in the text of files.
//!
//! The functions of `str` that search and split are generic, so this crate would compile them
//! again. They were a third of what it compiled. Hence the loops over bytes here and where these
//! files are read.

/// The decimal number at the beginning of a text, and the text after it. `None` if the text begins
/// otherwise, or the number is too large.
pub fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut rest) = (0_u64, text);
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number.checked_mul(10)?.checked_add((digit - b'0') as u64)?;
        rest = after;
    }
    (rest.len() < text.len()).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_its_digits_end() {
        assert_eq!(number(b"0"), Some((0, &b""[..])));
        assert_eq!(number(b"007-9"), Some((7, &b"-9"[..])));
        assert_eq!(number(b"18446744073709551615 1"), Some((u64::MAX, &b" 1"[..])));
        for garbage in [&b""[..], b"-1", b" 1", b"max", b"18446744073709551616", b"99999999999999999999"] {
            assert_eq!(number(garbage), None, "{garbage:?}");
        }
    }
}
