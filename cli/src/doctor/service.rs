//! The gateway itself: its key, its clock, its models, and, if asked for, a small call over each protocol.

use std::io;
use std::time::{Duration, SystemTime};

use gatewright::operations::{
    CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, GENERATE_CONTENT, LIST_MODELS,
};
use gatewright::types::{Model, ModelList};
use gatewright::{API_KEY_VARIABLE, Call, Client, Error, ErrorKind};
use serde_json::json;

use super::finding::{Finding, Verdict};
use super::{Arguments, Examined};
use crate::amount;
use crate::exit::Failure;
use crate::models::{kind, protocols};
use crate::target::Target;

/// A clock that is further off is told, …
const SKEW_TOLD: Duration = Duration::from_secs(30);
/// … and from here on, signatures of notifications are refused.
const SKEW_REFUSED: Duration = Duration::from_mins(5);
/// Tokens that a call may cost in its answer.
const ANSWER_TOKENS: u32 = 16;
/// The protocols that text models are called over.
const PROTOCOLS: [&str; 4] = ["chat", "responses", "messages", "native"];

/// A client that asks once and does not wait long. Errors: the key or the address cannot be used.
pub(super) fn client(target: &Target, limit: Duration) -> Result<Client, Finding> {
    target.client_with(|builder| builder.timeout(limit).max_retries(0)).map_err(|failure| {
        let message = failure.message().to_owned();
        let is_set = std::env::var_os(API_KEY_VARIABLE).is_some_and(|key| !key.is_empty());
        if is_set {
            let name = if message.contains("base URL") { "address" } else { "settings" };
            return Finding::new(name, Verdict::Fail, message);
        }
        Finding::new("key", Verdict::Fail, message).advise(format!(
            "export {API_KEY_VARIABLE}=…; `gatewright serve` prints a key, `gatewright keys create` makes one"
        ))
    })
}

pub(super) async fn examine(
    client: &Client,
    arguments: &Arguments,
    examined: &mut Examined,
) -> io::Result<()> {
    let asked = SystemTime::now();
    match client.call(Call::new(&LIST_MODELS)).await {
        Ok(answer) => {
            let told = format!("answers in {}", amount::time(answer.elapsed));
            examined.add(Finding::new("gateway", Verdict::Ok, told))?;
            examined.add(clock(answer.headers.get("date").and_then(|date| date.to_str().ok()), asked))?;
            examined.add(Finding::new("key", Verdict::Ok, format!("{API_KEY_VARIABLE} is accepted")))?;
            match answer.parse::<ModelList>(&LIST_MODELS) {
                Ok(list) => {
                    examined.add(models(&list.data))?;
                    call_protocols(client, arguments, &list.data, examined).await?;
                }
                Err(error) => examined.add(refused("models", error))?,
            }
        }
        Err(error) => {
            if let Some(headers) = error.headers() {
                examined.add(clock(headers.get("date").and_then(|date| date.to_str().ok()), asked))?;
            }
            let name = match error.kind() {
                ErrorKind::Authentication | ErrorKind::PermissionDenied => "key",
                _ => "gateway",
            };
            examined.add(refused(name, error))?;
        }
    }
    Ok(())
}

/// How far this clock and that of the gateway are apart.
fn clock(date: Option<&str>, here: SystemTime) -> Finding {
    let there = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let Some(there) = there else {
        return Finding::new("clock", Verdict::Skip, "the gateway does not say what time it is");
    };
    let (apart, is_ahead) = match here.duration_since(there) {
        Ok(ahead) => (ahead, true),
        Err(behind) => (behind.duration(), false),
    };
    let told = format!(
        "this clock is {} {} of that of the gateway",
        amount::time(apart),
        if is_ahead { "ahead" } else { "short" }
    );
    // Its time has whole seconds, and the answer took some.
    match apart {
        apart if apart < SKEW_TOLD => Finding::new("clock", Verdict::Ok, "agrees with that of the gateway"),
        apart if apart < SKEW_REFUSED => {
            Finding::new("clock", Verdict::Warn, told).advise("set both clocks by a time server")
        }
        _ => Finding::new("clock", Verdict::Fail, told).advise(
            "set both clocks by a time server: certificates and signatures of notifications depend on them",
        ),
    }
}

fn models(models: &[Model]) -> Finding {
    const KINDS: [&str; 3] = ["text", "image", "video"];
    if models.is_empty() {
        return Finding::new("models", Verdict::Fail, "the key may use none")
            .advise("give the key other models with `gatewright keys`, or configure some");
    }
    let count = |wanted: &str| models.iter().filter(|model| kind(model) == Some(wanted)).count();
    let known = KINDS.map(|name| (name, count(name)));
    let others = models.len() - known.iter().map(|(_, count)| count).sum::<usize>();
    let counted = known.into_iter().chain([("other", others)]).filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(kind, count)| format!("{count} {kind}")).collect();
    Finding::new("models", Verdict::Ok, format!("the key may use {}: {}", models.len(), counted.join(", ")))
}

