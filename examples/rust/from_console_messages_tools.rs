//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::Client;
use gatewright::types::MessageRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: MessageRequest = serde_json::from_value(json!({
        "model": "model-sol",
        "max_tokens": 1024,
        "messages": [
            {
                "role": "user",
                "content": "Call get_weather for Lisbon."
            }
        ],
        "tools": [
            {
                "name": "get_weather",
                "description": "The current weather in a city.",
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "city": {
                            "type": "string"
                        }
                    },
                    "required": [
                        "city"
                    ]
                }
            }
        ]
    }))?;
    let mut stream = client.messages().stream(&request).await?;
    while let Some(event) = stream.try_next().await? {
        print!("{}", event.text_delta().unwrap_or_default());
    }
    println!();
    let answer = stream.finish().await?;
    for block in &answer.content {
        if let Some(name) = &block.name {
            println!("{name} {}", json!(block.input));
        }
    }
    Ok(())
}
