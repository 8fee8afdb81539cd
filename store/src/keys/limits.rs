//! Limits of a key.

use serde::{Deserialize, Serialize};

use super::InvalidMember;

/// Largest accepted count: sums of larger ones could overflow the store's integers.
const MAX_LIMIT: u64 = 1_000_000_000_000_000;
/// Largest accepted amount of money.
const MAX_MONEY: f64 = 1_000_000_000.0;

/// The limits of a key; `None`: no limit. They apply to the operations that call a model. Days and months are in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyLimits {
    /// Requests per minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute, input and output. They are counted when an answer ends.
    pub tokens_per_minute: Option<u64>,
    /// Concurrent requests. A request ends when its answer has been sent.
    pub concurrent_requests: Option<u64>,
    /// Tokens per day, input and output.
    pub tokens_per_day: Option<u64>,
    /// Tokens per month, input and output.
    pub tokens_per_month: Option<u64>,
    /// Cost per day, at the configured prices.
    pub cost_per_day: Option<f64>,
    /// Cost per month, at the configured prices.
    pub cost_per_month: Option<f64>,
    /// Total size of its generated files at any time, in bytes. Omitted if there is no limit, so that older gateways can
    /// read the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
}

impl KeyLimits {
    /// Whether gateways with shared counters count the usage of the key together.
    pub fn are_counted(&self) -> bool {
        let counts = self.requests_per_minute.or(self.tokens_per_minute).or(self.concurrent_requests);
        counts.is_some() || self.have_budget()
    }

    /// Whether the tokens or the cost per day or month are limited.
    pub fn have_budget(&self) -> bool {
        let tokens = self.tokens_per_day.or(self.tokens_per_month);
        tokens.is_some() || self.cost_per_day.or(self.cost_per_month).is_some()
    }

    /// Errors: a limit is zero, negative or too large.
    pub(super) fn check(&self) -> Result<(), InvalidMember> {
        let counts = [
            ("limits.requests_per_minute", self.requests_per_minute),
            ("limits.tokens_per_minute", self.tokens_per_minute),
            ("limits.concurrent_requests", self.concurrent_requests),
            ("limits.tokens_per_day", self.tokens_per_day),
            ("limits.tokens_per_month", self.tokens_per_month),
            ("limits.file_bytes", self.file_bytes),
        ];
        for (member, count) in counts {
            if count.is_some_and(|count| !(1..=MAX_LIMIT).contains(&count)) {
                return Err(InvalidMember::new(
                    member,
                    format!("must be a whole number from 1 to {MAX_LIMIT}"),
                ));
            }
        }
        let amounts =
            [("limits.cost_per_day", self.cost_per_day), ("limits.cost_per_month", self.cost_per_month)];
        for (member, amount) in amounts {
            if amount.is_some_and(|amount| !(amount > 0.0 && amount <= MAX_MONEY)) {
                return Err(InvalidMember::new(member, format!("must be above 0, up to {MAX_MONEY}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_positive_and_bounded() {
        assert_eq!(KeyLimits::default().check(), Ok(()));
        let limits =
            KeyLimits { tokens_per_day: Some(MAX_LIMIT), cost_per_day: Some(0.01), ..KeyLimits::default() };
        assert_eq!(limits.check(), Ok(()));
        for count in [0, MAX_LIMIT + 1] {
            let limits = KeyLimits { concurrent_requests: Some(count), ..KeyLimits::default() };
            assert!(limits.check().is_err(), "{count}");
            let limits = KeyLimits { file_bytes: Some(count), ..KeyLimits::default() };
            assert!(limits.check().is_err_and(|error| error.member == "limits.file_bytes"), "{count}");
        }
        for amount in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let limits = KeyLimits { cost_per_month: Some(amount), ..KeyLimits::default() };
            assert!(limits.check().is_err(), "{amount}");
        }
    }

    #[test]
    fn newer_limits_are_serialized_only_when_set() {
        let written = |limits: &KeyLimits| serde_json::to_string(limits).expect("plain values");
        assert!(!written(&KeyLimits::default()).contains("file_bytes"));
        let limits = KeyLimits { file_bytes: Some(1), ..KeyLimits::default() };
        assert_eq!(serde_json::from_str::<KeyLimits>(&written(&limits)).expect("limits"), limits);
    }

    #[test]
    fn misspelt_limit_is_rejected() {
        let read = serde_json::from_str::<KeyLimits>(r#"{"request_per_minute": 1}"#);
        assert!(read.is_err_and(|error| error.to_string().contains("request_per_minute")));
    }
}