async fn call_protocols(
    client: &Client,
    arguments: &Arguments,
    models: &[Model],
    examined: &mut Examined,
) -> io::Result<()> {
    if !arguments.call {
        let found = format!("{} were not tried", PROTOCOLS.join(", "));
        return examined.add(
            Finding::new("protocols", Verdict::Skip, found)
                .advise("--call asks a model for a few words over each, which costs some tokens"),
        );
    }
    for protocol in PROTOCOLS {
        let model = match &arguments.model {
            Some(model) => Some(model.as_str()),
            None => models.iter().find(|model| may_serve(protocol, model)).map(|model| model.id.as_str()),
        };
        let Some(model) = model else {
            examined.add(Finding::new(protocol, Verdict::Skip, "no model that it serves is in the list"))?;
            continue;
        };
        let finding = match client.call(small(protocol, model)).await {
            Ok(answer) => {
                let told = format!("{model} answers in {}", amount::time(answer.elapsed));
                Finding::new(protocol, Verdict::Ok, told)
            }
            Err(error) => refused(protocol, error),
        };
        examined.add(finding)?;
    }
    Ok(())
}

/// Whether a protocol may serve a model. A model of which nothing is known is tried.
fn may_serve(protocol: &str, model: &Model) -> bool {
    let known = protocols(model);
    known.contains(&protocol) || known.is_empty() && kind(model).is_none()
}

/// The smallest call of a protocol.
fn small(protocol: &str, model: &str) -> Call {
    let prompt = "Say hello";
    let messages = json!([{"role": "user", "content": prompt}]);
    let (call, body) = match protocol {
        "chat" => (
            Call::new(&CREATE_CHAT_COMPLETION),
            json!({"model": model, "messages": messages, "max_tokens": ANSWER_TOKENS}),
        ),
        "responses" => (
            Call::new(&CREATE_RESPONSE),
            json!({"model": model, "input": prompt, "max_output_tokens": ANSWER_TOKENS, "store": false}),
        ),
        "messages" => (
            Call::new(&CREATE_MESSAGE),
            json!({"model": model, "messages": messages, "max_tokens": ANSWER_TOKENS}),
        ),
        _ => (
            Call::new(&GENERATE_CONTENT).path("model", model),
            json!({
                "contents": [{"role": "user", "parts": [{"text": prompt}]}],
                "generationConfig": {"maxOutputTokens": ANSWER_TOKENS},
            }),
        ),
    };
    call.body(body.to_string())
}

/// A call that failed, and what to do. The error holds no secret: the client redacts them.
fn refused(name: &str, error: Error) -> Finding {
    let kind = error.kind();
    let advice = match kind {
        ErrorKind::Authentication => {
            format!(
                "set {API_KEY_VARIABLE} to a key of this gateway; `gatewright keys list` shows which there are"
            )
        }
        ErrorKind::PermissionDenied => {
            "the key is not made for this: `gatewright keys show` tells what it may do".to_owned()
        }
        ErrorKind::NotFound => "check the address: another service may be there".to_owned(),
        ErrorKind::RateLimit => "the key or the provider has a limit: wait, or raise it".to_owned(),
        ErrorKind::Timeout => "the gateway or its provider is slow: --timeout waits longer".to_owned(),
        ErrorKind::Decode => "check the address: what answers there is no gateway".to_owned(),
        _ => "the log of the gateway tells more; it has the id of the request".to_owned(),
    };
    Finding::new(name, Verdict::Fail, Failure::from(error).message()).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_by_how_much() {
        let here = httpdate::parse_http_date("Fri, 31 Jul 2026 12:00:00 GMT").expect("a time");
        let verdict = |date: &str| clock(Some(date), here);
        assert_eq!(verdict("Fri, 31 Jul 2026 12:00:02 GMT").verdict, Verdict::Ok);
        let warned = verdict("Fri, 31 Jul 2026 11:58:00 GMT");
        assert_eq!(
            (warned.verdict, &*warned.found),
            (Verdict::Warn, "this clock is 2 min 0 s ahead of that of the gateway")
        );
        let failed = verdict("Fri, 31 Jul 2026 13:00:00 GMT");
        assert_eq!(
            (failed.verdict, &*failed.found),
            (Verdict::Fail, "this clock is 60 min 0 s short of that of the gateway")
        );
        assert_eq!(clock(None, here).verdict, Verdict::Skip);
        assert_eq!(verdict("tomorrow").verdict, Verdict::Skip);
    }

    #[test]
    fn a_protocol_is_tried_on_a_model_that_it_may_serve() {
        let model = |id: &str| {
            let entry = json!({"id": id, "object": "model", "created": 1, "owned_by": ""});
            serde_json::from_value::<Model>(entry).expect("a model")
        };
        assert!(
            may_serve("responses", &model("model-sol")) && !may_serve("responses", &model("model-cedar"))
        );
        assert!(may_serve("responses", &model("unknown")) && !may_serve("chat", &model("image_model_1")));
    }
}
