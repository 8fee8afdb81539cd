//! Usage as it is stored: sums over requests, and the queries and reports of operators.

mod day;
mod report;
mod spent;
mod totals;

pub use self::day::Day;
pub use self::report::{ResolvedUsageQuery, UsageQuery, UsageRow};
pub use self::spent::{Spent, SpentSoFar, amount, billionths};
pub(crate) use self::totals::COUNTS;
pub use self::totals::{Rows, Totals, UsageKey};
