//! Loops of tool calls in every protocol, as the vectors say.

use std::convert::Infallible;

use gatewright::schemars::{self, JsonSchema};
use gatewright::types::{
    ChatMessage, GenerateContentRequest, MessageRequest, ResponseRequest, ResponseRequestInput,
};
use gatewright::{Error, ErrorKind, Tool};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer_events::json_of;
use crate::chat_request;
use crate::server::{Request, Script, Server};
use crate::structured::response;
use crate::vectors;

#[derive(Deserialize)]
struct LoopCase {
    name: String,
    /// Of the streams.
    protocol: Option<String>,
    /// The conversation to begin with.
    #[serde(alias = "input", alias = "contents")]
    messages: Value,
    max_rounds: Option<usize>,
    tool_choice: Option<Value>,
    #[serde(default)]
    answers: Vec<Value>,
    #[serde(default)]
    streams: Vec<Vec<Value>>,
    /// Of the streams.
    #[serde(default)]
    events: Vec<Value>,
    tool_choices: Option<Value>,
    conversation: Vec<Value>,
    rounds: Option<usize>,
    text: Option<String>,
    error: Option<String>,
    /// [`Error::code`].
    code: Option<String>,
}

/// The tools of the vectors.
fn tools_of_vectors() -> [Tool; 4] {
    #[derive(Deserialize, JsonSchema)]
    struct Weather {
        place: String,
        #[serde(default = "one")]
        days: u32,
    }
    fn one() -> u32 {
        1
    }
    #[derive(Deserialize, JsonSchema)]
    struct Add {
        a: i64,
        b: i64,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Report {}
    #[derive(Deserialize, JsonSchema)]
    struct Fail {
        reason: String,
    }
    [
        Tool::new("weather", "The weather.", async |Weather { place, days }: Weather| {
            Ok::<_, Infallible>(format!("sunny in {place} for {days} days"))
        }),
        Tool::new("add", "Adds.", async |Add { a, b }: Add| Ok::<_, Infallible>(a + b)),
        Tool::new("report", "Reports.", async |_: Report| {
            Ok::<_, Infallible>(json!({"oslo": ["sunny", 21], "ø": null}))
        }),
        Tool::new("fail", "Fails.", async |Fail { reason }: Fail| Err::<(), _>(reason)),
    ]
}

/// Whether a value is the expected one. A member that is null may be missing; a text may be given by how it starts and
/// what it shows.
fn is_as_expected(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::String(text), Value::Object(parts)) => {
            let shows = parts.get("shows").and_then(Value::as_str).unwrap_or_default();
            text.starts_with(parts["starts"].as_str().unwrap()) && text.contains(shows)
        }
        (Value::Object(found), Value::Object(expected)) => {
            let mut expected = expected.iter().filter(|(_, value)| !value.is_null()).peekable();
            expected.clone().count() == found.len()
                && expected.all(|(name, value)| found.get(name).is_some_and(|one| is_as_expected(one, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(one, value)| is_as_expected(one, value))
        }
        _ => found == expected,
    }
}

/// How a loop ended: rounds, text and conversation.
type Ending = Result<(usize, String, Value), Error>;

/// What a loop reported while it ran.
#[derive(Default)]
struct Reports {
    messages: usize,
    events: Vec<Value>,
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// Runs a loop; with its events, if the case has streams.
macro_rules! ran {
    ($run:expr, $case:expr, $reports:expr, $json_of:expr, $text:expr) => {{
        let Reports { messages, events } = &mut *$reports;
        let mut run = $run.max_rounds($case.max_rounds.unwrap_or(10)).on_message(|_| *messages += 1);
        if !$case.streams.is_empty() {
            run = run.on_event(|event| events.extend($json_of(event)));
        }
        run.await.map(|run| (run.rounds, $text(&run), json!(run.messages)))
    }};
}

async fn run(protocol: &str, case: &LoopCase, server: &Server, reports: &mut Reports) -> Ending {
    let (client, tools) = (server.client(), tools_of_vectors());
    let choice = case.tool_choice.as_ref();
    match protocol {
        "chat" => {
            let mut request = chat_request();
            request.messages = read::<Vec<ChatMessage>>(&case.messages);
            request.tool_choice = choice.map(read);
            let chat = client.chat();
            let run = chat.completions().run_tools(&request, &tools);
            let text = |run: &gatewright::ToolRun| run.text().unwrap_or_default().to_owned();
            ran!(run, case, reports, |event| json_of(&event), text)
        }
        "responses" => {
            let mut request = ResponseRequest::new("m", read::<ResponseRequestInput>(&case.messages));
            request.tool_choice = choice.map(read);
            let run = client.responses().run_tools(&request, &tools);
            let json_of = |event: gatewright::ResponseEvent<'_>| {
                let mut json = json!(event.event);
                json["snapshot"] = json!(event.snapshot);
                Some(json)
            };
            ran!(run, case, reports, json_of, |run: &gatewright::ToolRun<_>| run.output_text())
        }
        "messages" => {
            let mut request = MessageRequest::new("m", 9, read(&case.messages));
            request.tool_choice = choice.map(read);
            let run = client.messages().run_tools(&request, &tools);
            ran!(run, case, reports, |event| [json!(event)], |run: &gatewright::ToolRun<MessageRequest>| run
                .text())
        }
        "native" => {
            let mut request = GenerateContentRequest::new("");
            request.contents = read(&case.messages);
            request.tool_config = choice.map(read);
            let run = client.native().run_tools("m", &request, &tools);
            ran!(run, case, reports, |event| [json!(event)], |run: &gatewright::ToolRun<
                GenerateContentRequest,
            >| run.text())
        }
        other => panic!("no loops in {other}"),
    }
}

fn check(case: &LoopCase, outcome: Ending, reports: &Reports, server: &Server) {
    let name = &case.name;
    let messages = match (outcome, &case.error) {
        (Ok((rounds, text, messages)), None) => {
            assert_eq!((Some(rounds), Some(&text)), (case.rounds, case.text.as_ref()), "{name}");
            messages
        }
        (Err(error), Some(expected)) => {
            assert_eq!(error.kind(), ErrorKind::ToolLoop, "{name}");
            assert_eq!(error.code(), case.code.as_deref(), "{name}");
            assert!(error.to_string().contains(expected) && error.answer().is_some(), "{name}: {error}");
            serde_json::from_slice(error.messages().unwrap()).unwrap()
        }
        (outcome, _) => panic!("{name}: {outcome:?}"),
    };
    let expected = Value::Array(case.conversation.clone());
    assert!(is_as_expected(&messages, &expected), "{name}: {messages:#}");
    // A text is one item.
    let started = case.messages.as_array().map_or(1, Vec::len);
    assert_eq!(reports.messages, case.conversation.len() - started, "{name}");
    let requests = server.requests();
    assert_eq!(requests.len(), case.answers.len() + case.streams.len(), "{name}");
    if let Some(choices) = &case.tool_choices {
        let sent = requests.iter().map(Request::json);
        let sent: Value = sent
            .map(|body| {
                body.get("tool_choice").or_else(|| body.get("toolConfig")).cloned().unwrap_or_default()
            })
            .collect();
        assert_eq!(sent, *choices, "{name}");
    }
}

#[tokio::test]
async fn loops_end_as_the_vectors_say() {
    for protocol in ["chat", "responses", "messages", "native"] {
        for mut case in vectors::read::<LoopCase>(&format!("tool_loops/{protocol}.json")) {
            if protocol == "responses" {
                for answer in &mut case.answers {
                    // Members that the types require and that no case is about.
                    let mut whole = response("completed", &json!([]), &Value::Null);
                    whole.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
                    *answer = whole;
                }
            }
            let scripts = case.answers.iter().map(|answer| Script::json(&answer.to_string()));
            let server = Server::start(scripts).await;
            let mut reports = Reports::default();
            let outcome = run(protocol, &case, &server, &mut reports).await;
            check(&case, outcome, &reports, &server);
        }
    }
}

#[tokio::test]
async fn streamed_loops_tell_the_events_of_every_answer() {
    for case in vectors::read::<LoopCase>("tool_loops/streams.json") {
        let server = Server::start(case.streams.iter().map(|events| {
            let events = events.iter().map(|event| format!("data: {event}\n\n"));
            Script::events().packet(events.collect::<String>()).end()
        }))
        .await;
        let mut reports = Reports::default();
        let outcome = run(case.protocol.as_deref().unwrap(), &case, &server, &mut reports).await;
        check(&case, outcome, &reports, &server);
        assert_eq!(reports.events.len(), case.events.len(), "{}: {:#?}", case.name, reports.events);
        for (event, expected) in reports.events.iter().zip(&case.events) {
            let members = expected.as_object().unwrap().iter();
            let fits = members.clone().all(|(name, value)| is_as_expected(&event[name], value));
            assert!(fits, "{}: {event} is not {expected}", case.name);
        }
    }
}

#[tokio::test]
async fn each_protocol_describes_tools_in_its_own_form() {
    let parameters =
        |tool: &Value, name: &str| assert_eq!(tool[name]["required"], json!(["place"]), "{tool}");
    for protocol in ["chat", "responses", "messages", "native"] {
        let [case, ..] = &vectors::read::<LoopCase>(&format!("tool_loops/{protocol}.json"))[..] else {
            panic!("{protocol}: no case")
        };
        let server = Server::start([Script::whole(400, &[("content-type", "application/json")], "{}")]).await;
        run(protocol, case, &server, &mut Reports::default()).await.unwrap_err();
        let sent = server.requests()[0].json();
        let first = &sent["tools"][0];
        match protocol {
            "chat" => {
                assert_eq!(
                    (&first["type"], &first["function"]["name"]),
                    (&json!("function"), &json!("weather"))
                );
                parameters(&first["function"], "parameters");
            }
            "responses" => {
                assert_eq!((&first["type"], &first["name"]), (&json!("function"), &json!("weather")));
                parameters(first, "parameters");
            }
            "messages" => {
                assert_eq!(
                    (&first["name"], &first["description"]),
                    (&json!("weather"), &json!("The weather."))
                );
                parameters(first, "input_schema");
            }
            _ => {
                assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
                let declarations = first["functionDeclarations"].as_array().unwrap();
                assert_eq!((declarations.len(), &declarations[0]["name"]), (4, &json!("weather")));
                parameters(&declarations[0], "parametersJsonSchema");
            }
        }
    }
}

#[tokio::test]
async fn broken_stream_of_a_loop_is_its_error() {
    let case = vectors::read::<LoopCase>("tool_loops/streams.json").into_iter().next().unwrap();
    let started = format!("data: {}\n\n", case.streams[0][0]);
    let server = Server::start([Script::events().packet(started).end()]).await;
    let mut reports = Reports::default();
    let error = run("chat", &case, &server, &mut reports).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamTruncated);
    assert_eq!((reports.events.len(), reports.messages), (1, 0));
}
