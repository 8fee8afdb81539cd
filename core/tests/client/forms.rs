//! Forms on the wire: each attempt sends the same bytes, and what cannot be sent costs no request.

use gatewright::runtime::{operation_by_id, register};
use gatewright::{Call, ErrorKind, FilePart, Operation, RequestOptions};
use serde_json::json;

use crate::server::{Script, Server};

/// An operation of another API whose body is a form.
fn upload() -> &'static Operation {
    let member = |name: &str, field: &str, is_file: bool, is_list: bool| json!({"name": name, "field": field, "is_file": is_file, "is_list": is_list});
    let row = json!({
        "id": "forms/upload", "method": "POST", "path": "/upload", "path_parameters": [], "slashed_parameters": [],
        "query_parameters": [], "joined_query": [], "header_parameters": [], "fixed_query": [], "has_body": true,
        "form": [
            member("file", "file", true, false),
            member("note", "note", false, false),
            member("marks", "marks[]", false, true),
        ],
        "response": "object", "text_form": null, "stream": "never", "terminator": null, "last_events": [],
        "resource": "forms", "name": "upload",
    });
    register(&json!([row]).to_string()).unwrap();
    operation_by_id("forms/upload").unwrap()
}

fn file() -> FilePart {
    FilePart::new("a.wav", b"\0\r\n--\xff".as_slice()).with_media_type("audio/wav")
}

#[tokio::test]
async fn every_attempt_sends_the_same_form() {
    let busy = Script::whole(503, &[("retry-after-ms", "1")], "{}");
    let server = Server::start([busy, Script::json("{}")]).await;
    let client = server.builder().max_retries(1).build().unwrap();
    let extra = json!({"temperature": 0.5}).as_object().cloned();
    let options = RequestOptions {
        extra_body: extra,
        extra_headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        ..RequestOptions::default()
    };
    let call = Call::new(upload())
        .body(r#"{"note": "größe", "marks": ["x", "y"]}"#)
        .file("file", file())
        .options(options);
    client.call(call).await.unwrap();

    let requests = server.requests();
    let [first, second] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("content-type"), second.header("content-type"));
    let content_type = first.header("content-type").unwrap();
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    let field = |name: &str, text: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let before = format!(
        "{}{}{}{}--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n",
        field("temperature", "0.5"),
        field("note", "größe"),
        field("marks[]", "x"),
        field("marks[]", "y"),
    );
    let after = format!("\r\n--{boundary}--\r\n");
    assert_eq!(first.body, [before.as_bytes(), b"\0\r\n--\xff", after.as_bytes()].concat());
    assert_eq!(first.header("content-length").unwrap(), first.body.len().to_string());
}

#[tokio::test]
async fn form_that_cannot_be_sent_costs_no_request() {
    let server = Server::start([]).await;
    let client = server.builder().build().unwrap();
    for (call, message) in [
        (Call::new(upload()).body(r#"{"file": "a.wav"}"#), "file: the content of the file is missing"),
        (Call::new(upload()).body("{}").file("note", file()), "note takes no file"),
        (
            Call::new(upload()).body("{}").file("file", file().with_media_type("audio/wav\r\nX: y")),
            "file: \"audio/wav\\r\\nX: y\" is not a media type",
        ),
        (
            Call::new(&gatewright::operations::CREATE_IMAGE).body("{}").file("image", file()),
            "image takes no file",
        ),
    ] {
        let error = client.call(call).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message));
    }
    assert!(server.requests().is_empty());
}
