//! HTML pages about reports: each is one file without scripts and external resources.
//!
//! Markup is made with maud, which escapes every value. Text of a report never becomes a URL: all links point into the
//! page itself or to evidence files below its folder. The page sets a `Content-Security-Policy` that allows only its
//! own style sheet.

mod bar;
mod diff;
mod report;
mod trend;

use std::borrow::Cow;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::matrix::duration;
use crate::model::{CheckId, OverallStatus, Status};
use gatewright_safe::visible::visible;

pub use report::html;
pub use trend::{MAX_TREND_ENDPOINTS, MAX_TREND_REPORTS, Trend};

const STYLE: &str = include_str!("page/style.css");

/// What allows the style of the pages in a `Content-Security-Policy`: its hash, which a test recomputes. A page that is
/// shown in a frame also needs it in the policy of the page around it.
///
/// ```
/// use gatewright_report::{PAGE_STYLE, Profile, Report, html};
///
/// let page = html(&Report::skeleton(&Profile::default(), "https://gateway.example.com"), &[]);
/// assert!(page.contains(&format!("style-src {PAGE_STYLE};")));
/// ```
pub const PAGE_STYLE: &str = "'sha256-JVxphBVxC/2d7fyfu/a+Iujx1nbZxl3a9Z09pbqpx7o='";

/// A whole page. `title` is text.
fn page(title: &str, body: &Markup) -> String {
    let policy = format!("default-src 'none'; style-src {PAGE_STYLE}; base-uri 'none'; form-action 'none'");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (shown(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                footer { "Made by gatewright " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    };
    page.into_string()
}

/// Text of a report on one line, with invisible and reordering characters escaped.
fn shown(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// Text of a report on several lines.
fn shown_lines(text: &str) -> String {
    let lines = text.split('\n').map(|line| visible(line.strip_suffix('\r').unwrap_or(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A result as a word; the colour only repeats it.
fn status(status: Status) -> Markup {
    html! { span class=(status.name()) { (status.name()) } }
}

fn verdict(status: OverallStatus) -> Markup {
    html! { span class=(status.name()) { (status.name()) } }
}

/// Rows of names and values, without missing values.
fn facts(rows: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in rows {
                @if let Some(value) = value {
                    dt { (name) }
                    dd { (value) }
                }
            }
        }
    }
}

fn text(value: &str) -> Markup {
    html! { (shown(value)) }
}

/// The name of a check. A line may end after each of its underscores, and nowhere else.
fn check_name(id: CheckId) -> Markup {
    html! {
        code {
            @for (index, word) in id.name().split('_').enumerate() {
                @if index > 0 { "_" wbr; }
                (word)
            }
        }
    }
}

/// A duration for people; no line ends inside.
fn time(ms: u64) -> String {
    duration(ms).replace(' ', NO_BREAK)
}

/// A space at which no line ends.
const NO_BREAK: &str = "\u{a0}";
/// What numbers on a page are of.
const UNITS: [&str; 6] = ["ms", "s", "min", "bytes", "events", "%"];

/// Prose in which no line ends between a number and its unit.
fn together(text: &str) -> String {
    let is_number = |word: &str| {
        let digits = word.trim_start_matches('(');
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')', '?', '!']));
    let mut kept = String::with_capacity(text.len());
    let mut last = "";
    for (place, word) in text.split(' ').enumerate() {
        if place > 0 {
            kept.push_str(if is_number(last) && is_unit(word) { NO_BREAK } else { " " });
        }
        kept.push_str(word);
        last = word;
    }
    kept
}

fn code(value: &str) -> Markup {
    html! { code { (shown(value)) } }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn no_line_ends_between_a_number_and_its_unit() {
        for (prose, kept) in [
            ("no answer within 5000 ms.", "no answer within 5000\u{a0}ms."),
            ("broke off (after 213 to 219 bytes, in", "broke off (after 213 to 219\u{a0}bytes, in"),
            ("by more than 20 % and 100 ms", "by more than 20\u{a0}% and 100\u{a0}ms"),
            ("the 3 models  s", "the 3 models  s"),
            ("", ""),
        ] {
            assert_eq!(together(prose), kept);
        }
        assert_eq!(time(125_000), "2\u{a0}min\u{a0}5\u{a0}s");
    }

    #[test]
    fn policy_allows_the_style_of_the_page() {
        let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
        assert_eq!(PAGE_STYLE, format!("'sha256-{digest}'"));
    }

    /// The browser hashes the text between the tags, so it must stay unchanged.
    #[test]
    fn style_stands_in_the_page_as_it_is() {
        assert!(page("", &html! {}).contains(&format!("<style>{STYLE}</style>")));
        assert!(!STYLE.contains('<') && !STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
