//! Image generation (2.8, 2.10, 2.11).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright::ErrorCode;
use gatewright::limits::integer;
use gatewright_protocol::json::text;
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use gatewright_simulator::image;
use gatewright_store::FileKind;
use gatewright_system::clock::unix_seconds;
use serde_json::{Value, json};

use crate::app::App;
use crate::models;
use crate::storage::LIFETIME;
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1/images/generations`.
pub(super) async fn create(app: &App, call: &Call) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let model = models::image_model(text(&body["model"]), call.operation)?;
    let prompt = text(&body["prompt"]).to_owned();
    let count = integer(call.field(&body, "n")).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let size = text(call.field(&body, "size"));
    let size = dimensions(size).ok_or_else(|| {
        ApiError::new(
            &ErrorCode::INVALID_VALUE,
            format!("size {size:?} does not have the form <width>x<height>"),
        )
        .param("size")
    })?;
    let inline = call.field(&body, "response_format") == "b64_json";
    let revised = revise(&prompt, &body);

    let data: Vec<Value> = if inline {
        let encode = |png| json!({ "b64_json": BASE64_STANDARD.encode::<Vec<u8>>(png) });
        let drawn = app.resources.image_pool.work(move |budget| {
            let pictures = pictures(count, budget, |variation| image::draw(&prompt, variation, size));
            Ok(pictures.map(|picture| picture.map(encode)).collect::<Result<_, _>>()?)
        });
        drawn.await?
    } else {
        // Reserved before the work: without space for its files, the response would be useless.
        let room = app.room_for_files(call.caller.id(), image::expected_bytes(size, count)).await?;
        let drawn = app.resources.image_pool.work(move |budget| {
            let pictures = pictures(count, budget, |variation| image::draw(&prompt, variation, size));
            Ok(pictures.collect::<Result<_, _>>()?)
        });
        // If the client disconnects meanwhile, no unrecorded files are left behind.
        let keeping = tokio::spawn(room.keep(FileKind::Png, drawn.await?, LIFETIME));
        let failed = |_| ApiError::new(&ErrorCode::SERVER_ERROR, "the images cannot be stored");
        let (files, public) = (keeping.await.map_err(failed)??, app.public_url(call));
        let image = |file| {
            let mut image = json!({ "url": format!("{public}{}", app.storage.files.address(file)) });
            if model.revises_prompt {
                image["revised_prompt"] = json!(revised);
            }
            image
        };
        files.iter().map(image).collect()
    };
    Ok(json_response(&json!({ "created": unix_seconds(), "data": data })))
}

/// Draws images one after the other while the client waits for them.
fn pictures(
    count: u32,
    budget: &Budget,
    draw: impl Fn(u32) -> Vec<u8>,
) -> impl Iterator<Item = Result<Vec<u8>, BudgetExceeded>> {
    (0..count).map(move |variation| budget.work(0).map(|()| draw(variation)))
}

/// `1024x1792` as width and height in pixels.
fn dimensions(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// The prompt as the simulated model rewrites it (2.11).
fn revise(prompt: &str, body: &Value) -> String {
    let style = body["style"].as_str().unwrap_or("vivid");
    let quality = body["quality"].as_str().unwrap_or("standard");
    format!("{}, in a {style} style, {quality} quality", prompt.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    use futures_util::FutureExt as _;

    use super::*;
    use crate::work::BlockingPool;

    #[tokio::test]
    async fn cancelled_image_request_holds_its_slot_until_the_drawing_ends() {
        let studio = BlockingPool::of(1);
        let drawn = Arc::new(AtomicUsize::new(0));
        let (brush, go_on) = mpsc::channel::<()>();
        let started = Arc::clone(&drawn);
        let mut waiting = Box::pin(studio.work(move |budget| {
            let pictures = pictures(10, budget, |_| {
                started.fetch_add(1, Ordering::SeqCst);
                _ = go_on.recv();
                Vec::new()
            });
            Ok(pictures.collect::<Result<Vec<_>, _>>()?)
        }));
        while drawn.load(Ordering::SeqCst) == 0 {
            assert!((&mut waiting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        drop(waiting);
        assert!(studio.work(|_| Ok(())).now_or_never().is_none(), "the first picture is still being drawn");
        // The first image is done; nothing delays the next ones.
        drop(brush);
        assert_eq!(studio.work(|_| Ok(7)).await.ok(), Some(7));
        assert_eq!(drawn.load(Ordering::SeqCst), 1);
    }
}
