//! Sections 2.6, 2.7, 2.9 and 3: video tasks.

use std::io::Cursor;
use std::time::Duration;

use gatewright::types;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, read, send, start};

const PATH: &str = "/v1/videos/generations";

/// Polls a task until its state is final.
pub(crate) async fn finished(server: &Server, id: &Value) -> Value {
    let path = format!("{PATH}/{}", id.as_str().expect("an id"));
    for _ in 0..600 {
        let (status, task) = read(server.get(&path)).await;
        assert_eq!(status, 200, "{task}");
        serde_json::from_value::<types::VideoTask>(task.clone()).expect("the generated type");
        if task["status"] != "processing" && task["status"] != "pending" {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task did not end");
}

#[tokio::test]
async fn task_progresses_to_completed_with_a_playable_file() {
    let server = start().await;
    for (resolution, ratio, size) in [
        ("720p", "16:9", (1280, 720)),
        ("720p", "9:16", (720, 1280)),
        ("720p", "1:1", (720, 720)),
        ("1080p", "16:9", (1920, 1080)),
        ("1080p", "9:16", (1080, 1920)),
        ("1080p", "1:1", (1080, 1080)),
    ] {
        let body = json!({ "model": "video_model_1", "prompt": "a river", "duration": 3, "resolution": resolution, "aspect_ratio": ratio });
        let task = server.ask(PATH, &body).await;
        // Section 3: the submission returns id, created, model, estimated_time and the state processing.
        assert_eq!((&task["status"], &task["model"]), (&json!("processing"), &json!("video_model_1")));
        assert!(
            task["estimated_time"].as_u64().is_some_and(|seconds| seconds > 0) && task["created"].is_u64()
        );
        assert!(task.get("output").is_none() && task.get("error").is_none());

        let task = finished(&server, &task["id"]).await;
        let output = &task["output"];
        assert_eq!((&task["status"], &output["duration"]), (&json!("completed"), &json!(3)), "{task}");
        assert_eq!(
            (&output["resolution"], &output["format"]),
            (&json!(format!("{}x{}", size.0, size.1)), &json!("mp4"))
        );
        let path = output["url"].as_str().and_then(|url| url.strip_prefix(&server.url)).expect("an address");
        let response = send(server.bare(Method::GET, path)).await;
        assert_eq!(response.headers()["content-type"], "video/mp4");
        assert_playable(&response.bytes().await.expect("a file"), size, 3);
    }
}

/// Reads the container with an independent parser, and each picture's NAL unit.
fn assert_playable(file: &[u8], (width, height): (u16, u16), seconds: u64) {
    let mp4 = re_mp4::Mp4::read(Cursor::new(file), file.len() as u64).expect("an MP4 file");
    let track = mp4.tracks().values().next().expect("a track");
    assert_eq!((track.width, track.height), (width, height));
    assert_eq!(track.duration, seconds * track.timescale);
    assert_eq!(track.samples.len() as u64, seconds * 10);
    for sample in &track.samples {
        let start = usize::try_from(sample.offset).expect("small");
        let bytes = &file[start..start + usize::try_from(sample.size).expect("small")];
        let length = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
        assert_eq!(length as usize, bytes.len() - 4);
        assert_eq!(bytes[4] & 0x1f, 5, "a key picture");
        assert!(sample.is_sync);
    }
}

#[tokio::test]
async fn video_defaults_match_section_2_6() {
    let server = start().await;
    let task = server.ask(PATH, &json!({ "model": "video_model_4", "prompt": "x" })).await;
    let output = finished(&server, &task["id"]).await["output"].clone();
    assert_eq!((&output["duration"], &output["resolution"]), (&json!(5), &json!("1920x1080")));
}

#[tokio::test]
async fn fail_marker_in_the_prompt_fails_the_task() {
    // 7 rule 1; the fail marker is ours.
    let server = start().await;
    for (prompt, message) in [("a [fail] b", "failed"), ("[fail: out of paint]", "out of paint")] {
        let task = server.ask(PATH, &json!({ "model": "video_model_2", "prompt": prompt })).await;
        assert_eq!(task["status"], "processing");
        let task = finished(&server, &task["id"]).await;
        assert_eq!(task["status"], "failed");
        assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains(message)), "{task}");
        assert!(task.get("output").is_none());
    }
}

#[tokio::test]
async fn model_limits_are_enforced() {
    // 2.9, 8: per-model maxima.
    let server = start().await;
    let body = json!({ "model": "video_model_4", "prompt": "x", "duration": 6, "resolution": "4k", "aspect_ratio": "2:1" });
    let (status, answer) = server.refused(PATH, &body).await;
    assert_eq!(status, 400, "{answer}");
    let violations = answer["error"]["violations"].as_array().expect("violations");
    assert!(violations.len() >= 3, "{violations:?}");
    let (status, answer) = server.refused(PATH, &json!({ "model": "video_model_9", "prompt": "x" })).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
    let (status, answer) = read(server.get(&format!("{PATH}/video_unknown"))).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")));
}
