//! Whether standard output and standard error are terminals, and whether they support colors.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ColorChoice;

/// The value of `--color`, as the position in [`CHOICES`].
static CHOICE: AtomicU8 = AtomicU8::new(0);
const CHOICES: [(ColorChoice, &str); 3] =
    [(ColorChoice::Auto, "auto"), (ColorChoice::Always, "always"), (ColorChoice::Never, "never")];

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const RED: &str = "\x1b[1;31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

/// The color choice of an unparsed command line: errors in it are also printed in color.
pub(crate) fn requested_color(arguments: &[OsString]) -> ColorChoice {
    let words: Vec<&str> =
        arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let given = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color")? {
        "" => words.get(at + 1).copied(),
        rest => rest.strip_prefix('='),
    });
    let known = CHOICES.into_iter().find(|(_, name)| Some(*name) == given);
    known.map_or(ColorChoice::Auto, |(choice, _)| choice)
}

/// From now on, colors follow `--color`.
pub(crate) fn choose(choice: ColorChoice) {
    let place = CHOICES.iter().position(|(known, _)| *known == choice).unwrap_or_default();
    CHOICE.store(u8::try_from(place).unwrap_or_default(), Ordering::Relaxed);
}

/// Whether to write colors to a stream: according to `--color`, otherwise `NO_COLOR` and `CLICOLOR_FORCE`, otherwise only
/// to a terminal that supports colors.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    match CHOICES[usize::from(CHOICE.load(Ordering::Relaxed))].0 {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // NO_COLOR counts with any nonempty value.
        ColorChoice::Auto if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) => false,
        ColorChoice::Auto if is_set("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => {
            stream.is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
        }
    }
}

/// Width of standard output in columns, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout())
        .map(|(width, _)| usize::from(width.0))
        .filter(|width| *width > 0)
}

/// Whether to show progress: only on a terminal.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Writes text with or without colors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        Self { is_on: colour(stream) }
    }

    /// Always without colors.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self { is_on: false }
    }

    pub(crate) fn paint(self, style: &str, text: impl std::fmt::Display) -> String {
        if self.is_on { format!("{style}{text}{RESET}") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice_of(line: &str) -> ColorChoice {
        requested_color(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn color_choice_is_read_before_parsing() {
        assert_eq!(choice_of("gatewright models --color always"), ColorChoice::Always);
        assert_eq!(choice_of("gatewright --color=never chat hi"), ColorChoice::Never);
        for other in [
            "gatewright",
            "gatewright --color",
            "gatewright --color=purple",
            "gatewright chat -- --color=never",
        ] {
            assert_eq!(choice_of(other), ColorChoice::Auto, "{other}");
        }
    }
}
