//! The flags of `gatewright chat` that shape its answers.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::Args;
use gatewright::types::{
    ChatCompletionRequest, ChatCompletionRequestReasoningEffort, ChatContentPart, ChatImageUrl,
    ChatMessageContent,
};

use super::MAX_PROMPT_BYTES;
use crate::exit::Failure;
use crate::image::format_of;

#[derive(Debug, Clone, Args)]
pub(super) struct AnswerSettings {
    /// Randomness of the answer, 0 to 2
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,
    /// Share of the most probable tokens to choose from, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    top_p: Option<f64>,
    /// Text at which the answer ends, without it; repeatable
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Maximum number of tokens of the answer
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<i64>,
    /// How much the model reasons, such as low, medium or high
    #[arg(long, value_name = "EFFORT")]
    effort: Option<String>,
}

impl AnswerSettings {
    pub(super) fn apply(&self, request: &mut ChatCompletionRequest) {
        request.temperature = self.temperature;
        request.top_p = self.top_p;
        request.stop = (!self.stop.is_empty()).then(|| self.stop.clone().into());
        request.max_tokens = self.max_tokens;
        request.reasoning_effort = self.effort.as_deref().map(ChatCompletionRequestReasoningEffort::from);
    }
}

/// The content of a prompt with image files. Errors: a file can't be read, or isn't an image.
pub(super) fn content(prompt: String, images: &[PathBuf]) -> Result<ChatMessageContent, Failure> {
    if images.is_empty() {
        return Ok(prompt.into());
    }
    let mut parts = vec![ChatContentPart::new("text").with_text(prompt)];
    for file in images {
        let url = ChatImageUrl::new(data_url(file)?);
        parts.push(ChatContentPart::new("image_url").with_image_url(url));
    }
    Ok(parts.into())
}

fn data_url(file: &Path) -> Result<String, Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--image {}: {why}", file.display()));
    let media_type = match format_of(file) {
        Some("jpg") => "jpeg",
        Some(format) => format,
        None if file.is_file() => return Err(refuse("it is not a PNG, JPEG, WebP or GIF image")),
        None => return Err(refuse("there is no such file")),
    };
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_PROMPT_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| refuse(&error.to_string()))?;
    if bytes.len() as u64 > MAX_PROMPT_BYTES {
        return Err(refuse(&format!("it is larger than {}", crate::amount::bytes(MAX_PROMPT_BYTES))));
    }
    Ok(format!("data:image/{media_type};base64,{}", BASE64_STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_sent_as_a_data_url_and_other_files_are_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let (image, text) = (folder.path().join("a.png"), folder.path().join("a.txt"));
        std::fs::write(&image, b"\x89PNG\r\n\x1a\n and more").expect("written");
        std::fs::write(&text, b"just words, no image").expect("written");
        let content = content("What is it?".to_owned(), &[image]).expect("an image");
        let json = serde_json::to_value(content).expect("JSON");
        assert_eq!(json[0], serde_json::json!({ "type": "text", "text": "What is it?" }));
        let url = json[1]["image_url"]["url"].as_str().expect("a URL");
        assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
        for (file, why) in [(text, "is not a PNG"), (folder.path().join("none"), "there is no such file")] {
            let refused = super::content(String::new(), &[file]).expect_err(why);
            assert!(refused.message().contains(why), "{}", refused.message());
        }
    }
}
