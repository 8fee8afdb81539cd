//! The gateway itself: its key, its clock, its models, and, if requested, a small call with each protocol.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use gatewright::operations::{
    CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, GENERATE_CONTENT, LIST_MODELS,
};
use gatewright::types::{Model, ModelList};
use gatewright::{
    API_KEY_VARIABLE, Attempt, Call, Client, ClientBuilder, Error, ErrorCode, ErrorKind, Middleware,
};
use http::HeaderMap;
use serde_json::json;

use super::finding::{Finding, FindingLevel};
use super::{DoctorArguments, DoctorReport};
use crate::amount;
use crate::exit::{Failure, in_words};
use crate::models::{kind, protocols, unless_known};
use crate::target::Target;

/// A larger clock difference is reported, …
const SKEW_REPORTED: Duration = Duration::from_secs(30);
/// … and from here on, webhook signatures are rejected.
const SKEW_REFUSED: Duration = Duration::from_mins(5);
/// Maximum number of tokens in a call's answer.
const ANSWER_TOKENS: u32 = 16;
/// The status with which a proxy asks for user name and password.
const PROXY_WANTS_PASSWORD: u16 = 407;
/// The protocols for text models.
const PROTOCOLS: [&str; 4] = ["chat", "responses", "messages", "native"];

/// A client without retries and with a short timeout. Errors: the key or the address can't be used.
pub(super) fn client(target: &Target, limit: Duration) -> Result<Client, Finding> {
    target.client_with(|builder| builder.timeout(limit).max_retries(0)).map_err(|failure| {
        let message = failure.message().to_owned();
        let is_set = std::env::var(API_KEY_VARIABLE).is_ok_and(|key| !key.trim().is_empty());
        // If it also fails without the key, the key isn't the problem.
        let name = match keyless(target, limit) {
            None if message.contains("base URL") => "address",
            None => "settings",
            Some(_) if is_set => "key",
            Some(_) => {
                return Finding::new("key", FindingLevel::Fail, message).advise(format!(
                    "for a gateway of yours on this machine: eval \"$(gatewright keys local)\"; for another one: export \
                     {API_KEY_VARIABLE}=…, with a key that its operator made with `gatewright keys create`"
                ));
            }
        };
        Finding::new(name, FindingLevel::Fail, message)
    })
}

/// The same, but without a key. None: the address or the settings can't be used.
pub(super) fn keyless(target: &Target, limit: Duration) -> Option<Client> {
    let quick = |builder: ClientBuilder| builder.timeout(limit).max_retries(0);
    target.client_with(|builder| quick(builder).api_key("none").middleware(Arc::new(KeylessClient))).ok()
}

/// Removes the key from every request.
struct KeylessClient;

impl Middleware for KeylessClient {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        attempt.headers_mut().remove("authorization");
        Box::pin(async { Ok(()) })
    }
}

/// The gateway being checked.
pub(super) struct Gateway<'a> {
    pub(super) client: &'a Client,
    pub(super) is_behind_proxy: bool,
}

