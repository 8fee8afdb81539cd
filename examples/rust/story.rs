//! The whole service in one file: runs every operation once. `cargo xtask demo` runs it.
//!
//! Usage: `GATEWRIGHT_BASE_URL=… GATEWRIGHT_API_KEY=… story FOLDER`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::TryStreamExt as _;
use gatewright::types::{
    ChatCompletionChunk, ChatCompletionRequest, ChatMessage, GenerateContentRequest, ImageGenerationRequest,
    ResponseRequest, ResponseStreamEvent, VideoGenerationRequest,
};
use gatewright::{Client, ErrorKind, WaitOptions, report};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let client = Client::from_env()?;
    chat(&client).await?;
    responses(&client).await?;
    native(&client).await?;
    image(&client, &folder).await?;
    video(&client, &folder).await?;
    refusal(&client).await?;
    reports()
}

async fn chat(client: &Client) -> Result<(), Box<dyn Error>> {
    let models = client.models().list().await?;
    let ids: Vec<&str> = models.data.iter().map(|model| model.id.as_str()).collect();
    println!("models: {}", ids.join(", "));
    println!("model: {}", client.models().retrieve(ids[0]).await?.owned_by);

    let question = |model: &str, text: &str| ChatCompletionRequest::new(model, vec![ChatMessage::user(text)]);
    let completion = client
        .chat()
        .completions()
        .create(&question("model-sol", "Reply with exactly: good morning"))
        .await?;
    println!("chat: {}", completion.choices[0].message.content.as_deref().unwrap_or_default());

    let stream =
        client.chat().completions().stream(&question("model-breeze", "Tell me about rivers.")).await?;
    let chunks: Vec<ChatCompletionChunk> = stream.try_collect().await?;
    let choices = chunks.iter().flat_map(|chunk| &chunk.choices);
    let text: String = choices.filter_map(|choice| choice.delta.content.as_deref()).collect();
    println!("stream: {text}");
    Ok(())
}

async fn responses(client: &Client) -> Result<(), Box<dyn Error>> {
    let prompt = |text: &str| ResponseRequest::new("model-terra", text);
    let response = client.responses().create(&prompt("Reply with exactly: a response")).await?;
    for item in response.output.iter().filter(|item| item.type_ == "message") {
        for part in item.content.iter().filter(|part| part.type_ == "output_text") {
            println!("responses: {}", part.text.as_deref().unwrap_or_default());
        }
    }
    let stream = client.responses().stream(&prompt("Tell me about lakes.")).await?;
    let events: Vec<ResponseStreamEvent> = stream.try_collect().await?;
    let name =
        |event: Option<&ResponseStreamEvent>| event.map(|event| event.type_.clone()).unwrap_or_default();
    println!("responses stream: {} to {}", name(events.first()), name(events.last()));
    Ok(())
}

async fn native(client: &Client) -> Result<(), Box<dyn Error>> {
    let request = GenerateContentRequest::new("Reply with exactly: native content");
    let answer = client.native().generate_content("model-luna", &request).await?;
    let contents = answer.candidates.iter().filter_map(|candidate| candidate.content.as_ref());
    let text: String =
        contents.flat_map(|content| &content.parts).filter_map(|part| part.text.as_deref()).collect();
    println!("native: {text}");
    let models = client.native().models().list(None, None).await?;
    println!("native models: {}", models.models.len());
    let model = client.native().models().get(&models.models[0].name).await?;
    println!("native model: {} {}", model.name, model.base_model_id.as_deref().unwrap_or_default());
    Ok(())
}

async fn image(client: &Client, folder: &Path) -> Result<(), Box<dyn Error>> {
    let request: ImageGenerationRequest = serde_json::from_value(serde_json::json!({
        "model": "image_model_2",
        "prompt": "a lighthouse at dusk",
        "size": "256x256",
        "response_format": "b64_json",
    }))?;
    let images = client.images().generate(&request).await?;
    let picture = STANDARD.decode(images.data[0].b64_json.as_deref().unwrap_or_default())?;
    std::fs::write(folder.join("image.png"), &picture)?;
    println!("image: PNG of {} bytes", picture.len());
    Ok(())
}

async fn video(client: &Client, folder: &Path) -> Result<(), Box<dyn Error>> {
    let request: VideoGenerationRequest = serde_json::from_value(serde_json::json!({
        "model": "video_model_4",
        "prompt": "waves on a beach",
        "duration": 3,
        "resolution": "720p",
    }))?;
    let options = WaitOptions { interval: Duration::from_millis(200), ..WaitOptions::default() };
    let task = client.videos().generations().create_and_wait(&request, options).await?;
    let output = task.output.as_ref().ok_or("a completed task has an output")?;
    let mut download = client.download(&output.url).await?;
    let mut file = std::fs::File::create(folder.join("video.mp4"))?;
    while let Some(chunk) = download.chunk().await? {
        std::io::Write::write_all(&mut file, &chunk)?;
    }
    println!("video: {} {} {} s {}", *task.status, output.resolution, output.duration, *output.format);
    Ok(())
}

async fn refusal(client: &Client) -> Result<(), Box<dyn Error>> {
    let request: ImageGenerationRequest = serde_json::from_value(serde_json::json!({
        "model": "image_model_1",
        "prompt": "two cats",
        "n": 2,
        "size": "512x512",
    }))?;
    match client.images().generate(&request).await {
        Err(error) if error.kind() == ErrorKind::BadRequest => println!(
            "refused: {} {} {}",
            error.status().unwrap_or_default(),
            error.code().unwrap_or_default(),
            error.param().unwrap_or_default()
        ),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("image_model_1 makes one image, not two".into()),
    }
    Ok(())
}

fn reports() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reports");
    for name in ["good", "broken"] {
        let outcome = report::validate(&std::fs::read(folder.join(format!("{name}.json")))?);
        println!("{name} report: {}", if outcome.violations.is_empty() { "valid" } else { "invalid" });
        for violation in &outcome.violations {
            println!("  {}:{} {} {}", violation.line, violation.column, violation.pointer, violation.rule);
        }
    }
    Ok(())
}
