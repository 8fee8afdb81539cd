//! An image, saved to a file. Usage: image [FILE]

#![expect(clippy::print_stdout, reason = "an example prints")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright::Client;
use gatewright::types::{ImageGenerationRequest, ImageGenerationRequestResponseFormat};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "image.png".to_owned());
    let client = Client::from_env()?;

    let mut request = ImageGenerationRequest::new("image_model_2", "a lighthouse at dusk");
    request.size = Some("256x256".to_owned());
    request.response_format = Some(ImageGenerationRequestResponseFormat::B64Json);
    let answer = client.images().generate(&request).await?;
    let encoded = answer.data.first().and_then(|image| image.b64_json.as_ref()).ok_or("no image came")?;
    let picture = STANDARD.decode(encoded)?;
    std::fs::write(&file, &picture)?;
    println!("{file}: {} bytes", picture.len());
    Ok(())
}
