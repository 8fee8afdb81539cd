//! The published test suite of the signature, and a path of a model.

use std::time::{Duration, UNIX_EPOCH};

use http::Method;

use super::*;

/// Time of the test suite: 2015-08-30, 12:36:00 UTC.
const SUITE_SECONDS: u64 = 1_440_938_160;
/// Session token of the test suite.
const SESSION_TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

fn signer(token: Option<&str>, service: &str) -> RequestSigner {
    let (id, secret) = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    let credentials = Credentials::new(id, secret, token.map(str::to_owned), None, "test");
    RequestSigner::new(credentials, "us-east-1", service)
}

fn request(method: Method, address: &str, body: &'static str) -> http::Request<Bytes> {
    let mut request = http::Request::new(Bytes::from_static(body.as_bytes()));
    *request.method_mut() = method;
    *request.uri_mut() = address.parse().expect("an address");
    request
}

fn authorization(signer: &RequestSigner, mut request: http::Request<Bytes>) -> String {
    let now = UNIX_EPOCH + Duration::from_secs(SUITE_SECONDS);
    signer.sign(&mut request, now).expect("a signature");
    assert_eq!(request.headers()["x-amz-date"], "20150830T123600Z");
    request.headers()["authorization"].to_str().expect("text").to_owned()
}

fn expected(service: &str, headers: &str, signature: &str) -> String {
    let scope = format!("20150830/us-east-1/{service}/aws4_request");
    format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={headers}, Signature={signature}")
}

#[test]
fn signatures_match_the_published_test_suite() {
    for (name, method, target, signature) in [
        ("get-vanilla", Method::GET, "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "post-vanilla",
            Method::POST,
            "/",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "get-vanilla-query-order-key-case",
            Method::GET,
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "get-relative-relative",
            Method::GET,
            "/example1/example2/../..",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "get-slashes",
            Method::GET,
            "//example//",
            "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
        ),
    ] {
        let request = request(method, &format!("https://example.amazonaws.com{target}"), "");
        let header = authorization(&signer(None, "service"), request);
        assert_eq!(header, expected("service", "host;x-amz-date", signature), "{name}");
    }
}

#[test]
fn signed_body_and_content_type_match_the_published_test_suite() {
    let mut request = request(Method::POST, "https://example.amazonaws.com/", "Param1=value1");
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(header::CONTENT_TYPE, form);
    // A header that a proxy may change is not part of the signature.
    request.headers_mut().insert("x-request-id", HeaderValue::from_static("req_1"));
    let signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
    let header = authorization(&signer(None, "service"), request);
    assert_eq!(header, expected("service", "content-type;host;x-amz-date", signature));
}

#[test]
fn signed_session_token_matches_the_published_test_suite() {
    let mut request = request(Method::POST, "https://example.amazonaws.com/", "");
    let signer = signer(Some(SESSION_TOKEN), "service");
    signer.sign(&mut request, UNIX_EPOCH + Duration::from_secs(SUITE_SECONDS)).expect("a signature");
    let headers = request.headers();
    assert_eq!(headers["x-amz-security-token"], SESSION_TOKEN);
    let signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead";
    let names = "host;x-amz-date;x-amz-security-token";
    assert_eq!(headers["authorization"], expected("service", names, signature));
    assert!(headers["authorization"].is_sensitive() && headers["x-amz-security-token"].is_sensitive());
}

/// The expected signature was computed by hand from the canonical path `/model/a.b-v1%253A0/converse`.
#[test]
fn escaped_colon_in_the_path_is_double_escaped_in_the_signature() {
    let address = "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1%3A0/converse";
    let header = authorization(&signer(None, "bedrock"), request(Method::POST, address, "{}"));
    let signature = "20b7019fbc83c873339a1ac16c20cd74648fa8044af4fc332aa5b88a5382eee6";
    assert_eq!(header, expected("bedrock", "host;x-amz-date", signature));
}

#[test]
fn signature_depends_on_body_time_and_path() {
    let signer = signer(None, "bedrock");
    let base = "https://bedrock-runtime.us-east-1.amazonaws.com/model";
    let one = authorization(&signer, request(Method::POST, &format!("{base}/a/converse"), "{}"));
    let other_body = authorization(&signer, request(Method::POST, &format!("{base}/a/converse"), "[]"));
    let other_path = authorization(&signer, request(Method::POST, &format!("{base}/b/converse"), "{}"));
    assert_ne!(one, other_body);
    assert_ne!(one, other_path);
    let mut later = request(Method::POST, &format!("{base}/a/converse"), "{}");
    signer.sign(&mut later, UNIX_EPOCH + Duration::from_secs(SUITE_SECONDS + 1)).expect("a signature");
    assert_ne!(later.headers()["authorization"], one);
}

#[test]
fn debug_output_of_a_signer_hides_credentials() {
    let shown = format!("{:?}", signer(Some("canary-token"), "bedrock"));
    assert!(shown.contains("us-east-1") && shown.contains("bedrock"), "{shown}");
    assert!(!shown.contains("canary") && !shown.contains("wJalr") && !shown.contains("AKID"), "{shown}");
}
