//! `gatewright image`: generates images and saves them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::types::{
    ImageGenerationRequest, ImageGenerationRequestQuality, ImageGenerationRequestResponseFormat,
    ImageGenerationRequestStyle,
};
use gatewright::{SaveOptions, check_place};

use crate::exit::{Exit, Failure};
use crate::target::Target;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to show
    prompt: String,
    /// Output file; with several images, a number is added before the extension
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Model id
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// WIDTHxHEIGHT, such as 1024x1024
    #[arg(long)]
    size: Option<String>,
    /// Number of images
    #[arg(long)]
    n: Option<i64>,
    /// standard or hd
    #[arg(long)]
    quality: Option<ImageGenerationRequestQuality>,
    /// vivid or natural
    #[arg(long)]
    style: Option<ImageGenerationRequestStyle>,
    #[command(flatten)]
    target: Target,
}

/// The first image model of the catalog.
fn default_model() -> &'static str {
    gatewright::catalog::IMAGE_MODELS.first().map_or("", |model| model.id)
}

pub(crate) async fn run(arguments: Arguments) -> Exit {
    let client = arguments.target.client()?;
    // Checks that the folder is writable before the request is sent.
    check_place(&arguments.out, &SaveOptions::default()).await?;
    let request = ImageGenerationRequest {
        size: arguments.size,
        n: arguments.n,
        quality: arguments.quality,
        style: arguments.style,
        response_format: Some(ImageGenerationRequestResponseFormat::B64Json),
        ..ImageGenerationRequest::new(arguments.model, arguments.prompt)
    };
    let images = client.images().generate(&request).await?.into_inner().data;
    if images.is_empty() {
        return Err(Failure::Failed("the gateway returned no image".to_owned()));
    }
    let mut out = io::stdout().lock();
    for (index, image) in images.iter().enumerate() {
        let place =
            if images.len() == 1 { arguments.out.clone() } else { numbered(&arguments.out, index + 1) };
        client.images().save(image, &place, SaveOptions::default()).await?;
        writeln!(out, "{}", place.display())?;
    }
    Ok(0)
}

/// `cat.png` → `cat-2.png`.
fn numbered(out: &Path, number: usize) -> PathBuf {
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = out.extension() {
        name.push(".");
        name.push(extension);
    }
    out.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_images_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("a/cat.png"), 2), Path::new("a/cat-2.png"));
        assert_eq!(numbered(Path::new("cat"), 10), Path::new("cat-10"));
        assert_eq!(numbered(Path::new("cat.v1.png"), 1), Path::new("cat.v1-1.png"));
    }
}
