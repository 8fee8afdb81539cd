//! Runs the fuzz targets with vectors in which some bytes are changed. `cargo xtask fuzz` searches longer.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// The maximum number of changes to an input.
const MAX_CHANGES: usize = 4;
/// Bytes that mean something to one of the parsers.
const BYTES: &[u8] = b"\0\n\r\" {}[]:,/\\.-+09eEnu\x7f\xc3\xff";

/// The inputs with up to [`MAX_CHANGES`] bytes changed, added or removed, or cut off.
fn changed(inputs: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<Index>(), select(BYTES), 0..8_u8), 0..=MAX_CHANGES);
    (select(inputs), changes).prop_map(|(mut input, changes)| {
        for (at, byte, way) in changes {
            let at = at.index(input.len() + 1);
            match (way, input.get_mut(at)) {
                (0, _) => input.truncate(at),
                (1 | 2, Some(_)) => drop(input.remove(at)),
                (3..=5, Some(place)) => *place = byte,
                _ => input.insert(at, byte),
            }
        }
        input
    })
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// One member of each case in a vector file.
fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut document: Value = serde_json::from_slice(&text).expect("vectors are JSON");
    match document["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("{path} has no cases but {other}"),
    }
}

fn streams() -> Vec<Vec<u8>> {
    let line = |data: &Value| data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    let lines = |case: &Value| case["data"].as_array().map(|data| data.iter().map(line).collect::<Vec<_>>());
    cases("sse/streams.json").iter().filter_map(lines).map(|lines| lines.join("\n").into_bytes()).collect()
}

fn requests() -> Vec<Vec<u8>> {
    let files = ["limits/requests.json", "limits/tools.json", "limits/native.json", "limits/messages.json"];
    files.iter().flat_map(|file| cases(file)).map(|case| case["body"].to_string().into_bytes()).collect()
}

fn notifications() -> Vec<Vec<u8>> {
    let cases = cases("webhooks/verify.json");
    let bodies = cases.iter().filter_map(|case| case["body"]["text"].as_str());
    bodies.map(|body| format!("msg_1\nv1,bm90IHNpZ25lZA==\n{body}").into_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stream_accumulates_into_consistent_documents(input in changed(streams())) {
        accumulate(&String::from_utf8_lossy(&input));
    }

    #[test]
    fn joined_urls_stay_below_an_accepted_base_url(input in changed(texts(&[
        "https://gateway.example/a/v1beta//\na b:ü",
        " http://[::1]:1/v1/ \n..%2f",
        "http://h/%2e%2e/v1/v1\n.",
        "http://u:p@h\nx",
        "http://h:65536/\n\u{7f}",
        "http://xn--\u{ad}\n\\",
    ]))) {
        base_url(&String::from_utf8_lossy(&input));
    }

    #[test]
    fn parsed_error_is_no_larger_than_its_body(input in changed(texts(&[
        r#"[{"error":{"code":503,"message":"m","status":"S","details":[{"fieldViolations":[{"field":"f"}]}]}}]"#,
        "id: i\n\ndata: {\"error\":{\"type\":\"t\",\"message\":\"m\"}}\n\n",
        "[[[{\"\":0},{\"\":0},0]",
        "<html><title>a</title>",
    ]))) {
        error_body(&input);
    }

    #[test]
    fn response_headers_parse_within_bounds(input in changed(texts(&[
        "\0\0retry-after: 10000000000000000000\nretry-after-ms: 1e400",
        "\0\0retry-after-ms: -0\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT",
        "\0\0retry-after: NaN\nretry-after: 1e-400",
        "\u{1}\0location: //elsewhere/\nx-request-id: r\nrequest-id: s",
        "\0\0content-range: bytes 5-18446744073709551615/*\netag: \"a\"",
        "\0\0content-range: bytes 5-9/10\ncontent-type: text/html; charset=x\nx-should-retry: true",
    ]))) {
        headers(&input);
    }

    #[test]
    fn violation_pointers_resolve_in_any_request(input in changed(requests())) {
        check_limits(&input);
    }

    #[test]
    fn only_secret_holder_can_sign_a_notification(input in changed(notifications())) {
        unwrap_webhook(&input);
    }
}
