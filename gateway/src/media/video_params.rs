//! The parameters of a requested video.

use gatewright::ErrorCode;
use gatewright::limits::integer;
use gatewright_protocol::json::text;
use gatewright_simulator::video;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::{ApiError, Call};

/// Estimated size of a second of video from providers.
const BYTES_OF_A_SECOND: usize = 1024 * 1024;

/// Duration and size of a request, with the defaults of the specification.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct VideoParams {
    pub(super) duration_s: u32,
    /// Width and height in pixels.
    pub(super) size: (u16, u16),
}

impl VideoParams {
    /// From a validated request.
    pub(super) fn of(call: &Call, request: &Value) -> Result<Self, ApiError> {
        let resolution = text(call.field(request, "resolution"));
        let aspect_ratio = text(call.field(request, "aspect_ratio"));
        let size = video::size(resolution, aspect_ratio).ok_or_else(|| {
            let message =
                format!("resolution {resolution:?} is not available with aspect_ratio {aspect_ratio:?}");
            ApiError::new(&ErrorCode::INVALID_VALUE, message).param("resolution")
        })?;
        let seconds = integer(call.field(request, "duration"));
        let duration_s = seconds.and_then(|seconds| u32::try_from(seconds).ok()).ok_or_else(|| {
            ApiError::new(&ErrorCode::INVALID_VALUE, "duration must be a number of seconds").param("duration")
        })?;
        Ok(Self { duration_s, size })
    }

    /// Estimated size of a provider's file.
    pub(super) fn expected_bytes(self) -> usize {
        usize::try_from(self.duration_s)
            .map_or(usize::MAX, |seconds| seconds.saturating_mul(BYTES_OF_A_SECOND))
    }
}
