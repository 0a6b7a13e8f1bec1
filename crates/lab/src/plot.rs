//! Pictures of results, as SVG. Text remains text, and the same results give the same bytes.
//!
//! | module | what |
//! |---|---|
//! | `simulated` | throughput and waits of locks against the number of threads |
//! | `reproduced`, `listed` | a published table beside its simulation |
//! | `headline` | two variants of a table, with the conclusion as the title |
//! | `overview` | an overview of all tables |
//! | `measured` | speed of measured locks as a multiple of a baseline's |
//! | `panel` | a frame with its axes, and the scales of the axes |
//! | `marks` | colours, markers and labels |

mod headline;
mod listed;
mod marks;
mod measured;
mod overview;
mod panel;
mod reproduced;
mod simulated;

use std::cell::RefCell;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle, WHITE};

use crate::names;
use nearlock_sim::spec::MachineSpec;

pub use headline::{Headline, headline};
pub use measured::{Comparison, Speed, measured};
pub use overview::{Effects, Overview, overview};
pub use reproduced::{panels, reproduced};
pub use simulated::simulated;

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture: {0}")]
pub struct PlotError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PlotError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// A picture or a part of one. Coordinates are pixels from its upper left corner.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Texts that a reader sees who points at a figure.
#[derive(Default)]
struct Hints(RefCell<Vec<((i32, i32), String)>>);

impl Hints {
    /// Adds the text for the figure at this point.
    fn add(&self, at: (i32, i32), text: String) {
        self.0.borrow_mut().push((at, text));
    }
}

/// The radius around a point in which its hint is shown, in pixels.
const HINT_RADIUS: i32 = 9;

/// Draws a picture of this width and height, in pixels. `instead` is the text for readers who
/// cannot see it.
fn picture(
    size: (u32, u32),
    instead: &str,
    draw: impl for<'a> FnOnce(&Area<'a>, &Hints) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let hints = Hints::default();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area, &hints)?;
        area.present()?;
    }
    let hint = |((x, y), text): ((i32, i32), String)| {
        format!(
            "<circle class=\"hint\" cx=\"{x}\" cy=\"{y}\" r=\"{HINT_RADIUS}\" fill=\"none\" \
             pointer-events=\"all\"><title>{}</title></circle>\n",
            escaped(&text)
        )
    };
    let hints: String = hints.0.into_inner().into_iter().map(hint).collect();
    let svg = svg.replacen("<svg ", "<svg role=\"img\" ", 1);
    let head = format!(">\n<title>{}</title>\n{DARK_STYLE}\n", escaped(instead));
    let svg = svg.replacen(">\n", &head, 1);
    Ok(svg.replacen("</svg>", &format!("{hints}</svg>"), 1))
}

/// Exchanges the neutral colours of a picture in dark mode. Style rules override attributes, so no
/// other code depends on the mode. The colours of series are visible in both modes.
const DARK_STYLE: &str = "<style>@media (prefers-color-scheme:dark){\
[fill=\"#FFFFFF\"]{fill:#16181d}[stroke=\"#FFFFFF\"]{stroke:#16181d}\
[fill=\"#222222\"]{fill:#e8e8e8}[stroke=\"#222222\"]{stroke:#e8e8e8}\
[fill=\"#666666\"]{fill:#a8a8a8}[stroke=\"#666666\"]{stroke:#a8a8a8}\
[fill=\"#DDDDDD\"]{fill:#3a3d44}[stroke=\"#DDDDDD\"]{stroke:#3a3d44}\
[fill=\"#000000\"]{fill:#f4f4f4}[stroke=\"#000000\"]{stroke:#f4f4f4}\
[fill=\"#0072B2\"]{fill:#3a9fd8}[stroke=\"#0072B2\"]{stroke:#3a9fd8}\
[fill=\"#882255\"]{fill:#c75b93}[stroke=\"#882255\"]{stroke:#c75b93}}</style>";

/// The picture with the mark of partial results beneath it, if there is one.
pub fn marked(svg: String, mark: Option<&str>) -> String {
    let Some(mark) = mark else { return svg };
    let size = |name: &str| {
        let (_, behind) = svg.split_once(&format!(" {name}=\""))?;
        behind.split_once('"')?.0.parse::<i32>().ok()
    };
    let (Some(width), Some(height)) = (size("width"), size("height")) else { return svg };
    let (higher, mark) = (height + LINE, escaped(mark));
    let text =
        format!("<text x=\"{MARGIN}\" y=\"{height}\" fill=\"#666666\" font-size=\"12\">{mark}</text>\n");
    svg.replacen(&format!(" height=\"{height}\""), &format!(" height=\"{higher}\""), 1)
        .replacen(&format!("0 0 {width} {height}"), &format!("0 0 {width} {higher}"), 1)
        .replacen("</svg>", &format!("{text}</svg>"), 1)
}

