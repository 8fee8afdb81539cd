//! Webhooks (2.7, 6): the vectors, with signatures made by the reference library where it can make them.

use std::collections::HashMap;
use std::time::SystemTime;

use gatewright::ErrorKind;
use gatewright::webhook::{self, Secret};
use serde::Deserialize;
use serde_json::{Map, Value};
use standardwebhooks::Webhook as Reference;

use crate::vectors::{self, Packet};

#[derive(Deserialize)]
struct Vectors {
    /// By the names that the cases use.
    secrets: HashMap<String, String>,
    id: String,
    body: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    secrets: Vec<String>,
    body: Option<Body>,
    #[serde(default)]
    age_s: i64,
    signatures: Vec<Signature>,
    #[serde(default = "space")]
    separator: String,
    #[serde(default)]
    set: HashMap<String, String>,
    #[serde(default)]
    rename: HashMap<String, String>,
    #[serde(default)]
    remove: Vec<String>,
    #[serde(default)]
    add: Vec<(String, String)>,
    task: Option<Map<String, Value>>,
    error: Option<String>,
    param: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(flatten)]
    bytes: Packet,
    #[serde(default = "once")]
    times: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Signature {
    Literal(String),
    Made {
        secret: String,
        body: Option<Body>,
        id: Option<String>,
        age_s: Option<i64>,
        version: Option<String>,
        #[serde(default)]
        cut: usize,
    },
}

fn space() -> String {
    " ".to_owned()
}

fn once() -> usize {
    1
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_secs().try_into().unwrap()
}

impl Vectors {
    fn read() -> Self {
        serde_json::from_str(&vectors::text("webhooks/verify.json")).unwrap()
    }

    fn body(&self, given: Option<&Body>) -> Vec<u8> {
        given.map_or_else(|| self.body.clone().into(), |body| body.bytes.bytes().repeat(body.times))
    }

    /// One entry of the signature header, made by the reference library.
    fn signature(&self, given: &Signature, case: &Case, timestamp: &str) -> String {
        let (secret, body, id, age_s, version, cut) = match given {
            Signature::Literal(text) => return text.clone(),
            Signature::Made { secret, body, id, age_s, version, cut } => {
                (secret, body, id, age_s, version, cut)
            }
        };
        let signed = self.body(body.as_ref().or(case.body.as_ref()));
        let id = id.as_ref().unwrap_or(&self.id);
        let timestamp = age_s.map_or_else(|| timestamp.parse().unwrap_or(0), |age_s| now() - age_s);
        let key = &self.secrets[secret];
        // The reference library does not sign bodies that are not UTF-8.
        let made = Reference::new(key)
            .unwrap()
            .sign(id, timestamp, &signed)
            .unwrap_or_else(|_| Secret::new(key).unwrap().sign(id, timestamp.try_into().unwrap(), &signed));
        let made = match version.as_deref() {
            None => made,
            Some("") => made.replacen("v1,", "", 1),
            Some(version) => made.replacen("v1", version, 1),
        };
        made[..made.len() - cut].to_owned()
    }

    fn headers(&self, case: &Case) -> Vec<(String, String)> {
        let set = |name: &str| case.set.get(name).cloned();
        let timestamp = set("webhook-timestamp").unwrap_or_else(|| (now() - case.age_s).to_string());
        let signatures: Vec<_> =
            case.signatures.iter().map(|given| self.signature(given, case, &timestamp)).collect();
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", set("webhook-id").unwrap_or_else(|| self.id.clone())),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signatures.join(&case.separator)),
        ];
        let kept = headers.into_iter().filter(|(name, _)| !case.remove.iter().any(|removed| removed == name));
        let named = kept
            .map(|(name, value)| (case.rename.get(name).cloned().unwrap_or_else(|| name.to_owned()), value));
        named.chain(case.add.iter().cloned()).collect()
    }
}

#[test]
fn webhooks_are_verified_as_the_vectors_expect() {
    let vectors = Vectors::read();
    assert!(!vectors.cases.is_empty());
    for case in &vectors.cases {
        let name = &case.name;
        let secrets = case.secrets.iter().map(|name| Secret::new(&vectors.secrets[name]).unwrap());
        let secrets: Vec<_> = secrets.collect();
        let (body, headers) = (vectors.body(case.body.as_ref()), vectors.headers(case));
        assert_eq!(
            webhook::verify(&body, headers.iter().map(|(name, value)| (name, value)), &secrets).is_ok(),
            case.error.is_none(),
            "{name}"
        );
        match (webhook::unwrap(&body, headers, &secrets), case.error.as_deref()) {
            (Ok(task), None) => {
                let task = serde_json::to_value(task).unwrap();
                for (member, value) in case.task.as_ref().expect("an accepted webhook has a task") {
                    assert_eq!(&task[member], value, "{name}: {member}");
                }
            }
            (Err(error), Some(expected)) => {
                let (kind, code) = match expected {
                    "decode" => (ErrorKind::Decode, None),
                    "configuration" => (ErrorKind::Configuration, None),
                    code => (ErrorKind::WebhookSignature, Some(code)),
                };
                assert_eq!((error.kind(), error.code()), (kind, code), "{name}: {error}");
                assert_eq!(error.param(), case.param.as_deref(), "{name}: {error}");
                let shown = format!("{error} {error:?}");
                for secret in vectors.secrets.values() {
                    assert!(!shown.contains(&secret["whsec_".len()..]), "{name}: {shown}");
                }
            }
            (outcome, expected) => panic!("{name}: {outcome:?} where {expected:?} was expected"),
        }
    }
}

#[test]
fn reference_library_accepts_our_signatures() {
    let vectors = Vectors::read();
    let (id, body, timestamp) = (&vectors.id, vectors.body.as_bytes(), now());
    for text in vectors.secrets.values() {
        let secret = Secret::new(text).unwrap();
        let signature = secret.sign(id, timestamp.try_into().unwrap(), body);
        let headers = [
            (webhook::ID_HEADER, id.clone()),
            (webhook::TIMESTAMP_HEADER, timestamp.to_string()),
            (webhook::SIGNATURE_HEADER, signature),
        ];
        // Header maps of common servers are accepted as they are.
        let headers = http::HeaderMap::from_iter(headers.map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::try_from(value).unwrap())
        }));
        Reference::new(text).unwrap().verify(body, &headers).unwrap();
        assert_eq!(webhook::unwrap(body, &headers, &[secret]).unwrap().id, "task_1");
    }
}

#[test]
fn unsigned_webhook_is_parsed_on_request() {
    assert_eq!(webhook::parse_unsigned(Vectors::read().body.as_bytes()).unwrap().id, "task_1");
    for body in [b"".as_slice(), b"{}", b"[]", &b" ".repeat(webhook::MAX_WEBHOOK_BODY_BYTES + 1)] {
        assert_eq!(webhook::parse_unsigned(body).unwrap_err().kind(), ErrorKind::Decode);
    }
}

#[test]
fn secrets_are_parsed_with_and_without_padding_and_never_shown() {
    let secret = Secret::from_bytes([7; 32]).unwrap();
    let text = secret.expose();
    assert_eq!(Secret::new(&format!(" {text}\n")).unwrap(), secret);
    assert_eq!(Secret::new(text.trim_end_matches('=')).unwrap(), secret);
    assert_eq!(format!("{secret:?}"), "Secret([redacted])");
    for other in ["", "whsec_", "whsec_!!", "whsec_c2hvcnQ=", &text["whsec_".len()..], "canary-canary-canary"]
    {
        let error = Secret::new(other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    }
}
