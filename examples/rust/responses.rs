//! The responses protocol: a whole response, then events.

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::Client;
use gatewright::types::ResponseRequest;

#[tokio::main]
async fn main() -> Result<(), gatewright::Error> {
    let client = Client::from_env()?;
    let request = ResponseRequest::new("model-sol", "Name three lakes.");

    let response = client.responses().create(&request).await?;
    println!("{}", response.output_text());

    let mut events = client.responses().stream(&request).await?;
    while let Some(event) = events.try_next().await? {
        match event.text_delta() {
            Some(text) => println!("{}: {text:?}", event.type_),
            None => println!("{}", event.type_),
        }
    }
    Ok(())
}
