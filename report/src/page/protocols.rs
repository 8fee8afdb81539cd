//! The additional checks: their section in the page of a report, and a page of their own.

use maud::{Markup, html};

use super::bar::results;
use super::{MAX_PAGE_CHECKS, page, shown, status, time, together, verdict};
use crate::matrix::participle;
use crate::protocols::ProtocolReport;

impl ProtocolReport {
    /// The document as one self-contained HTML page. It shows the first 10,000 checks and counts the rest.
    ///
    /// ```
    /// fn write(document: &gatewright_report::ProtocolReport) -> std::io::Result<()> {
    ///     std::fs::write("report.protocols.html", document.to_html())
    /// }
    /// ```
    pub fn to_html(&self) -> String {
        let counts = self.tally().map(|(status, count)| format!("{count} {}", participle(status)));
        page(
            &format!("{}: other protocols of {}", self.overall_status, self.endpoint),
            &html! {
                header {
                    h1 { (verdict(self.overall_status)) " " span.address { (shown(&self.endpoint)) } }
                    p {
                        (counts.join(", ")) ". " (shown(&self.kit.name)) " " (shown(&self.kit.version)) ", "
                        time datetime=(shown(&self.generated_at)) { (shown(&self.generated_at)) } "."
                    }
                    (results(self.tally()))
                }
                main { (section(self)) }
            },
        )
    }
}

/// A table of the checks, with why each one failed.
pub(super) fn section(document: &ProtocolReport) -> Markup {
    let left_out = document.checks.len().saturating_sub(MAX_PAGE_CHECKS);
    html! {
        section aria-labelledby="protocols" {
            h2 #protocols { "Other protocols" }
            p { "Additional checks of this kit. The report itself does not contain them." }
            @if left_out > 0 {
                p.warn { "Only the first " (MAX_PAGE_CHECKS) " checks are shown; " (left_out) " are omitted." }
            }
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
                        @for check in document.checks.iter().take(MAX_PAGE_CHECKS) {
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
