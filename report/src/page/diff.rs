//! The page of a comparison, with what got worse first.

use maud::{Markup, html};

use super::bar::bar;
use super::{check_name, page, shown, status, time, together, verdict};
use crate::diff::{Diff, Setting, Side, Timing, Turn, Words};
use crate::matrix::model_name;
use crate::model::CheckId;
use crate::words::of_reason;

impl Diff {
    /// The comparison as one self-contained HTML page.
    ///
    /// ```
    /// use gatewright_report::{Diff, Profile, Report, Thresholds};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// let page = Diff::of(&report, &report, Thresholds::default()).to_html();
    /// assert!(page.contains("Nothing got worse"));
    /// ```
    pub fn to_html(&self) -> String {
        let title = if self.worse.is_empty() { "Nothing got worse" } else { "Something got worse" };
        page(
            title,
            &html! {
                header { h1 class=(if self.worse.is_empty() { "pass" } else { "fail" }) { (title) } }
                main {
                    (sides(&self.old, &self.new))
                    (self.counts())
                    (settings(&self.settings))
                    (turns("worse", "Worse", &self.worse))
                    (words("otherwise", "Fails for another reason", &self.fails_otherwise))
                    (turns("hidden", "Failed before, not run now", &self.hidden))
                    (turns("not-run", "Passed before, not run now", &self.not_run))
                    (words("models", "Answered by another model", &self.other_model))
                    (timings("slower", "Slower", &self.slower, &together(&self.thresholds.words())))
                    (timings("faster", "Faster", &self.faster, &together(&self.thresholds.words())))
                    (turns("better", "Better", &self.better))
                }
            },
        )
    }

    fn counts(&self) -> Markup {
        let counts = [
            ("worse", self.worse.len()),
            ("fails for another reason", self.fails_otherwise.len()),
            ("failed before, not run now", self.hidden.len()),
            ("passed before, not run now", self.not_run.len()),
            ("another model", self.other_model.len()),
            ("slower", self.slower.len()),
            ("faster", self.faster.len()),
            ("better", self.better.len()),
        ];
        html! {
            @if self.is_empty() { p { "No cell changed." } } @else {
                div.wide tabindex="0" role="group" aria-label="Changed cells" {
                    table {
                        caption { "Changed cells" }
                        thead { tr { @for (name, _) in counts { th.number scope="col" { (name) } } } }
                        tbody { tr { @for (_, count) in counts { td.number { (count) } } } }
                    }
                }
            }
        }
    }
}

fn sides(old: &Side, new: &Side) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label="The two reports" {
            table {
                caption { "The two reports" }
                thead {
                    tr { td { } @for name in ["verdict", "endpoint", "generated"] { th scope="col" { (name) } } }
                }
                tbody {
                    @for (name, side) in [("old", old), ("new", new)] {
                        tr {
                            th scope="row" { (name) }
                            td { (verdict(side.overall_status)) }
                            td.value { code { (shown(&side.endpoint)) } }
                            td { (shown(&side.generated_at)) }
                        }
                    }
                }
            }
        }
    }
}

fn settings(settings: &[Setting]) -> Markup {
    html! {
        @if !settings.is_empty() {
            section aria-labelledby="settings" {
                h2 #settings.warn { "Different settings" }
                p { "The reports differ in these settings, which may explain the changes below." }
                (table("settings", &["setting", "old", "new"], &html! {
                    @for Setting { pointer, old, new } in settings {
                        tr {
                            th scope="row" { code { (pointer) } }
                            @for value in [old, new] { td.value { code { (shown(&value.to_string())) } } }
                        }
                    }
                }))
            }
        }
    }
}

fn turns(id: &str, title: &str, turns: &[Turn]) -> Markup {
    section(
        id,
        title,
        turns.len(),
        &html! {
            (table(id, &["check", "model", "old", "new", "why"], &html! {
                @for turn in turns {
                    tr {
                        (cell(turn.id, turn.model.as_deref()))
                        td { (status(turn.old)) }
                        td { (status(turn.new)) }
                        td.value { (shown(&of_reason(turn.explanation.as_deref().unwrap_or_default()))) }
                    }
                }
            }))
        },
    )
}

fn words(id: &str, title: &str, words: &[Words]) -> Markup {
    section(
        id,
        title,
        words.len(),
        &html! {
            (table(id, &["check", "model", "old", "new"], &html! {
                @for one in words {
                    tr {
                        (cell(one.id, one.model.as_deref()))
                        td.value { (shown(&one.old)) }
                        td.value { (shown(&one.new)) }
                    }
                }
            }))
        },
    )
}

fn timings(id: &str, title: &str, timings: &[Timing], threshold: &str) -> Markup {
    let most = timings.iter().map(|timing| timing.old_ms.max(timing.new_ms)).max().unwrap_or(0);
    section(
        id,
        title,
        timings.len(),
        &html! {
            p { (title) " " (threshold) "." }
            (table(id, &["check", "model", "old", "new", "old above new"], &html! {
                @for timing in timings {
                    tr {
                        (cell(timing.id, timing.model.as_deref()))
                        td.number { (time(timing.old_ms)) }
                        td.number { (time(timing.new_ms)) }
                        td { (bar(timing.old_ms, most, "skipped")) (bar(timing.new_ms, most, "first")) }
                    }
                }
            }))
        },
    )
}

fn section(id: &str, title: &str, count: usize, content: &Markup) -> Markup {
    html! {
        @if count > 0 {
            section aria-labelledby=(id) { h2 id=(id) { (title) ": " (count) } (content) }
        }
    }
}

fn table(labelled_by: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-labelledby=(labelled_by) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

fn cell(id: CheckId, model: Option<&str>) -> Markup {
    html! { th scope="row" { (check_name(id)) } td { (shown(model_name(model))) } }
}
