//! Speech of the simulator.

use gatewright::ErrorCode;
use gatewright::limits::{Rules, brief};
use gatewright_config::ModelKind;
use gatewright_protocol::json::text;
use gatewright_simulator::budget::Budget;
use gatewright_simulator::speech;
use http::{HeaderValue, header};

use crate::models;
use crate::wire::{ApiError, Body, Call, Response};

/// `POST /v1/audio/speech`.
pub(super) fn create(call: &Call, model: &str, budget: &Budget) -> Result<Response, ApiError> {
    models::plain_model(model, ModelKind::Speech, call.operation)?;
    let request = call.checked_body_of(Some(model), Rules::default())?;
    let is_wav = match request["response_format"].as_str() {
        None | Some("wav") => true,
        Some("pcm") => false,
        Some(other) => {
            let other = brief(format_args!("{other:?}"));
            let message = format!("the simulator makes no sound in the format {other}; use wav or pcm");
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("response_format"));
        }
    };
    let speed = request["speed"].as_f64().unwrap_or(1.0);
    let samples = speech::samples(text(&request["input"]), text(&request["voice"]), speed, budget)?;
    let (media_type, sound) = if is_wav {
        budget.make(samples.len())?;
        ("audio/wav", speech::wav(&samples))
    } else {
        ("audio/pcm", samples)
    };
    let mut response = Response::new(Body::from(sound));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}
