//! `gatewright image`: generates images and saves them.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::types::{ImageGenerationRequest, ImageGenerationRequestQuality, ImageGenerationRequestStyle};
use gatewright::{SaveOptions, check_place};
use serde_json::json;

use crate::exit::{Exit, Failure, print_message};
use crate::json::{self, JsonOption};
use crate::models::{choose, unless_known};
use crate::one_of::one_of;
use crate::places::check_extension;
use crate::target::Target;

/// The output format: the API has no member for requesting another one.
const FORMAT: &str = "png";

#[derive(Debug, Args)]
pub(crate) struct ImageArguments {
    /// Description of the image
    prompt: String,
    /// Output file, a PNG image; with several images, a number is added before the extension
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Model id [default: the gateway's first image model]
    #[arg(long, short, env = "GATEWRIGHT_IMAGE_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// WIDTHxHEIGHT, such as 1024x1024
    #[arg(long)]
    size: Option<String>,
    /// Number of images
    #[arg(long)]
    n: Option<i64>,
    /// Quality of the image
    #[arg(long, value_parser = one_of(ImageGenerationRequestQuality::ALL, ImageGenerationRequestQuality::as_str))]
    quality: Option<ImageGenerationRequestQuality>,
    /// Style of the image
    #[arg(long, value_parser = one_of(ImageGenerationRequestStyle::ALL, ImageGenerationRequestStyle::as_str))]
    style: Option<ImageGenerationRequestStyle>,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: ImageArguments) -> Exit {
    check_extension(&arguments.out, FORMAT, "images are PNG files")?;
    let client = arguments.target.client()?;
    // Checks that the folder is writable before the request is sent.
    check_place(&arguments.out, &SaveOptions::default()).await?;
    let model = choose(&client, arguments.model, "image").await?;
    // Without response_format, which many models reject: both forms of an image can be saved.
    let request = ImageGenerationRequest {
        size: arguments.size,
        n: arguments.n,
        quality: arguments.quality,
        style: arguments.style,
        ..ImageGenerationRequest::new(model, arguments.prompt)
    };
    let images = match client.images().generate(&request).await {
        Ok(images) => images.into_inner().data,
        Err(error) => return Err(unless_known(&client, &request.model, "image", error).await),
    };
    if images.is_empty() {
        return Err(Failure::Failed("the gateway returned no image".to_owned()));
    }
    let mut saved = Vec::new();
    for (index, image) in images.iter().enumerate() {
        let place =
            if images.len() == 1 { arguments.out.clone() } else { numbered(&arguments.out, index + 1) };
        client.images().save(image, &place, SaveOptions::default()).await?;
        saved.push((rightly_named(place), image.revised_prompt.as_deref()));
    }
    let mut out = io::stdout().lock();
    if arguments.format.json {
        let images = saved
            .iter()
            .map(|(file, revised)| json!({ "file": file.display().to_string(), "revised_prompt": revised }));
        let document = json!({ "model": request.model, "images": images.collect::<Vec<_>>() });
        json::write(&mut out, &document)?;
        return Ok(0);
    }
    for (file, _) in &saved {
        writeln!(out, "{}", file.display())?;
    }
    Ok(0)
}

/// A provider may return another format anyway: then the file is renamed accordingly, unless a file with that name
/// exists.
fn rightly_named(place: PathBuf) -> PathBuf {
    let format = format_of(&place).filter(|format| *format != FORMAT && place.extension().is_some());
    let Some(format) = format else { return place };
    let right = place.with_extension(format);
    if !right.exists() && std::fs::rename(&place, &right).is_ok() {
        return right;
    }
    print_message(&format!("{} is a {format} file", place.display()));
    place
}

/// The format of an image file by its first bytes, as an extension.
pub(crate) fn format_of(file: &Path) -> Option<&'static str> {
    let mut start = [0; 12];
    File::open(file).and_then(|mut file| file.read_exact(&mut start)).ok()?;
    match &start {
        [0x89, b'P', b'N', b'G', ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("webp"),
        [b'G', b'I', b'F', b'8', ..] => Some("gif"),
        _ => None,
    }
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
    fn mismatched_extension_is_corrected_without_overwriting() {
        let folder = tempfile::tempdir().expect("a folder");
        let (named, right) = (folder.path().join("cat.png"), folder.path().join("cat.jpg"));
        let jpeg = b"\xff\xd8\xff\xe0 a picture";
        std::fs::write(&named, jpeg).expect("written");
        assert_eq!(rightly_named(named.clone()), right);
        std::fs::write(&named, b"\xff\xd8\xff\xe0 another one").expect("written");
        assert_eq!(rightly_named(named.clone()), named);
        assert_eq!(std::fs::read(&right).expect("read"), jpeg);
        std::fs::write(&named, b"\x89PNG\r\n\x1a\n and more").expect("written");
        assert_eq!(rightly_named(named.clone()), named);
    }

    #[test]
    fn multiple_images_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("a/cat.png"), 2), Path::new("a/cat-2.png"));
        assert_eq!(numbered(Path::new("cat"), 10), Path::new("cat-10"));
        assert_eq!(numbered(Path::new("cat.v1.png"), 1), Path::new("cat.v1-1.png"));
    }
}
