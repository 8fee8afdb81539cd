//! The section of the additional checks in the page of a report.

use maud::{Markup, html};

use super::{shown, status, time, together};
use crate::protocols::ProtocolReport;

/// A table of the checks, with what is broken below each.
pub(super) fn section(document: &ProtocolReport) -> Markup {
    html! {
        section aria-labelledby="protocols" {
            h2 #protocols { "Other protocols" }
            p { "Additional checks of this kit. The report itself does not contain them." }
            div.wide tabindex="0" role="group" aria-labelledby="protocols" {
                table {
                    thead {
                        tr {
                            @for name in ["check", "model", "result"] { th scope="col" { (name) } }
                            th.number scope="col" { "time" }
                            th scope="col" { "why" }
                        }
                    }
                    tbody {
                        @for check in &document.checks {
                            tr {
                                th scope="row" { (name(&check.id)) }
                                td { (shown(&check.model)) }
                                td { (status(check.status)) }
                                td.number { @if let Some(ms) = check.duration_ms { (time(ms)) } }
                                td.value { (together(&shown(&check.in_words().unwrap_or_default()))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lines may break only after underscores.
fn name(id: &str) -> Markup {
    html! {
        code {
            @for (index, word) in id.split('_').enumerate() {
                @if index > 0 { "_" wbr; }
                (shown(word))
            }
        }
    }
}
