//! Bars and legends: the small pictures of pages, as inline SVG. Each is next to the number it shows.

use maud::{Markup, html};

use crate::matrix::participle;
use crate::model::Status;

/// Width of a bar's picture in its own units.
const WIDTH: u64 = 200;
const HEIGHT: u64 = 14;

/// A bar with a length between 0 and `most`. The number is next to it: screen readers skip the picture.
pub(super) fn bar(value: u64, most: u64, class: &str) -> Markup {
    html! {
        svg.bar viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.track width=(WIDTH) height=(HEIGHT) {}
            rect class=(class) width=(scaled(value, most, WIDTH)) height=(HEIGHT) {}
        }
    }
}

/// The results of a report as one bar, with a key below. Each key has its number: the colors only repeat it.
pub(super) fn results(counts: [(Status, usize); 3]) -> Markup {
    let total = counts.iter().map(|(_, count)| *count as u64).sum();
    let mut from = 0;
    let parts = counts.map(|(status, count)| {
        let start = scaled(from, total, WIDTH);
        from += count as u64;
        (participle(status), start, scaled(from, total, WIDTH) - start)
    });
    html! {
        figure {
            svg.results viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true"
                focusable="false" {
                rect.track width=(WIDTH) height=(HEIGHT) {}
                @for (class, start, width) in parts { rect class=(class) x=(start) width=(width) height=(HEIGHT) {} }
            }
            figcaption {
                ul.keys { @for (status, count) in counts { (key(participle(status), participle(status), &count.to_string())) } }
            }
        }
    }
}

/// The meaning of a color, and its value.
pub(super) fn key(class: &str, name: &str, value: &str) -> Markup {
    html! {
        li {
            svg.key viewBox="0 0 30 10" aria-hidden="true" focusable="false" {
                rect class=(class) width="30" height="10" {}
            }
            (name) ": " (value)
        }
    }
}

/// `value` on a scale where `most` has the length `length`. A value other than 0 stays visible.
pub(super) fn scaled(value: u64, most: u64, length: u64) -> u64 {
    if value == 0 || most == 0 {
        return 0;
    }
    let scaled = u128::from(value.min(most)) * u128::from(length) / u128::from(most);
    u64::try_from(scaled).unwrap_or(length).max(1)
}
