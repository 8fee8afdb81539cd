//! Amounts of money, counted in billionths of the operator's currency: sums of fractions would depend on their order.

/// An amount in billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub(super) fn billionths(amount: f64) -> u64 {
    (amount * 1e9).round() as u64
}

/// An amount in the currency.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million of the currency")]
pub(super) fn amount(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}
