//! Spending: tokens, and money in billionths of the operator's currency, because sums of fractions would depend on their
//! order.

use super::Day;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input and output tokens.
    pub tokens: u64,
    /// In billionths of the currency.
    pub cost: u64,
}

impl Spent {
    /// Adds other spending.
    pub fn add(&mut self, other: Self) {
        *self = self.and(other);
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }

    /// What remains if the other is subtracted; nothing below zero.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }

    /// The larger amount of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { tokens: self.tokens.max(other.tokens), cost: self.cost.max(other.cost) }
    }
}

/// Spending on a day, and in its month including that day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpentSoFar {
    /// The day.
    pub day: Day,
    /// On the day.
    pub today: Spent,
    /// In its month, including the day.
    pub month: Spent,
}

/// An amount in billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub fn billionths(amount: f64) -> u64 {
    (amount * 1e9).round() as u64
}

/// An amount in the currency.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million of the currency")]
pub fn amount(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}
