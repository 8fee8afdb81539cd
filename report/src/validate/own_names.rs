//! Reports about a deployment with its own names: their validators, and the advice to accept the names.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Outcome, Validator, ValidatorBuilder};
use crate::finding::Violation;
use crate::profile::Profile;

/// Maximum number of sets of names for which a validator is cached, if reports may declare their own.
const MAX_KNOWN_NAMES: usize = 8;

/// What to do about a report whose names are the only violations; the end of the first one's message.
const OWN_NAMES: &str =
    "; with its own names, the report is valid: set own_names (ownNames in Node), or omit --strict-names";

/// Validators by the names that they accept, shared by the clones of one.
pub(super) type KnownNames = Arc<Mutex<VecDeque<(Profile, Validator)>>>;

impl Validator {
    /// The validator for the names that a report declares; `None`: they are those of the specification, or this validator
    /// has the names of a deployment.
    pub(super) fn for_names_of(&self, document: &[u8]) -> Option<Self> {
        let known = self.known_names.as_ref().filter(|_| document.len() <= self.max_bytes)?;
        let profile = Profile::of_report(document)?;
        let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, validator)) = known().iter().find(|(other, _)| *other == profile) {
            return Some(validator.clone());
        }
        let builder = ValidatorBuilder {
            strict: self.strict,
            max_bytes: self.max_bytes,
            max_findings: self.max_findings,
            ..Self::builder()
        };
        let validator = builder.profile(&profile).build();
        let mut known = known();
        if known.len() == MAX_KNOWN_NAMES {
            known.pop_front();
        }
        known.push_back((profile, validator.clone()));
        Some(validator)
    }

    /// If a document would be valid with the names that it declares, its first violation explains how to accept them.
    pub(super) fn suggest_own_names(&self, document: &[u8], outcome: &mut Outcome) {
        if !outcome.violations.iter().all(is_of_name) {
            return;
        }
        let Some(first) = outcome.violations.first_mut() else { return };
        if self.for_names_of(document).is_some_and(|own| own.check(document).violations.is_empty()) {
            first.message.push_str(OWN_NAMES);
        }
    }
}

/// Whether a violation is about the name of the kit or of a model.
fn is_of_name(violation: &Violation) -> bool {
    let pointer = &*violation.pointer;
    let is_name = pointer == "/kit/name"
        || pointer.starts_with("/configuration/models/")
        || (pointer.starts_with("/checks/") && pointer.ends_with("/model"));
    is_name && matches!(violation.rule, "const" | "enum")
}
