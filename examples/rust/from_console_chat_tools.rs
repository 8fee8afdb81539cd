//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::Client;
use gatewright::types::ChatCompletionRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ChatCompletionRequest = serde_json::from_value(json!({
        "model": "model-sol",
        "messages": [
            {
                "role": "user",
                "content": "Call get_weather for Lisbon."
            }
        ],
        "tools": [
            {
                "type": "function",
                "function": {
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
            }
        ],
        "stream_options": {
            "include_usage": true
        }
    }))?;
    let mut stream = client.chat().completions().stream(&request).await?;
    while let Some(event) = stream.try_next().await? {
        print!("{}", event.text().unwrap_or_default());
    }
    println!();
    let answer = stream.finish().await?;
    for call in &answer.choices[0].message.tool_calls {
        if let Some(function) = &call.function {
            println!("{} {}", function.name, function.arguments);
        }
    }
    Ok(())
}
