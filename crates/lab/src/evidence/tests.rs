use super::*;
use crate::published::{Row, TABLES, Table};
use crate::reproduce::Cell;
use crate::reproduce::Varied;
use crate::settings::{Assignment, Value};

/// All cells with `factor` times the published figure, or 1 if there is none.
fn cells(table: &'static Table, factor: f64) -> Vec<Cell> {
    let cell = |row: &Row, variant: usize| {
        let figure = row.values[variant].map_or(1.0, |value| value.mean * factor);
        Cell { low: Some(figure * 0.9), high: Some(figure * 1.1), ..Cell::new(table, row, variant, figure) }
    };
    table.rows().iter().flat_map(|row| (0..table.variants.len()).map(move |v| cell(row, v))).collect()
}

fn reproduced(factor: f64) -> Vec<Reproduced> {
    let change = Assignment { setting: "machine.jitter", value: Value::Float(0.0) };
    let varied = |table| vec![Varied { change, cells: cells(table, 0.5) }];
    TABLES
        .iter()
        .map(|&table| Reproduced { table, cells: cells(table, factor), varied: varied(table) })
        .collect()
}

fn page(reproduced: &[Reproduced], look: impl Fn(&Page)) {
    let made = [("processor", "Abacus | 7 <8>".to_owned()), ("partial", "true".to_owned())];
    let (command, mark) = ("nearlock reproduce --band", Some("PARTIAL: 1 of 2 tables"));
    let run = EvidenceRun { command, vary: Vary::Band, reproduced, made: &made, mark };
    look(&Page::new(run).unwrap());
}

#[test]
fn every_table_is_on_both_pages_with_its_claim_and_all_cells() {
    page(&reproduced(1.0), |page| {
        let (html, markdown) = (page.html().unwrap(), page.markdown().unwrap());
        for claim in DOCUMENTS.iter().flat_map(|document| document.tables) {
            assert!(html.contains(&format!("<h3 id=\"{0}\">{0}</h3>", claim.table)), "{}", claim.table);
            assert!(markdown.contains(&format!("\n### {}\n", claim.table)), "{}", claim.table);
            assert!(markdown.contains(claim.claim), "{}", claim.table);
            assert!(html.contains(&claim.claim.replace('\'', "&#39;")), "{}", claim.table);
        }
        let count = page.run.reproduced.iter().map(|reproduced| reproduced.cells.len()).sum::<usize>();
        assert_eq!(
            markdown.matches(" fitted |\n").count()
                + markdown.matches(" seen |\n").count()
                + markdown.matches(" predicted |\n").count(),
            count
        );
        for text in [&html, &markdown] {
            assert!(text.contains("nearlock reproduce --band") && text.contains("machine.jitter=0"));
            assert!(text.contains("PARTIAL: 1 of 2 tables"), "{text}");
        }
        assert!(html.contains("<tr><td>processor</td><td>Abacus | 7 &#60;8&#62;</td></tr>"), "{html}");
        assert!(markdown.contains("\n- processor: Abacus | 7 <8>\n- partial: true\n"), "{markdown}");
    });
}

#[test]
fn both_pages_begin_with_how_many_conclusions_hold_and_which_do_not() {
    page(&reproduced(1.0), |page| {
        let (hold, all) = (page.hold(), page.conclusions());
        assert!(0 < hold && hold <= all && all - hold == page.fails().len());
        let said = format!("{hold} of {all} published conclusions");
        let (html, markdown) = (page.html().unwrap(), page.markdown().unwrap());
        let before = |text: &str, end: &str| text[..text.find(end).unwrap()].to_owned();
        assert!(before(&html, "<figure").contains(&said), "{said}");
        assert!(before(&markdown, "tables of the documents").contains(&said), "{said}");
        for (table, text) in page.fails() {
            assert!(before(&markdown, "tables of the documents").contains(text), "{table}: {text}");
        }
    });
}

