//! Uses what tests/promise adds to the spec: typed, callable, routed.

use gatewright::types::{ChatCompletionRequest, ChatMessage, GreetingRequest};
use gatewright::{Client, Error, ErrorKind};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    let greeting = GreetingRequest::new("good morning").with_loud(true);
    match client.greetings().create("Ada", &greeting).await {
        Ok(answer) => println!("{}", answer.text),
        Err(error) if error.kind() == ErrorKind::NotImplemented => println!(
            "greetings.create: {} {}",
            error.status().unwrap_or_default(),
            error.code().unwrap_or_default()
        ),
        Err(error) => return Err(error),
    }

    let request =
        ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("hello")]).with_mood("calm");
    let completion = client.chat().completions().create(&request).await?;
    let mood: Option<&str> = completion.answered_mood.as_deref();
    println!("answered_mood: {}", mood.unwrap_or("none"));
    Ok(())
}
