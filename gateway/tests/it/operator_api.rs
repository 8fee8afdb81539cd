//! Responses of the operator API, held to `spec/admin.yaml`. Every request that tests send by [`read`](crate::support::read) passes
//! through [`check_response`].

use std::sync::LazyLock;

use gatewright_gateway::{ApiKey, Config};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{read, start_with};

const ADMIN: &str = "gw-admin-canary-77";

static SPEC: LazyLock<Value> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/admin.yaml");
    yaml_serde::from_str(&std::fs::read_to_string(file).expect("the specification")).expect("YAML")
});

/// The item of a path in the specification.
fn path_item(path: &str) -> Option<&'static Value> {
    let fits = |template: &str| {
        template.split('/').count() == path.split('/').count()
            && template.split('/').zip(path.split('/')).all(|(expected, found)| {
                expected == found || (expected.starts_with('{') && !found.is_empty())
            })
    };
    let paths = SPEC["paths"].as_object().expect("paths");
    // No template fits what a path without parameters fits: `config/history` has no sibling `config/{…}`.
    paths.iter().find(|(template, _)| fits(template)).map(|(_, item)| item)
}

/// Panics if the response of an operator's request doesn't have the form that the specification states.
pub(crate) fn check_response(method: &Method, path: &str, status: u16, body: &Value) {
    let Some(operation) = path_item(path).map(|item| &item[method.as_str().to_lowercase()]) else { return };
    if !operation.is_object() {
        return;
    }
    let responses = &operation["responses"];
    let stated = match status {
        // A push that changes nothing has the form of one that does.
        200 if responses.get("200").is_none() => &responses["201"],
        200..=299 => &responses[&status.to_string()],
        _ => &SPEC["components"]["responses"]["Error"],
    };
    let schema = &stated["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {path}: status {status} is not in spec/admin.yaml");
    let problems = problems(schema, body);
    assert!(problems.is_empty(), "{method} {path}: {}: {body}", problems.join("; "));
}

fn problems(schema: &Value, document: &Value) -> Vec<String> {
    let mut root = schema.as_object().expect("a schema").clone();
    root.insert("components".to_owned(), SPEC["components"].clone());
    let schema = jsonschema::draft202012::new(&Value::Object(root)).expect("a schema");
    schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn response_with_an_undocumented_member_is_a_problem() {
    let schema = json!({ "$ref": "#/components/schemas/KeyList" });
    assert!(problems(&schema, &json!({ "keys": [] })).is_empty());
    assert_eq!(problems(&schema, &json!({ "keys": [], "more": 1 })).len(), 1);
    assert!(!problems(&schema, &json!({ "keys": [{ "id": "key_1" }] })).is_empty());
}

/// The request bodies: each member of the specification with null, and those that are required.
#[tokio::test]
async fn members_of_operator_requests_may_be_null() {
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let server = start_with(Config { admin_key, ..Config::default() }).await;
    let send = async |method: Method, path: &str, body: &Value| {
        read(server.bare(method, path).bearer_auth(ADMIN).json(body)).await
    };
    let (status, issued) = send(Method::POST, "/admin/keys", &json!({ "name": "ci" })).await;
    assert_eq!(status, 201, "{issued}");
    for (schema, method, path, status) in [
        ("NewKey", Method::POST, "/admin/keys", 201),
        ("KeyUpdate", Method::PATCH, "/admin/keys/ci", 200),
        ("Rotation", Method::POST, "/admin/keys/ci/rotate", 200),
        // There is neither a document nor a revision to restore.
        ("ConfigPush", Method::POST, "/admin/config", 400),
    ] {
        let schema = &SPEC["components"]["schemas"][schema];
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
        };
        let members = schema["properties"].as_object().expect("properties").keys().map(|name| {
            let value = if required(name) { json!("another") } else { Value::Null };
            (name.clone(), value)
        });
        let body = Value::Object(members.collect::<Map<_, _>>());
        let (found, answer) = send(method, path, &body).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(found == status && !message.contains("the body is"), "{path}: {found} {answer}");
    }
    // Scopes and limits, too.
    for member in ["scopes", "limits"] {
        let schema = if member == "scopes" { "NewScopes" } else { "KeyLimits" };
        let properties = SPEC["components"]["schemas"][schema]["properties"].as_object().expect("properties");
        let nulls: Map<_, _> = properties.keys().map(|name| (name.clone(), Value::Null)).collect();
        let (status, key) = send(Method::PATCH, "/admin/keys/ci", &json!({ member: nulls })).await;
        assert_eq!(status, 200, "{key}");
    }
}