impl Gateway<'_> {
    pub(super) async fn examine(
        &self,
        arguments: &DoctorArguments,
        examined: &mut DoctorReport,
    ) -> io::Result<()> {
        let sent = SystemTime::now();
        match self.client.call(Call::new(&LIST_MODELS)).await {
            Ok(answer) => {
                let message = format!("answers in {}", amount::time(answer.elapsed));
                examined.add(Finding::new("gateway", FindingLevel::Ok, message))?;
                examined.add(clock(Some(&answer.headers), sent))?;
                let is_set = std::env::var_os(API_KEY_VARIABLE).is_some_and(|key| !key.is_empty());
                let key = if is_set { API_KEY_VARIABLE } else { "the saved key of this gateway" };
                examined.add(Finding::new("key", FindingLevel::Ok, format!("{key} is accepted")))?;
                match answer.parse::<ModelList>(&LIST_MODELS) {
                    Ok(list) => {
                        examined.add(models(&list.data))?;
                        self.call_protocols(arguments, &list.data, examined).await?;
                    }
                    Err(error) => examined.add(self.refused("models", &error))?,
                }
            }
            Err(error) => {
                if let Some(headers) = error.headers() {
                    examined.add(clock(Some(headers), sent))?;
                }
                let name = if wants_key(&error) { "key" } else { "gateway" };
                examined.add(self.refused(name, &error))?;
            }
        }
        Ok(())
    }

    /// Examines everything that a gateway reveals without a key: that it runs, and its time.
    pub(super) async fn examine_without_key(&self, examined: &mut DoctorReport) -> io::Result<()> {
        let (sent, began) = (SystemTime::now(), Instant::now());
        let answer = self.client.call(Call::new(&LIST_MODELS)).await;
        let time = amount::time(began.elapsed());
        let (finding, headers) = match answer {
            Ok(answer) => {
                let message = format!("answers in {time}, and requires no key");
                let finding = Finding::new("gateway", FindingLevel::Ok, message)
                    .advise(format!("the clients still need one: set {API_KEY_VARIABLE} to any text"));
                (finding, Some(answer.headers))
            }
            Err(error) if wants_key(&error) => {
                let finding = Finding::new(
                    "gateway",
                    FindingLevel::Ok,
                    format!("answers in {time}, and requires a key"),
                );
                (finding, error.headers().cloned())
            }
            Err(error) => {
                let headers = error.headers().cloned();
                (self.refused("gateway", &error), headers)
            }
        };
        examined.add(finding)?;
        examined.add(clock(headers.as_ref(), sent))?;
        for name in ["models", "protocols"] {
            examined.add(Finding::new(name, FindingLevel::Skip, "the gateway lists them only with a key"))?;
        }
        Ok(())
    }

    async fn call_protocols(
        &self,
        arguments: &DoctorArguments,
        models: &[Model],
        examined: &mut DoctorReport,
    ) -> io::Result<()> {
        if !arguments.call {
            let found = format!("not called: {}", PROTOCOLS.join(", "));
            return examined.add(
                Finding::new("protocols", FindingLevel::Skip, found)
                    .advise("--call sends a short prompt over each, which costs a few tokens"),
            );
        }
        for protocol in PROTOCOLS {
            let model = match &arguments.model {
                Some(model) => Some(model.as_str()),
                None => models.iter().find(|model| may_serve(protocol, model)).map(|model| model.id.as_str()),
            };
            let Some(model) = model else {
                examined.add(Finding::new(
                    protocol,
                    FindingLevel::Skip,
                    "it serves none of the listed models",
                ))?;
                continue;
            };
            let finding = match self.client.call(small(protocol, model)).await {
                Ok(answer) => {
                    let message = format!("{model} answers in {}", amount::time(answer.elapsed));
                    Finding::new(protocol, FindingLevel::Ok, message)
                }
                // All protocols report an unlisted model as unknown.
                Err(error)
                    if error.code() == Some(ErrorCode::MODEL_NOT_FOUND.code)
                        && models.iter().all(|listed| listed.id != model) =>
                {
                    let failure = unless_known(self.client, model, "text", error).await;
                    return examined.add(
                        Finding::new(protocol, FindingLevel::Fail, failure.message())
                            .advise("`gatewright models` lists the models that the key may use"),
                    );
                }
                Err(error) => self.refused(protocol, &error),
            };
            examined.add(finding)?;
        }
        Ok(())
    }

    /// A failed call, and what to do. The error contains no secret: the client redacts them.
    fn refused(&self, name: &str, error: &Error) -> Finding {
        let advice = match self.is_behind_proxy.then(|| error.status()).flatten() {
            Some(PROXY_WANTS_PASSWORD) => {
                "set a user name and password for the proxy: http://NAME:PASSWORD@HOST:PORT in its variable"
                    .to_owned()
            }
            Some(502..=504) => {
                "the proxy is not allowed to reach the gateway: ask its administrator, or bypass it with NO_PROXY".to_owned()
            }
            _ => advice(error.kind()),
        };
        let failure = Failure::worded(&in_words(error), error);
        Finding::new(name, FindingLevel::Fail, failure.message()).advise(advice)
    }
}

fn wants_key(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Authentication | ErrorKind::PermissionDenied)
}

