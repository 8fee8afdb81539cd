//! Draws the measurements: for each row, a bar per way, as a multiple of ours.

use std::fmt::Write as _;

use super::measured::Measured;
use super::table::microseconds;

const WIDTH: f64 = 760.0;
/// Where bars begin, after the names.
const LEFT: f64 = 210.0;
/// Where the longest bar ends, before its figure.
const RIGHT: f64 = 640.0;
const BAR: f64 = 14.0;
const LINE: f64 = 19.0;
const TITLE: f64 = 34.0;

/// Colors for light and dark pages.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:13px}\
    .quiet{fill:#59636e}.ours{fill:#1a7f5a}.other{fill:#afb8c1}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}.ours{fill:#3fb98a}.other{fill:#4d5661}}";

/// The picture of all rows. Bars show the processor time on a logarithmic scale, so that even a fortieth is visible.
pub(super) fn draw(rows: &[Measured<'_>]) -> String {
    let mut body = String::new();
    let mut y = 4.0;
    for row in rows {
        y += TITLE - LINE;
        let _ = writeln!(
            body,
            "<text class=\"title\" x=\"8\" y=\"{:.0}\">{}</text>",
            y + 11.0,
            escaped(row.row.title)
        );
        y += LINE + 2.0;
        let times: Vec<f64> = row.turns.iter().map(|turn| turn.samples.cpu_us()).collect();
        let (least, most) =
            times.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &time| (low.min(time), high.max(time)));
        for (turn, time) in row.turns.iter().zip(times) {
            let class = if turn.way.is_ours() { "ours" } else { "other" };
            let length = length(time, least, most);
            let baseline = y + 11.0;
            let _ = writeln!(
                body,
                "<text x=\"{:.0}\" y=\"{baseline:.0}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{BAR:.0}\" rx=\"2\"/>\
                 <text class=\"quiet\" x=\"{:.1}\" y=\"{baseline:.0}\">{}</text>",
                LEFT - 8.0,
                escaped(&turn.name),
                LEFT + length + 6.0,
                microseconds(time)
            );
            y += LINE;
        }
    }
    y += 24.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {y:.0}\" width=\"{WIDTH:.0}\" role=\"img\">\n\
         <style>{STYLE}</style>\n{body}<text class=\"quiet\" x=\"8\" y=\"{:.0}\">CPU time per operation, on a \
         logarithmic scale within each row; shorter is faster</text>\n</svg>\n",
        y - 8.0
    )
}

/// The shortest bar of a row is a tenth of the longest, unless they are close.
fn length(time: f64, least: f64, most: f64) -> f64 {
    let all = RIGHT - LEFT;
    let decades = (most / least).log10().max(1.0) / 0.9;
    all * (1.0 + (time / most).log10() / decades)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_lengths_range_from_a_tenth_to_the_full_width() {
        assert!((length(500.0, 0.5, 500.0) - (RIGHT - LEFT)).abs() < 1e-9);
        let shortest = length(0.5, 0.5, 500.0);
        assert!((shortest - (RIGHT - LEFT) / 10.0).abs() < 1e-9);
        assert!(length(9.0, 8.0, 10.0) > length(8.0, 8.0, 10.0));
    }
}
