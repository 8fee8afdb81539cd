//! The changelog of a release: the unreleased entries get its version and date.

use anyhow::{Context as _, Result, bail};
use semver::Version;
use time::Date;

const UNRELEASED: &str = "## Unreleased\n";

/// The changelog after a release. Errors: nothing is listed as unreleased.
pub(super) fn released(text: &str, version: &Version, date: Date) -> Result<String> {
    let (before, after) =
        text.split_once(UNRELEASED).context("the changelog has no section \"Unreleased\"")?;
    let section = after.split("\n## ").next().unwrap_or_default();
    if section.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        bail!("the changelog lists nothing under \"Unreleased\"; say there what users get");
    }
    Ok(format!("{before}{UNRELEASED}\n## {version} - {date}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn today() -> Date {
        Date::from_calendar_date(2030, time::Month::March, 4).expect("a date")
    }

    #[test]
    fn unreleased_entries_move_under_the_dated_version() {
        let text = "# Changelog\n\n## Unreleased\n\n### Added\n- One.\n\n## 0.1.0 - 2029-01-01\n- Old.\n";
        let text = released(text, &Version::new(0, 2, 0), today()).expect("entries");
        assert_eq!(
            text,
            "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2030-03-04\n\n### Added\n- One.\n\n## 0.1.0 - 2029-01-01\n- Old.\n"
        );
    }

    #[test]
    fn changelog_without_unreleased_entries_is_rejected() {
        for text in ["# Changelog\n", "## Unreleased\n", "## Unreleased\n\n### Added\n\n## 0.1.0\n- Old.\n"] {
            assert!(released(text, &Version::new(0, 2, 0), today()).is_err(), "{text}");
        }
    }
}
