//! A cell in progress: collects the assertions, exchanges and failures of a check, for the report and the evidence.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewright::report::{Assertion, Check, CheckError, CheckId, Evidence, Exchange, Status};

use crate::failure::{Category, Failure};
use crate::redaction::Redactor;

/// Maximum size of a request or response in the evidence, in bytes.
const MAX_EXCHANGE_BYTES: usize = 64 << 10;
/// Maximum size of an expected or observed value in the evidence, in bytes.
const MAX_VALUE_BYTES: usize = 2 << 10;
/// Maximum number of assertions in the evidence of a cell: a stream may break a rule with every event.
const MAX_ASSERTIONS: usize = 200;

/// A check that has not run yet: id, layer and model, nothing else.
pub(crate) fn blank(id: CheckId, model: Option<&str>, status: Status) -> Check {
    Check { status, reason: None, ..Check::skipped(id, model.map(str::to_owned), "") }
}

/// Collects the findings of a check.
pub(crate) struct Cell {
    /// The check of the report; its texts are redacted when the cell is finished.
    pub(crate) check: Check,
    assertions: Vec<Assertion>,
    exchange: Option<(String, String)>,
    failure: Option<Failure>,
}

impl Cell {
    pub(crate) fn new(id: CheckId, model: Option<&str>) -> Self {
        Self { check: blank(id, model, Status::Pass), assertions: Vec::new(), exchange: None, failure: None }
    }

    /// Records an assertion. The first one that fails becomes the error of the check, with a message made from the same
    /// words. Returns whether it held.
    pub(crate) fn assert(
        &mut self,
        category: Category,
        what: &str,
        expected: impl Into<String>,
        observed: impl Into<String>,
        held: bool,
    ) -> bool {
        let (expected, observed) = (expected.into(), observed.into());
        if held {
            self.note(what, expected, observed, true);
        } else {
            let message = format!("{what}: expected {expected}, found {observed}");
            self.fail(what, expected, observed, Failure::new(category, message));
        }
        held
    }

    /// Records a failed assertion with its own failure.
    pub(crate) fn fail(
        &mut self,
        what: &str,
        expected: impl Into<String>,
        observed: impl Into<String>,
        failure: Failure,
    ) {
        self.note(what, expected.into(), observed.into(), false);
        self.failure.get_or_insert(failure);
    }

    fn note(&mut self, what: &str, expected: String, observed: String, held: bool) {
        if self.assertions.len() < MAX_ASSERTIONS {
            self.assertions.push(Assertion { what: what.to_owned(), expected, observed, held });
        }
    }

    /// Records the HTTP exchange, before redaction.
    pub(crate) fn exchanged(&mut self, request: String, response: String) {
        self.exchange = Some((request, response));
    }

    /// Omits the response from the evidence.
    pub(crate) fn withhold_response(&mut self, why: &str) {
        if let Some((_, response)) = &mut self.exchange {
            *response = format!("[omitted: {why}]");
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The check and its evidence, redacted.
    pub(crate) fn finish(self, redactor: &Redactor, duration: Duration) -> (Check, Evidence) {
        let mut check = self.check;
        check.duration_ms = Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        if let Some(failure) = self.failure {
            check.status = Status::Fail;
            let part = |part: Option<String>| part.map(|part| redactor.field(&part));
            check.error = Some(CheckError {
                category: failure.category.name().to_owned(),
                code: part(failure.code),
                message: redactor.message(&failure.message),
                param: part(failure.param),
                error_type: part(failure.error_type),
            });
        }
        for text in [
            &mut check.reported_model,
            &mut check.response_id,
            &mut check.content_type,
            &mut check.agent_version,
            &mut check.signal,
        ] {
            if let Some(Some(text)) = text {
                *text = redactor.field(text);
            }
        }
        if let Some(headers) = &mut check.response_headers {
            redact_values(headers, redactor);
        }
        let evidence = Evidence {
            id: check.id,
            model: check.model.clone(),
            assertions: self
                .assertions
                .into_iter()
                .map(|assertion| Assertion {
                    what: redactor.text(&assertion.what, MAX_VALUE_BYTES),
                    expected: redactor.text(&assertion.expected, MAX_VALUE_BYTES),
                    observed: redactor.text(&assertion.observed, MAX_VALUE_BYTES),
                    held: assertion.held,
                })
                .collect(),
            exchange: self.exchange.map(|(request, response)| Exchange {
                request: redactor.text(&request, MAX_EXCHANGE_BYTES),
                response: redactor.text(&response, MAX_EXCHANGE_BYTES),
            }),
        };
        (check, evidence)
    }
}

fn redact_values(headers: &mut BTreeMap<String, String>, redactor: &Redactor) {
    for value in headers.values_mut() {
        *value = redactor.field(value);
    }
}

#[cfg(test)]
mod tests {
    use gatewright::ErrorBody;
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "gw_Canary/4+7f=x9";

    /// A failure reported by a service, with the key after this many characters of each text.
    fn reported_failure(letters: usize) -> (Check, Evidence) {
        let text = format!("{}{KEY} and more", "x".repeat(letters));
        let error_body = ErrorBody::of_value(&json!({
            "error": { "message": text, "code": text, "param": text, "type": text }
        }));
        let mut cell = Cell::new(CheckId::ResponsesStream, Some("model-sol"));
        cell.fail(
            "failure",
            "none",
            text.clone(),
            Failure::reported(Category::Response, "the stream failed", error_body),
        );
        cell.check.response_id = Some(Some(text.clone()));
        cell.check.response_headers = Some(BTreeMap::from([("x-request-id".to_owned(), text.clone())]));
        cell.exchanged(text.clone(), text);
        cell.finish(&Redactor::new([KEY]), Duration::ZERO)
    }

    /// Texts are truncated at 500 and 2,000 characters and at 2 KiB; the test moves the key across all of these limits.
    #[test]
    fn report_contains_no_part_of_the_key_at_any_truncation() {
        let mut letters: Vec<usize> = (0..=2100).step_by(100).collect();
        letters.extend((470..=510).chain(1960..=2060));
        for letters in letters {
            let (check, evidence) = reported_failure(letters);
            let shown = format!(
                "{}{}",
                serde_json::to_value(&check).map_or(Value::Null, |value| value),
                serde_json::to_value(&evidence).map_or(Value::Null, |value| value)
            );
            assert!(shown.contains(&"x".repeat(letters.min(1900))), "{letters}");
            assert!(!shown.contains("gw_"), "{letters}: {shown}");
        }
    }
}