/// The difference between this clock and the gateway's. headers: of its response.
fn clock(headers: Option<&HeaderMap>, here: SystemTime) -> Finding {
    let date = headers.and_then(|headers| headers.get("date")?.to_str().ok());
    let there = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let Some(there) = there else {
        return Finding::new("clock", FindingLevel::Skip, "the gateway's response has no date");
    };
    let (apart, is_ahead) = match here.duration_since(there) {
        Ok(ahead) => (ahead, true),
        Err(behind) => (behind.duration(), false),
    };
    let message = format!(
        "this machine's clock is {} {} the gateway's",
        amount::time(apart),
        if is_ahead { "ahead of" } else { "behind" }
    );
    // Its time is in whole seconds, and the response took a while.
    match apart {
        apart if apart < SKEW_REPORTED => {
            Finding::new("clock", FindingLevel::Ok, "agrees with the gateway's")
        }
        apart if apart < SKEW_REFUSED => Finding::new("clock", FindingLevel::Warn, message)
            .advise("synchronize both clocks with a time server"),
        _ => Finding::new("clock", FindingLevel::Fail, message).advise(
            "synchronize both clocks with a time server: certificates and webhook signatures depend on them",
        ),
    }
}

fn models(models: &[Model]) -> Finding {
    const KINDS: [&str; 8] =
        ["text", "embedding", "rerank", "moderation", "speech", "transcription", "image", "video"];
    if models.is_empty() {
        return Finding::new("models", FindingLevel::Fail, "the key may not use any")
            .advise("create a key for other models with `gatewright keys`, or configure some");
    }
    let count = |wanted: &str| models.iter().filter(|model| kind(model) == Some(wanted)).count();
    let known = KINDS.map(|name| (name, count(name)));
    let others = models.len() - known.iter().map(|(_, count)| count).sum::<usize>();
    let counted = known.into_iter().chain([("other", others)]).filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(kind, count)| format!("{count} {kind}")).collect();
    Finding::new(
        "models",
        FindingLevel::Ok,
        format!("the key may use {}: {}", models.len(), counted.join(", ")),
    )
}

/// Whether a protocol may serve a model. A model without further information is tried.
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

/// The advice for a failed call.
fn advice(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Authentication => {
            format!("set {API_KEY_VARIABLE} to a key of this gateway; `gatewright keys list` lists them")
        }
        ErrorKind::PermissionDenied => {
            "the key does not permit this: `gatewright keys show` lists what it permits".to_owned()
        }
        ErrorKind::NotFound => "check the address: another service may be running there".to_owned(),
        ErrorKind::RateLimit => {
            "a limit of the key or the provider was reached: wait, or raise it".to_owned()
        }
        ErrorKind::Timeout => "the gateway or its provider is slow: --timeout waits longer".to_owned(),
        ErrorKind::Decode => "check the address: the service there is not a gateway".to_owned(),
        _ => "see the gateway's log, which has the request's id".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::header::DATE;

    use super::*;

    #[test]
    fn clock_skew_is_reported_with_its_amount() {
        let here = httpdate::parse_http_date("Fri, 31 Jul 2026 12:00:00 GMT").expect("a time");
        let verdict = |date: &str| {
            let headers = HeaderMap::from_iter([(DATE, date.parse().expect("a value"))]);
            clock(Some(&headers), here)
        };
        assert_eq!(verdict("Fri, 31 Jul 2026 12:00:02 GMT").verdict, FindingLevel::Ok);
        let warned = verdict("Fri, 31 Jul 2026 11:58:00 GMT");
        assert_eq!(
            (warned.verdict, &*warned.found),
            (FindingLevel::Warn, "this machine's clock is 2 min 0 s ahead of the gateway's")
        );
        let failed = verdict("Fri, 31 Jul 2026 13:00:00 GMT");
        assert_eq!(
            (failed.verdict, &*failed.found),
            (FindingLevel::Fail, "this machine's clock is 60 min 0 s behind the gateway's")
        );
        assert_eq!(clock(None, here).verdict, FindingLevel::Skip);
        assert_eq!(verdict("tomorrow").verdict, FindingLevel::Skip);
    }

    #[test]
    fn protocol_is_tested_with_a_model_it_may_serve() {
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
