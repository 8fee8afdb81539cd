//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::Client;
use gatewright::types::GenerateContentRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: GenerateContentRequest = serde_json::from_value(json!({
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "text": "Call get_weather for Lisbon."
                    }
                ]
            }
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
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
                ]
            }
        ]
    }))?;
    let mut stream = client.native().stream_generate_content("model-sol", &request).await?;
    while let Some(event) = stream.try_next().await? {
        print!("{}", event.text());
    }
    println!();
    let answer = stream.finish().await?;
    let content = answer.candidates.first().and_then(|candidate| candidate.content.as_ref());
    for part in content.into_iter().flat_map(|content| &content.parts) {
        if let Some(call) = &part.function_call {
            println!("{} {}", call.name, json!(call.args));
        }
    }
    Ok(())
}
