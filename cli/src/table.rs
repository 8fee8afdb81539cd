//! Tables of text for terminals, and times in them.

use std::io::{self, Write};

use gatewright::visible::visible;
#[cfg(feature = "server")]
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Writes rows in columns as wide as their longest cell. `right`: columns whose cells are aligned to the right.
pub(crate) fn write<const COLUMNS: usize>(
    out: &mut impl Write,
    rows: &[[String; COLUMNS]],
    right: std::ops::Range<usize>,
) -> io::Result<()> {
    let rows: Vec<[_; COLUMNS]> = rows.iter().map(|row| row.each_ref().map(|cell| visible(cell))).collect();
    let mut widths = [0; COLUMNS];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            let cells = if right.contains(&column) { [&space, &**cell] } else { [&**cell, &space] };
            line.extend(cells);
            line.push_str("  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(feature = "server")]
/// A time in UTC; a dash if there is none.
pub(crate) fn instant(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else { return "-".to_owned() };
    let time = i64::try_from(seconds).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| seconds.to_string())
}