#[test]
fn the_page_stands_alone_and_every_picture_has_words() {
    page(&reproduced(1.0), |page| {
        let html = page.html().unwrap();
        for outside in ["src=", "<link", "@import", "url(", "http-equiv"] {
            assert!(!html.contains(outside), "{outside}");
        }
        // SVG namespaces are names. They are not fetched.
        assert_eq!(html.matches("http").count(), html.matches("xmlns=\"http").count());
        assert!(html.matches("role=\"img\"").count() > TABLES.len());
        for picture in html.split("<svg ").skip(1) {
            let (head, _) = picture.split_once("</svg>").unwrap();
            assert!(head.contains("<title>") || head.contains("aria-hidden"), "{head}");
        }
    });
}

#[test]
fn a_window_shows_one_of_two_forms_of_the_overview() {
    page(&reproduced(1.0), |page| {
        let html = page.html().unwrap();
        let overview = page.overview.as_ref().unwrap();
        let shown = |form: &str, svg: &str| html.contains(&format!("<div class=\"{form}\">\n{svg}\n</div>"));
        assert!(shown("broad", &overview.wide) && shown("narrow", &overview.narrow));
        assert!(html.contains(" .broad { display: none; } .narrow { display: block; } }"));
        assert!(!html.contains("min-width"), "no picture is wider than the window");
        assert_eq!(page.overview(), Some(overview.wide.as_str()), "the file is wide");
    });
}

#[test]
fn misfits_and_reversed_conclusions_are_named() {
    page(&reproduced(1.2), |page| {
        let html = page.html().unwrap();
        assert!(html.contains("off by more than 10 %: ") && html.contains("(+20.0 %)"));
    });
    let mut all = reproduced(1.0);
    all[0].varied[0].cells = cells(all[0].table, 1.0);
    let flip = all[0].cells.iter().position(|cell| cell.variant == "cna" && cell.row.threads() == Some(142));
    all[0].varied[0].cells[flip.unwrap()].simulated = 0.1;
    page(&all, |page| {
        let markdown = page.markdown().unwrap();
        let turned = "cna-locktorture, CNA is ahead of stock from 8 threads up: no longer holds";
        assert!(markdown.contains(turned), "{markdown}");
        assert!(page.html().unwrap().contains("holds, but not with machine.jitter=0"));
    });
}

#[test]
fn a_page_names_missing_results_and_the_digest_of_its_constants() {
    page(&reproduced(1.0), |page| {
        let (html, markdown) = (page.html().unwrap(), page.markdown().unwrap());
        let missing: Vec<_> = DOCUMENTS.iter().filter_map(|document| document.missing).collect();
        assert_eq!(missing.len(), 1);
        assert!(markdown.contains(&format!("\n\nNot here: {}.\n", missing[0])), "{markdown}");
        assert!(html.contains("<b>Not here:</b> the message"));
        assert!(markdown.contains(&constants().unwrap()));
        assert!(markdown.contains("error in points") && html.contains("error in points"));
    });
}

#[test]
fn a_run_of_one_table_is_a_page_of_one_table() {
    let all = reproduced(1.0);
    page(&all[1..2], |page| {
        assert_eq!((page.documents.len(), page.summaries.len()), (1, 1));
        assert!(page.overview().is_some());
        let (html, markdown) = (page.html().unwrap(), page.markdown().unwrap());
        for text in [html, markdown] {
            assert!(
                text.contains("1 of 12 tables") && text.contains("Not in it: cna-locktorture, cna-open1, ")
            );
        }
    });
    page(&all, |page| assert!(!page.html().unwrap().contains("Not in it")));
    // The table of the slow paths has no headline figure.
    let share = all.iter().position(|reproduced| reproduced.table.name == "mutex-slowpath-share").unwrap();
    page(&all[share..=share], |page| assert!(page.overview().is_none() && page.html().is_ok()));
}