/// Escapes text for SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Font sizes, in pixels.
#[derive(Clone, Copy)]
enum Size {
    Title = 17,
    Heading = 14,
    Body = 12,
}

/// The backend draws letters smaller than requested by this factor.
const BACKEND_FONT_SCALE: f64 = 1.24;
/// Mean width of a letter, relative to its size. The reader chooses the fonts, so this is an
/// estimate.
const LETTER_WIDTH: f64 = 0.57;

const DARK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GREY: RGBColor = RGBColor(0x66, 0x66, 0x66);
const PALE: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// The style of letters. Their position is the left end, at middle height.
fn letters(size: Size, color: RGBColor) -> TextStyle<'static> {
    let weight = if matches!(size, Size::Body) { FontStyle::Normal } else { FontStyle::Bold };
    ("sans-serif", f64::from(size as u8) * BACKEND_FONT_SCALE, weight)
        .into_font()
        .color(&color.to_rgba())
        .pos(Pos::new(HPos::Left, VPos::Center))
}

/// The approximate width of text of body size, in pixels.
fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * Size::Body as u8 as f64 * LETTER_WIDTH).ceil() as i32
}

/// Height of a line of text, in pixels.
const LINE: i32 = 16;

/// The simulated machine, and how far its latencies can be trusted.
fn machine_line(machine: &MachineSpec) -> String {
    let MachineSpec { description, confidence, .. } = machine;
    let (cpus, confidence) = (machine.cpus(), names::confidence(*confidence));
    format!("Machine: {description}; {cpus} CPUs; latencies: {confidence}.")
}

/// Space at the edges, in pixels.
const MARGIN: i32 = 14;

/// The top of a picture: a title and, beneath it, paragraphs broken into lines.
struct Head {
    title: String,
    lines: Vec<String>,
}

impl Head {
    /// The head of a picture of this width.
    fn new(title: String, paragraphs: &[String], width: u32) -> Self {
        let room = width as i32 - 2 * MARGIN;
        Self { title, lines: paragraphs.iter().flat_map(|text| broken(text, room)).collect() }
    }

    fn height(&self) -> u32 {
        (MARGIN + LINE * (self.lines.len() as i32 + 2)) as u32
    }

    fn draw(&self, area: &Area) -> Result<(), PlotError> {
        area.draw_text(&self.title, &letters(Size::Title, DARK), (MARGIN, MARGIN + 4))?;
        for (line, y) in self.lines.iter().zip((MARGIN + 10 + LINE..).step_by(LINE as usize)) {
            area.draw_text(line, &letters(Size::Body, GREY), (MARGIN, y))?;
        }
        Ok(())
    }
}

/// Breaks text into lines that are no wider than `width`.
fn broken(text: &str, width: i32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("begins with one line, and grows");
        if last.is_empty() {
            last.push_str(word);
        } else if text_width(last) + text_width(" ") + text_width(word) <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_as_high_as_its_lines() {
        let short = Head::new("title".to_owned(), &["one line".to_owned()], 900);
        let long = Head::new("title".to_owned(), &["word ".repeat(60)], 900);
        assert_eq!((short.lines.len(), long.lines.len()), (1, 3));
        assert_eq!(long.height() - short.height(), 2 * LINE as u32);
        assert_eq!(long.lines.join(" ").split(' ').count(), 60, "no word is lost");
        assert!(long.lines.iter().all(|line| text_width(line) <= 900 - 2 * MARGIN));
    }

    #[test]
    fn a_mark_has_a_line_of_its_own_beneath_the_picture() {
        let svg = picture((100, 50), "", |_, _| Ok(())).unwrap();
        assert_eq!(marked(svg.clone(), None), svg);
        let marked = marked(svg, Some("PARTIAL: 1 of 2"));
        assert!(marked.contains(" height=\"66\" viewBox=\"0 0 100 66\""), "{marked}");
        assert!(
            marked.contains(" y=\"50\" ") && marked.ends_with(">PARTIAL: 1 of 2</text>\n</svg>\n"),
            "{marked}"
        );
    }

    #[test]
    fn letters_are_escaped() {
        let svg = picture((100, 50), "1 < 2", |area, hints| {
            hints.add((7, 8), "d & e".to_owned());
            Ok(area.draw_text("a < b & \"c\"", &letters(Size::Body, DARK), (0, 0))?)
        });
        let svg = svg.unwrap();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;"));
        assert!(svg.contains("<title>1 &lt; 2</title>"), "{svg}");
        assert!(
            svg.contains("cx=\"7\" cy=\"8\"") && svg.contains("<title>d &amp; e</title></circle>\n</svg>")
        );
    }
}
