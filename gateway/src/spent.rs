//! Spending: tokens, and money in billionths of the operator's currency, because sums of fractions would depend on their
//! order.

use crate::day::Day;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) tokens: u64,
    /// In billionths of the currency.
    pub(crate) cost: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, other: Self) {
        *self = self.and(other);
    }

    /// The sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }

    /// The larger amount of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { tokens: self.tokens.max(other.tokens), cost: self.cost.max(other.cost) }
    }
}

/// Spending on a day, and in its month including that day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpentSoFar {
    pub(crate) day: Day,
    pub(crate) today: Spent,
    pub(crate) month: Spent,
}

/// An amount in billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub(crate) fn billionths(amount: f64) -> u64 {
    (amount * 1e9).round() as u64
}

/// An amount in the currency.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million of the currency")]
pub(crate) fn amount(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}
