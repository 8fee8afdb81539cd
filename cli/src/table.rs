//! Tables of text for terminals, and times in them.

use std::borrow::Cow;
use std::io::{self, Write};

use gatewright::visible::visible;
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};
#[cfg(feature = "server")]
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::terminal;

/// Number of spaces between two columns.
const GAP: usize = 2;
/// Width below which a column is not narrowed.
const MIN_WIDTH: usize = 8;
/// Tables of fewer columns have no heads.
const MIN_HEADED: usize = 3;

/// Writes rows in columns as wide as their longest cell. On a terminal that is narrower than that, the widest columns are
/// narrowed, and their cells continue on further lines. If words would have to be broken for that, each row becomes a block of
/// lines instead. `right`: columns whose cells are aligned to the right.
pub(crate) fn write<const COLUMNS: usize>(
    out: &mut impl Write,
    rows: &[[String; COLUMNS]],
    right: std::ops::Range<usize>,
) -> io::Result<()> {
    write_within(out, rows, right, terminal::width())
}

/// `width`: that of the terminal, in columns.
fn write_within<const COLUMNS: usize>(
    out: &mut impl Write,
    rows: &[[String; COLUMNS]],
    right: std::ops::Range<usize>,
    width: Option<usize>,
) -> io::Result<()> {
    let rows: Vec<[_; COLUMNS]> = rows.iter().map(|row| row.each_ref().map(|cell| visible(cell))).collect();
    let mut widths = [0; COLUMNS];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(display_width(cell));
        }
    }
    let natural = widths;
    if let Some(width) = width {
        let within = width.saturating_sub(GAP * COLUMNS.saturating_sub(1));
        let mut least = [0; COLUMNS];
        for row in &rows {
            for (least, cell) in least.iter_mut().zip(row) {
                let words = cell.split(' ').map(display_width);
                *least = (*least).max(words.max().unwrap_or_default());
            }
        }
        if COLUMNS >= MIN_HEADED && least.iter().sum::<usize>() > within {
            return write_blocks(out, &rows, width);
        }
        narrow(&mut widths, &least, within);
    }
    for row in &rows {
        let mut column = 0;
        let cells: [Vec<Cow<'_, str>>; COLUMNS] = row.each_ref().map(|cell| {
            let (width, whole) = (widths[column], natural[column]);
            column += 1;
            if width < whole { textwrap::wrap(cell, unbroken(width)) } else { vec![Cow::Borrowed(&**cell)] }
        });
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let cell = cell.get(at).map_or("", |part| &**part);
                let space = " ".repeat(width.saturating_sub(display_width(cell)));
                line.extend(if right.contains(&column) { [&space, cell] } else { [cell, &space] });
                line.push_str(&" ".repeat(GAP));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

/// Writes the rows below the heads one after the other: the first cell, and below it the others with their heads.
fn write_blocks<const COLUMNS: usize>(
    out: &mut impl Write,
    rows: &[[Cow<'_, str>; COLUMNS]],
    width: usize,
) -> io::Result<()> {
    let Some((heads, rows)) = rows.split_first() else { return Ok(()) };
    for row in rows {
        for (column, (head, cell)) in heads.iter().zip(row).enumerate() {
            let line =
                if column == 0 { cell.to_string() } else { format!("  {}: {cell}", head.to_lowercase()) };
            let is_empty = matches!(&**cell, "" | "-");
            if column == 0 || !is_empty {
                writeln!(out, "{}", textwrap::fill(&line, unbroken(width).subsequent_indent("    ")))?;
            }
        }
    }
    Ok(())
}

/// Lines end only between words: a broken URL or name cannot be copied.
fn unbroken<'a>(width: usize) -> Options<'a> {
    Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation)
}

/// Narrows the widest columns until all fit into this width together, as far as their longest words allow.
fn narrow(widths: &mut [usize], least: &[usize], within: usize) {
    // A wider one would be narrowed to this anyway.
    for (width, least) in widths.iter_mut().zip(least) {
        *width = (*width).min(within.max(MIN_WIDTH).max(*least));
    }
    while widths.iter().sum::<usize>() > within {
        let narrowable =
            widths.iter_mut().zip(least).filter(|(width, least)| **width > MIN_WIDTH.max(**least));
        match narrowable.map(|(width, _)| width).max() {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
}

#[cfg(feature = "server")]
/// A time in UTC; a dash if there is none.
pub(crate) fn instant(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else { return "-".to_owned() };
    let time = i64::try_from(seconds).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<usize>) -> String {
        let rows =
            [["ID", "NAME", "LIMITS"], ["key_1", "app", "60 requests/min, 100000 tokens/day, 5 at once"]];
        let mut out = Vec::new();
        write_within(&mut out, &rows.map(|row| row.map(str::to_owned)), 0..0, width)
            .expect("it fits in memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let wide = "ID     NAME  LIMITS\nkey_1  app   60 requests/min, 100000 tokens/day, 5 at once\n";
        assert_eq!(table(None), wide);
        assert_eq!(table(Some(58)), wide);
    }

    #[test]
    fn long_cells_continue_on_further_lines_of_a_narrow_terminal() {
        let narrow = "\
ID     NAME  LIMITS
key_1  app   60 requests/min, 100000
             tokens/day, 5 at once
";
        assert_eq!(table(Some(40)), narrow);
        // Nothing is lost on a terminal that is too narrow for a table.
        assert_eq!(
            table(Some(20)),
            "key_1\n  name: app\n  limits: 60\n    requests/min,\n    100000\n    tokens/day, 5 at\n    once\n"
        );
        let words: Vec<String> = table(Some(1)).split_whitespace().map(str::to_owned).collect();
        assert!(
            ["60", "100000", "once"].iter().all(|word| words.iter().any(|found| found == word)),
            "{words:?}"
        );
    }
}
