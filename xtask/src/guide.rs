//! Documents that both a reader and a test follow step by step.
//!
//! A step is a fenced block of code. The paragraph above the block, or the fence, says what to do
//! with it:
//!
//! | paragraph | the block |
//! |---|---|
//! | New file `PATH`: | is the file |
//! | In `PATH`, after the line that begins with `TEXT`: | comes after that line |
//! | In `PATH`, before the line that begins with `TEXT`: | comes before it |
//! | In `PATH`, instead of the line that begins with `TEXT`: | replaces it |
//!
//! | fence | the block |
//! |---|---|
//! | `sh` | is commands, one per line |
//! | `text`, after `sh` | is lines of their output, in any order |
//!
//! A command with `# must fail` after it must end with another status than 0. In lines of output,
//! numbers may differ, and `...` at an end matches anything.
//!
//! The instruction is the last sentence of the paragraph; other sentences may precede it. Spaces
//! before a line are ignored when its beginning is compared, and only one line may have that
//! beginning.

use std::fs;
use std::mem;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A block of the document, and the action for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the document where the block begins, from 1.
    pub line: usize,
    /// The action.
    pub action: Action,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Makes a file.
    Create(String, String),
    /// Changes a file.
    Edit(Edit),
    /// Runs commands.
    Run(Vec<Command>),
    /// Compares these lines with the output of the commands before it.
    Expect(Vec<String>),
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file, from the root of the repository.
    pub path: String,
    /// The position of the text relative to the line.
    pub place: Place,
    /// The beginning of the line.
    pub anchor: String,
    /// The text that is inserted.
    pub text: String,
}

/// The position of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After the line.
    After,
    /// Before the line.
    Before,
    /// Instead of the line.
    InsteadOf,
}

/// A command of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// How it must end.
    pub end: End,
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With exit status 0.
    Success,
    /// With another status.
    Failure,
}

/// The steps of a document.
///
/// # Errors
///
/// If the document does not say what to do with a block.
pub fn steps(markdown: &str) -> Result<Vec<Step>> {
    let mut paragraph = Paragraph::default();
    let mut block: Option<Block> = None;
    let mut steps: Vec<Step> = Vec::new();
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let line = markdown[..range.start].lines().count() + 1;
                block = Some(Block { line, language: language.into_string(), text: String::new() });
            }
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell) => {
                paragraph = Paragraph::default();
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some(block) = block.take() {
                    steps.push(block.step(&mem::take(&mut paragraph), steps.last())?);
                }
            }
            Event::Text(text) => match &mut block {
                Some(block) => block.text += &text,
                None => paragraph.text += &text,
            },
            Event::Code(code) => {
                paragraph.text.push(CODE);
                paragraph.codes.push((paragraph.text.len(), code.into_string()));
            }
            Event::SoftBreak => paragraph.text.push(' '),
            _ => {}
        }
    }
    Ok(steps)
}

/// The character that stands for code in the text of a paragraph.
const CODE: char = '`';

/// Text with code in it.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Each with the position in the text where it ends.
    codes: Vec<(usize, String)>,
}

/// A block of code.
struct Block {
    line: usize,
    language: String,
    text: String,
}

impl Block {
    /// The action for the block, after that paragraph and that step.
    fn step(self, paragraph: &Paragraph, last: Option<&Step>) -> Result<Step> {
        let Self { line, language, text } = self;
        let after_commands = matches!(last, Some(Step { action: Action::Run(_), .. }));
        let action = match &*language {
            "sh" => Action::Run(text.lines().map(command).collect()),
            "text" if after_commands => Action::Expect(text.lines().map(str::to_owned).collect()),
            _ => paragraph.placed(text).with_context(|| format!("line {line}"))?,
        };
        Ok(Step { line, action })
    }
}

impl Paragraph {
    /// The paragraph's instruction for the block below it.
    fn placed(&self, text: String) -> Result<Action> {
        const PLACES: &[(&str, Place)] = &[
            ("after the line", Place::After),
            ("before the line", Place::Before),
            ("instead of the line", Place::InsteadOf),
        ];
        if let Some((_, codes)) = self.sentence("New file ") {
            if let [path] = codes[..] {
                return Ok(Action::Create(path.to_owned(), text));
            }
        } else if let Some((sentence, codes)) = self.sentence("In ")
            && let [path, anchor] = codes[..]
            && let Some((_, place)) = PLACES.iter().find(|(words, _)| sentence.contains(words))
        {
            let (path, anchor) = (path.to_owned(), anchor.to_owned());
            return Ok(Action::Edit(Edit { path, place: *place, anchor, text }));
        }
        bail!("the paragraph above the block does not say where it goes: {:?}", self.text)
    }

    /// The last sentence that begins in this way and continues with code, and all code in it.
    fn sentence(&self, begin: &str) -> Option<(&str, Vec<&str>)> {
        let at = self.text.rfind(&format!("{begin}{CODE}"))?;
        let codes = self.codes.iter().filter(|(end, _)| *end > at).map(|(_, code)| code.trim());
        Some((&self.text[at..], codes.collect()))
    }
}

fn command(line: &str) -> Command {
    let (line, end) = match line.split_once("# must fail") {
        Some((line, _)) => (line, End::Failure),
        None => (line, End::Success),
    };
    Command { words: line.split_whitespace().map(str::to_owned).collect(), end }
}

