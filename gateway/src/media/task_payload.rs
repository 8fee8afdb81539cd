//! The remaining work of a task, as stored: enough for another process to continue.

use serde::{Deserialize, Serialize};

use super::video_params::VideoParams;
use crate::relay::RemoteRecord;

/// Incremented with each change that the previous gateway version can't read, here or in nested values.
pub(super) const VERSION: u32 = 1;

/// See the module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskPayload {
    /// Missing in the first payloads.
    #[serde(default)]
    pub(super) version: u32,
    #[serde(rename = "wanted")]
    pub(super) params: VideoParams,
    /// Scheme, host and port of the file URL.
    pub(super) public: String,
    /// The webhook to notify when the task has ended.
    pub(super) webhook: Option<String>,
    /// By the store's clock, in milliseconds since 1970.
    pub(super) deadline: u64,
    pub(super) maker: VideoProvider,
}

/// Who makes the video.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VideoProvider {
    Simulator { prompt: String },
    Upstream(RemoteRecord),
}

/// The payload that another process left.
#[derive(Debug)]
pub(super) enum StoredPayload {
    TaskPayload(TaskPayload),
    /// It requires a newer gateway.
    Newer,
    /// No gateway can continue with it.
    Unreadable(serde_json::Error),
}

/// The part of a payload that tells who can read it.
#[derive(Deserialize)]
struct PayloadHeader {
    #[serde(default)]
    version: u32,
    deadline: u64,
}

impl StoredPayload {
    /// `now`: by the store's clock, in milliseconds since 1970. A payload past its deadline isn't left to newer gateways.
    pub(super) fn read(task_payload: &str, now: u64) -> Self {
        let outline = serde_json::from_str(task_payload);
        if outline.is_ok_and(|PayloadHeader { version, deadline }| version > VERSION && now < deadline) {
            return Self::Newer;
        }
        serde_json::from_str(task_payload).map_or_else(Self::Unreadable, Self::TaskPayload)
    }
}

/// The webhook to notify of a task, readable even if the rest of the payload isn't.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Receiver {
    pub(super) public: String,
    pub(super) webhook: String,
}

impl Receiver {
    /// None if there is none, or it can't be read.
    pub(super) fn of(task_payload: &str) -> Option<Self> {
        serde_json::from_str(task_payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_task_payload_is_skipped_until_its_deadline() {
        let params = VideoParams { duration_s: 1, size: (2, 3) };
        let maker = VideoProvider::Simulator { prompt: "a cat".to_owned() };
        let (public, webhook) = ("https://x".to_owned(), None);
        let task_payload = TaskPayload { version: VERSION, params, public, webhook, deadline: 100, maker };
        let mut task_payload = serde_json::to_value(task_payload).expect("plain values");
        let read =
            |task_payload: &serde_json::Value, now| StoredPayload::read(&task_payload.to_string(), now);
        assert!(
            matches!(read(&task_payload, 99), StoredPayload::TaskPayload(_))
                && matches!(read(&task_payload, 100), StoredPayload::TaskPayload(_))
        );
        // Without a version, as in the first payloads.
        task_payload.as_object_mut().expect("an object").remove("version");
        assert!(matches!(read(&task_payload, 99), StoredPayload::TaskPayload(_)));
        task_payload["maker"] = serde_json::json!({"unknown": 1});
        assert!(matches!(read(&task_payload, 99), StoredPayload::Unreadable(_)));
        task_payload["version"] = (VERSION + 1).into();
        assert!(matches!(read(&task_payload, 99), StoredPayload::Newer));
        assert!(matches!(read(&task_payload, 100), StoredPayload::Unreadable(_)));
        assert!(matches!(StoredPayload::read("{", 0), StoredPayload::Unreadable(_)));
    }

    #[test]
    fn webhook_receiver_is_read_from_an_unreadable_payload() {
        let task_payload = r#"{"public":"https://x","webhook":"https://y","maker":{"unknown":1}}"#;
        assert!(serde_json::from_str::<TaskPayload>(task_payload).is_err());
        let (public, webhook) = ("https://x".to_owned(), "https://y".to_owned());
        assert_eq!(Receiver::of(task_payload), Some(Receiver { public, webhook }));
        for nobody in ["", "{", r#"{"public":"https://x","webhook":null}"#] {
            assert_eq!(Receiver::of(nobody), None, "{nobody}");
        }
    }
}
