//! Generates an image and saves it to a file. Usage: image [FILE]

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::types::{ImageGenerationRequest, ImageGenerationRequestResponseFormat};
use gatewright::{Client, SaveOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "image.png".to_owned());
    let client = Client::from_env()?;

    let request = ImageGenerationRequest::new("image_model_2", "a lighthouse at dusk")
        .with_size("256x256")
        .with_response_format(ImageGenerationRequestResponseFormat::B64Json);
    let answer = client.images().generate(&request).await?;
    let image = answer.data.first().ok_or("no image came")?;
    let saved = client.images().save(image, &file, SaveOptions::default()).await?;
    println!("{file}: {} bytes", saved.bytes);
    Ok(())
}