impl Edit {
    /// Makes the change below `root`.
    ///
    /// # Errors
    ///
    /// If the file does not exist, or if not exactly one line begins with the anchor.
    pub fn apply(&self, root: &Path) -> Result<()> {
        let path = root.join(&self.path);
        let before = fs::read_to_string(&path).with_context(|| self.path.clone())?;
        fs::write(&path, self.applied_to(&before).with_context(|| self.path.clone())?)?;
        Ok(())
    }

    fn applied_to(&self, before: &str) -> Result<String> {
        let begins = |line: &&str| line.trim_start().starts_with(&self.anchor);
        let count = before.lines().filter(begins).count();
        ensure!(count == 1, "{count} lines begin with `{}`, where there must be one", self.anchor);
        let mut after = String::new();
        for line in before.split_inclusive('\n') {
            match self.place {
                Place::After if begins(&line) => after.extend([line, &self.text]),
                Place::Before if begins(&line) => after.extend([&self.text, line]),
                Place::InsteadOf if begins(&line) => after.push_str(&self.text),
                _ => after.push_str(line),
            }
        }
        Ok(after)
    }
}

/// The first of the lines that is missing in the output. All numbers count as equal, and so do
/// spaces of any length.
pub fn missing<'a>(expected: &'a [String], output: &str) -> Option<&'a str> {
    let printed: Vec<_> = output.lines().map(shape).collect();
    let prints = |line: &str| match line.strip_suffix("...") {
        Some(begin) => printed.iter().any(|printed| printed.starts_with(&shape(begin))),
        None => printed.contains(&shape(line)),
    };
    expected.iter().map(String::as_str).find(|line| !prints(line))
}

/// The line with 0 for each number, and with single spaces.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let mut in_number = false;
        for c in word.chars() {
            let begins = c.is_ascii_digit() && !in_number;
            in_number = c.is_ascii_digit() || in_number && c == '.';
            match in_number {
                true if begins => shape.push('0'),
                true => {}
                false => shape.push(c),
            }
        }
        shape.push(' ');
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
# A guide

Not this: in `b`.

Do so. New file `a/b.rs`:

```rust
fn f() {}

fn g() {}
```

And then. In `c.md`, after the
line that begins with ``| `x` |``:

```markdown
| `y` |
```

```sh
cargo test -p a
cargo test -p b   # must fail
```

It prints:

```text
test a ... ok
```
";

    #[test]
    fn reads_a_document() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let edit = Edit {
            path: "c.md".to_owned(),
            place: Place::After,
            anchor: "| `x` |".to_owned(),
            text: "| `y` |\n".to_owned(),
        };
        let expected = [
            (7, Action::Create("a/b.rs".to_owned(), "fn f() {}\n\nfn g() {}\n".to_owned())),
            (16, Action::Edit(edit)),
            (
                20,
                Action::Run(vec![
                    Command { words: words("cargo test -p a"), end: End::Success },
                    Command { words: words("cargo test -p b"), end: End::Failure },
                ]),
            ),
            (27, Action::Expect(vec!["test a ... ok".to_owned()])),
        ];
        let expected = expected.map(|(line, action)| Step { line, action });
        assert_eq!(steps(DOCUMENT).expect("is a guide"), expected);
    }

    #[test]
    fn wants_to_know_where_a_block_goes() {
        for document in [
            "```rust\nfn f() {}\n```\n",
            "In `a`:\n\n```rust\nfn f() {}\n```\n",
            "In `a`, near the line that begins with `b`:\n\n```rust\nfn f() {}\n```\n",
            "New file `a`:\n\nOther text.\n\n```rust\nfn f() {}\n```\n",
            "```text\nwithout commands\n```\n",
        ] {
            let error = steps(document).expect_err(document);
            assert!(format!("{error:#}").contains("does not say where it goes"), "{error:#}");
        }
    }

    #[test]
    fn edits_at_the_one_line() {
        let edited = |place, anchor: &str| {
            let (path, text) = ("a".to_owned(), "new\n".to_owned());
            Edit { path, place, anchor: anchor.to_owned(), text }.applied_to("one\n  two\nthree\n")
        };
        assert_eq!(edited(Place::After, "two").unwrap(), "one\n  two\nnew\nthree\n");
        assert_eq!(edited(Place::Before, "two").unwrap(), "one\nnew\n  two\nthree\n");
        assert_eq!(edited(Place::InsteadOf, "two").unwrap(), "one\nnew\nthree\n");
        let error = edited(Place::After, "four").unwrap_err().to_string();
        assert_eq!(error, "0 lines begin with `four`, where there must be one");
        assert!(edited(Place::After, "t").unwrap_err().to_string().starts_with("2 lines"));
    }

    #[test]
    fn compares_all_but_numbers() {
        let missing = |expected: &str, output| {
            let expected: Vec<_> = expected.lines().map(str::to_owned).collect();
            missing(&expected, output).map(str::to_owned)
        };
        assert_eq!(missing("a.rs:12:3: ok, 1.25 ms", "x\na.rs:7:10:   ok, 300 ms\n"), None);
        assert_eq!(missing("b\nc", "a\nb\nx\nc\n"), None);
        assert_eq!(missing("c\nb", "a\nb\nx\nc\n"), None);
        assert_eq!(missing("b\nd", "a\nb\nx\nc\n"), Some("d".to_owned()));
        assert_eq!(missing("test a ... ok", "test a ... FAILED"), Some("test a ... ok".to_owned()));
        assert_eq!(missing("a 1", "a b"), Some("a 1".to_owned()));
        assert_eq!(missing("a b ...\n...\nc", "a b c\nx\nc\n"), None);
        assert_eq!(missing("a b ...", "a x c\n"), Some("a b ...".to_owned()));
    }
}
