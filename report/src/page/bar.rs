//! Bars and legends: the small pictures of pages, as inline SVG. Each is next to the number it shows.

use maud::{Markup, html};

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

/// `value` on a scale where `most` has the length `length`. A value other than 0 stays visible.
pub(super) fn scaled(value: u64, most: u64, length: u64) -> u64 {
    if value == 0 || most == 0 {
        return 0;
    }
    let scaled = u128::from(value.min(most)) * u128::from(length) / u128::from(most);
    u64::try_from(scaled).unwrap_or(length).max(1)
}
