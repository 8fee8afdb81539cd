//! Merges the options of a call with those of the client, by the kind of value. The choice for each option is generated
//! from `spec/options.json`.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::transport::clock::bounded;

/// The time set for the call, or the client's.
pub(crate) fn time_over(own: Option<Duration>, default: Option<Duration>) -> Option<Duration> {
    own.map(bounded).or(default)
}

/// Members that a call adds to the body, together with those of the client; for the same name, the call's value wins.
pub(crate) fn members_over(
    own: Option<Map<String, Value>>,
    defaults: Option<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    match (defaults, own) {
        (None, own) => own,
        (Some(defaults), None) => Some(defaults.clone()),
        (Some(defaults), Some(own)) => Some(defaults.clone().into_iter().chain(own).collect()),
    }
}

/// Pairs of a call together with those of the client; for the same name, the call's value wins.
pub(crate) fn pairs_over(
    own: Vec<(String, String)>,
    defaults: &[(String, String)],
    same: fn(&str, &str) -> bool,
) -> Vec<(String, String)> {
    if defaults.is_empty() {
        return own;
    }
    let is_kept = |name: &str| !own.iter().any(|(replaced, _)| same(name, replaced));
    let kept: Vec<_> = defaults.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    kept.into_iter().chain(own).collect()
}
