//! Videos at providers, in two forms: the specification's, which other gateways like this one speak, and the public
//! asynchronous one. Both accept a video, report its progress, and finally serve its file.

use gatewright::limits::integer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{EncodedRequest, MalformedDocument, failure};
use crate::conversation::Failure;

/// Maximum length of a video id, in bytes.
const MAX_ID_BYTES: usize = 512;
/// Maximum length of a file URL, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;
/// Maximum for a time or duration reported by a provider, in seconds: a day.
const MAX_SECONDS: u64 = 86_400;

/// How a provider accepts video requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoForm {
    /// Tasks as in the specification (2.6, 2.7).
    Specified,
    /// `{model, prompt, seconds, size}`, and the file behind the provider's key.
    Public,
}

/// A video's duration and size, as far as they are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VideoDimensions {
    /// Duration in seconds. `None`: not given.
    pub duration_s: Option<u32>,
    /// Width and height.
    pub size: Option<(u32, u32)>,
}

/// A provider's status report for a video.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The provider's id.
    pub id: String,
    /// How far it is.
    pub stage: VideoStage,
    /// In seconds.
    pub estimated_time: Option<u64>,
}

/// The progress of a video.
#[derive(Debug, Clone, PartialEq)]
pub enum VideoStage {
    /// Accepted, but not started.
    Waiting,
    /// Also for an unknown state (3).
    Working,
    /// Finished: its file can be fetched.
    Done(Finished),
    /// Given up, for this reason.
    Failed(Failure),
}

/// A video that a provider has finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The data that the provider reports about it.
    pub film: VideoDimensions,
    /// Where its file is. `None`: at the provider, which requires its key.
    pub url: Option<String>,
}

/// The length that a request states in the public form's own member, which providers of that form get as it is.
pub fn public_seconds(request: &Value) -> Option<u32> {
    seconds(&request["seconds"])
}

impl VideoForm {
    /// Writes the request to a provider. `request`: the client's validated request.
    pub fn request_out(self, request: &Value, model: &str, film: VideoDimensions) -> EncodedRequest {
        let mut body = request.clone();
        let mut dropped = Vec::new();
        let Some(members) = body.as_object_mut() else { return EncodedRequest { body, dropped } };
        // The gateway notifies the client itself.
        members.remove("webhook_url");
        members.insert("model".to_owned(), model.into());
        if self == Self::Public {
            for member in ["duration", "resolution", "aspect_ratio"] {
                members.remove(member);
            }
            let seconds = film.duration_s.map(|seconds| seconds.to_string());
            let size = film.size.map(|(width, height)| format!("{width}x{height}"));
            for (member, value) in [("seconds", seconds), ("size", size)] {
                let Some(value) = value else { continue };
                if members.insert(member.to_owned(), value.into()).is_some() {
                    // The client also sent the provider's own field for it.
                    dropped.push(format!("/{member}").into());
                }
            }
        }
        EncodedRequest { body, dropped }
    }

    /// Reads a provider's status report for a video.
    pub fn report_in(self, document: &[u8]) -> Result<Report, MalformedDocument> {
        let fields: VideoFields = serde_json::from_slice(document)
            .map_err(|error| MalformedDocument(format!("is not a video object: {error}")))?;
        if fields.id.is_empty() || fields.id.len() > MAX_ID_BYTES {
            return Err(MalformedDocument(format!("has no id of 1 to {MAX_ID_BYTES} bytes")));
        }
        let stage = match fields.status.as_str() {
            "pending" | "queued" => VideoStage::Waiting,
            "completed" => VideoStage::Done(self.finished(&fields)?),
            // The specification has no status for a video that was cancelled from outside (3).
            status @ ("failed" | "cancelled" | "canceled" | "expired") => {
                VideoStage::Failed(failure::of_task(&json!({ "error": fields.error }), status))
            }
            _ => VideoStage::Working,
        };
        let estimated_time = integer(&fields.estimated_time).filter(|seconds| *seconds <= MAX_SECONDS);
        Ok(Report { id: fields.id, stage, estimated_time })
    }

    fn finished(self, fields: &VideoFields) -> Result<Finished, MalformedDocument> {
        let (duration, size) = match self {
            Self::Specified => (&fields.output["duration"], &fields.output["resolution"]),
            Self::Public => (&fields.seconds, &fields.size),
        };
        let film = VideoDimensions { duration_s: seconds(duration), size: size.as_str().and_then(pixels) };
        let url = match self {
            Self::Public => None,
            Self::Specified => {
                let url = fields.output["url"].as_str().filter(|url| url.len() <= MAX_URL_BYTES);
                Some(
                    url.ok_or_else(|| MalformedDocument("has no output.url of a valid length".to_owned()))?
                        .to_owned(),
                )
            }
        };
        Ok(Finished { film, url })
    }
}

/// The fields of both forms.
#[derive(Deserialize)]
struct VideoFields {
    id: String,
    status: String,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    seconds: Value,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    estimated_time: Value,
}

/// Seconds as a number or as text.
fn seconds(value: &Value) -> Option<u32> {
    let seconds = integer(value).or_else(|| value.as_str()?.parse().ok())?;
    u32::try_from(seconds).ok().filter(|seconds| u64::from(*seconds) <= MAX_SECONDS)
}

