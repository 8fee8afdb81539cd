//! Rejects what a key may not do, with a readable message.

use gatewright::operations::Operation;
use gatewright::{ErrorCode, limits};
use gatewright_system::clock::whole_seconds;

use crate::usage::{Caller, LimitExceeded};
use crate::wire::ApiError;

/// When to retry if concurrent requests are limited: it is unknown when one ends.
const CONCURRENT_WAIT_S: u64 = 1;

/// The limit of its key rejects a request.
pub(crate) fn refused(exceeded: LimitExceeded, caller: &Caller) -> ApiError {
    let limits = caller.limits();
    let most = |limit: Option<u64>| limit.unwrap_or_default();
    let rate = |what: String, wait_s: u64| {
        let message = format!("this API key has a limit of {what}; try again in {wait_s} s");
        ApiError::new(&ErrorCode::RATE_LIMIT_EXCEEDED, message).retry_after(wait_s)
    };
    let quota = |what: String, period: &str| {
        let message = format!("this API key has used up its {what} for this {period} (UTC)");
        ApiError::new(&ErrorCode::INSUFFICIENT_QUOTA, message)
    };
    match exceeded {
        LimitExceeded::Requests(wait) => {
            rate(format!("{} requests per minute", most(limits.requests_per_minute)), whole_seconds(wait))
        }
        LimitExceeded::Tokens(wait) => {
            rate(format!("{} tokens per minute", most(limits.tokens_per_minute)), whole_seconds(wait))
        }
        LimitExceeded::Concurrent => {
            rate(format!("{} concurrent requests", most(limits.concurrent_requests)), CONCURRENT_WAIT_S)
        }
        LimitExceeded::InProgress => {
            let message = "the requests in progress of this API key may use up the rest of its budget; try again when one has \
                ended";
            ApiError::new(&ErrorCode::RATE_LIMIT_EXCEEDED, message).retry_after(CONCURRENT_WAIT_S)
        }
        LimitExceeded::TokensOfDay => quota(format!("{} tokens", most(limits.tokens_per_day)), "day"),
        LimitExceeded::TokensOfMonth => quota(format!("{} tokens", most(limits.tokens_per_month)), "month"),
        LimitExceeded::CostOfDay => {
            quota(format!("budget of {}", limits.cost_per_day.unwrap_or_default()), "day")
        }
        LimitExceeded::CostOfMonth => {
            quota(format!("budget of {}", limits.cost_per_month.unwrap_or_default()), "month")
        }
    }
}

/// The key may not call the operation.
pub(crate) fn operation_refused(operation: &Operation) -> ApiError {
    let (name, id) = (operation.qualified_name(), operation.id);
    let message = format!("this API key may not call {name}: its scopes lack {id}");
    ApiError::new(&ErrorCode::PERMISSION_DENIED, message)
}

/// The key may not use the model.
pub(crate) fn model_refused(model: &str) -> ApiError {
    let model = limits::brief(format_args!("{model:?}"));
    let message = format!("this API key may not use the model {model}; GET /v1/models lists its models");
    ApiError::new(&ErrorCode::PERMISSION_DENIED, message).param("model")
}
