//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::Client;
use gatewright::types::ResponseRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ResponseRequest = serde_json::from_value(json!({
        "model": "model-sol",
        "input": [
            {
                "role": "user",
                "content": "Call get_weather for Lisbon."
            }
        ],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "The current weather in a city.",
                "parameters": {
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
        ],
        "store": false
    }))?;
    let mut stream = client.responses().stream(&request).await?;
    while let Some(event) = stream.try_next().await? {
        print!("{}", event.text_delta().unwrap_or_default());
    }
    println!();
    let answer = stream.finish().await?;
    for item in &answer.output {
        if let (Some(name), Some(arguments)) = (&item.name, &item.arguments) {
            println!("{name} {arguments}");
        }
    }
    Ok(())
}