/// Parses `1280x720` into width and height.
fn pixels(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    let read = |text: &str| text.parse().ok().filter(|length| (1..100_000).contains(length));
    Some((read(width)?, read(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILM: VideoDimensions = VideoDimensions { duration_s: Some(8), size: Some((720, 1280)) };

    fn parsed_report(form: VideoForm, document: &Value) -> Report {
        form.report_in(document.to_string().as_bytes()).expect("a report")
    }

    #[test]
    fn video_request_is_written_in_each_form() {
        let request = json!({ "model": "mine", "prompt": "a kite", "duration": 8, "resolution": "720p",
            "aspect_ratio": "9:16", "webhook_url": "https://example.com", "seed": 7 });
        let sent = VideoForm::Specified.request_out(&request, "theirs", FILM);
        let expected = json!({ "model": "theirs", "prompt": "a kite", "duration": 8, "resolution": "720p",
            "aspect_ratio": "9:16", "seed": 7 });
        assert_eq!((sent.body, sent.dropped.len()), (expected, 0));
        let sent = VideoForm::Public.request_out(&request, "theirs", FILM);
        let expected =
            json!({ "model": "theirs", "prompt": "a kite", "seconds": "8", "size": "720x1280", "seed": 7 });
        assert_eq!((sent.body, sent.dropped.len()), (expected, 0));
    }

    #[test]
    fn specified_members_win_over_aliases_which_are_reported() {
        let request = json!({ "model": "mine", "prompt": "a kite", "seconds": "4", "size": "1x1" });
        let sent = VideoForm::Public.request_out(&request, "theirs", FILM);
        assert_eq!((&sent.body["seconds"], &sent.body["size"]), (&json!("8"), &json!("720x1280")));
        assert_eq!(sent.dropped, ["/seconds", "/size"]);
        let sent = VideoForm::Public.request_out(&request, "theirs", VideoDimensions::default());
        assert_eq!((&sent.body["seconds"], sent.dropped.len()), (&json!("4"), 0));
    }

    #[test]
    fn every_state_is_parsed_in_both_forms() {
        let public =
            |status: &str| parsed_report(VideoForm::Public, &json!({ "id": "v", "status": status })).stage;
        assert_eq!([public("queued"), public("in_progress")], [VideoStage::Waiting, VideoStage::Working]);
        assert_eq!(public("dreaming"), VideoStage::Working);
        let document = json!({ "id": "v", "object": "video", "status": "completed", "progress": 100,
            "seconds": "8", "size": "720x1280" });
        let done = parsed_report(VideoForm::Public, &document).stage;
        assert_eq!(done, VideoStage::Done(Finished { film: FILM, url: None }));

        let output =
            json!({ "url": "http://a/files/b", "duration": 8, "resolution": "720x1280", "format": "mp4" });
        let document =
            json!({ "id": "t", "status": "completed", "created": 1, "model": "m", "output": output });
        let done = parsed_report(VideoForm::Specified, &document).stage;
        assert_eq!(done, VideoStage::Done(Finished { film: FILM, url: Some("http://a/files/b".to_owned()) }));
        let document = json!({ "id": "t", "status": "processing", "estimated_time": 9 });
        let report = parsed_report(VideoForm::Specified, &document);
        assert_eq!((report.stage, report.estimated_time), (VideoStage::Working, Some(9)));

        let error = json!({ "message": "no kites", "code": "moderation_blocked" });
        for form in [VideoForm::Specified, VideoForm::Public] {
            let document = json!({ "id": "v", "status": "failed", "error": error });
            let VideoStage::Failed(failure) = parsed_report(form, &document).stage else {
                panic!("it failed")
            };
            assert_eq!(
                (failure.message.as_str(), failure.code.as_deref()),
                ("no kites", Some("moderation_blocked"))
            );
        }
    }

    #[test]
    fn video_that_the_provider_ended_has_failed() {
        for status in ["cancelled", "canceled", "expired"] {
            let error = json!({ "message": "ended by an operator" });
            for (error, message) in [
                (error, "ended by an operator".to_owned()),
                (Value::Null, format!("the provider reports the status {status}, and no reason")),
            ] {
                let document = json!({ "id": "v", "status": status, "error": error });
                let VideoStage::Failed(failure) = parsed_report(VideoForm::Public, &document).stage else {
                    panic!("{status} ends it")
                };
                assert_eq!(failure.message, message);
            }
        }
    }

    #[test]
    fn video_failed_without_an_error_has_no_reason() {
        let document = json!({ "id": "v", "status": "failed", "error": null });
        let VideoStage::Failed(failure) = parsed_report(VideoForm::Public, &document).stage else {
            panic!("it failed")
        };
        assert_eq!(failure.message, "the provider gave no reason");
    }

    #[test]
    fn invalid_video_documents_are_rejected() {
        for document in
            ["", "<html>", "[]", "{}", r#"{"id":"","status":"queued"}"#, r#"{"id":7,"status":"x"}"#]
        {
            assert!(VideoForm::Public.report_in(document.as_bytes()).is_err(), "{document}");
        }
        let long = json!({ "id": "v".repeat(513), "status": "queued" });
        assert!(VideoForm::Public.report_in(long.to_string().as_bytes()).is_err());
        let without_file = json!({ "id": "v", "status": "completed", "output": {} });
        assert!(VideoForm::Specified.report_in(without_file.to_string().as_bytes()).is_err());
        // Invalid numbers don't invalidate the rest.
        let odd = json!({ "id": "v", "status": "completed", "seconds": 1e30, "size": "0x7" });
        let done = parsed_report(VideoForm::Public, &odd).stage;
        assert_eq!(done, VideoStage::Done(Finished { film: VideoDimensions::default(), url: None }));
    }
}
