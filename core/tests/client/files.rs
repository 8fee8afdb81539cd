//! Saving generated files (2.7, 2.11, 4 rule 4): streamed, resumed once, and saved whole or not at all.

use std::path::Path;
use std::time::{Duration, Instant};

use gatewright::types::{Image, VideoTask};
use gatewright::{Error, ErrorKind, SaveOptions, Saved, check_place};
use tempfile::TempDir;

use crate::server::{Script, Server, Step};

const CONTENTS: &[u8] = b"0123456789abcdefghij";
const TAG: (&str, &str) = ("etag", "\"one\"");

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The names of everything in a folder, including the leftovers of a transfer.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The head of a response with this length, of which only a part arrives before the connection breaks.
fn broken(headers: &[(&str, &str)], length: usize, arrives: &[u8]) -> Script {
    let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{}\r\n", lines.concat());
    Script::bytes([head.as_bytes(), arrives].concat())
}

fn part(range: &str, body: &[u8]) -> Script {
    Script::whole(206, &[("content-range", range), TAG], body)
}

async fn save(server: &Server, path: &Path) -> Result<Saved, Error> {
    server.client().save(&format!("{}/files/a?sig=canary", server.url()), path, SaveOptions::default()).await
}

/// Saves what the server sends, and checks that the file is all that is left, or that nothing is left.
async fn saved(scripts: impl IntoIterator<Item = Script>) -> (Server, Result<Vec<u8>, Error>) {
    let (server, folder) = (Server::start(scripts).await, folder());
    let place = folder.path().join("a.bin");
    let outcome = save(&server, &place).await;
    let outcome = outcome.map(|saved| {
        let contents = std::fs::read(&place).unwrap();
        assert_eq!((saved.path, saved.bytes), (place, contents.len() as u64));
        contents
    });
    assert_eq!(names(folder.path()).len(), usize::from(outcome.is_ok()));
    (server, outcome)
}

#[tokio::test]
async fn file_is_saved_unchanged_and_the_key_is_not_sent() {
    let (server, outcome) = saved([Script::whole(200, &[TAG], CONTENTS)]).await;
    assert_eq!(outcome.unwrap(), CONTENTS);
    let request = &server.requests()[0];
    assert_eq!(request.line, "GET /files/a?sig=canary HTTP/1.1");
    assert_eq!((request.header("authorization"), request.header("range")), (None, None));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert!(request.header("user-agent").unwrap().starts_with("gatewright/"));
}

#[tokio::test]
async fn key_is_not_sent_to_another_host_directly_or_by_redirect() {
    let elsewhere =
        Server::start([Script::whole(200, &[], CONTENTS), Script::whole(200, &[], CONTENTS)]).await;
    let location = format!("{}/b", elsewhere.url());
    let gateway = Server::start([Script::whole(302, &[("location", &location)], "")]).await;
    let folder = folder();
    for url in [format!("{}/a", gateway.url()), location] {
        gateway.client().save(&url, folder.path().join("a"), SaveOptions::default()).await.unwrap();
    }
    for request in gateway.requests().iter().chain(&elsewhere.requests()) {
        assert_eq!(request.header("authorization"), None, "{}", request.line);
    }
    assert_eq!(elsewhere.requests().len(), 2);
}

#[tokio::test]
async fn broken_transfer_resumes_where_it_stopped() {
    let rest = part("bytes 8-19/20", &CONTENTS[8..]);
    let (server, outcome) = saved([broken(&[TAG], 20, &CONTENTS[..8]), rest]).await;
    assert_eq!(outcome.unwrap(), CONTENTS);
    let second = &server.requests()[1];
    assert_eq!((second.header("range"), second.header("if-range")), (Some("bytes=8-"), Some("\"one\"")));
}

#[tokio::test]
async fn transfer_restarts_if_the_range_is_ignored_or_the_file_changed() {
    let other = b"another file";
    let (server, outcome) =
        saved([broken(&[TAG], 20, &CONTENTS[..8]), Script::whole(200, &[("etag", "\"two\"")], other)]).await;
    assert_eq!(outcome.unwrap(), other);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn broken_transfer_without_a_strong_etag_restarts() {
    for headers in [&[][..], &[("etag", "W/\"one\"")]] {
        let (server, outcome) =
            saved([broken(headers, 20, &CONTENTS[..8]), Script::whole(200, &[], CONTENTS)]).await;
        assert_eq!(outcome.unwrap(), CONTENTS);
        assert_eq!(server.requests()[1].header("range"), None);
    }
}

#[tokio::test]
async fn range_that_was_not_requested_is_not_appended() {
    let wrong = [
        part("bytes 9-19/20", &CONTENTS[9..]),
        part("bytes 8-18/20", &CONTENTS[8..19]),
        part("bytes 8-29/30", &[b'x'; 22]),
        part("nonsense", &CONTENTS[8..]),
        Script::whole(206, &[TAG], &CONTENTS[8..]),
        Script::whole(206, &[("content-range", "bytes 8-19/20"), ("etag", "\"two\"")], &CONTENTS[8..]),
        Script::whole(416, &[("content-range", "bytes */5")], ""),
    ];
    for wrong in wrong {
        let whole = Script::whole(200, &[], CONTENTS);
        let (server, outcome) = saved([broken(&[TAG], 20, &CONTENTS[..8]), wrong, whole]).await;
        assert_eq!(outcome.unwrap(), CONTENTS);
        assert_eq!(server.requests()[2].header("range"), None);
    }
}

#[tokio::test]
async fn transfer_resumes_only_once() {
    let breaks = [
        broken(&[TAG], 20, &CONTENTS[..8]),
        broken(&[TAG], 20, &CONTENTS[..4]),
        Script::whole(200, &[], CONTENTS),
    ];
    let (server, outcome) = saved(breaks).await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn truncated_range_is_not_a_complete_file() {
    let head = "HTTP/1.1 206 X\r\ncontent-range: bytes 8-19/20\r\n\r\n";
    let short = Script::bytes([head.as_bytes(), &CONTENTS[8..12]].concat());
    let (_, outcome) = saved([broken(&[TAG], 20, &CONTENTS[..8]), short]).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.message().ends_with("was cut off after 12 of 20 bytes"), "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

#[tokio::test]
async fn transient_failures_are_retried_and_permanent_ones_reported() {
    let busy = Script::whole(503, &[], "");
    let (_, outcome) = saved([busy, Script::whole(200, &[], CONTENTS)]).await;
    assert_eq!(outcome.unwrap(), CONTENTS);
    let expired = Script::whole(410, &[], r#"{"error":{"message":"it has expired","code":"file_expired"}}"#);
    let (server, outcome) = saved([expired]).await;
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.status(), error.code(), error.message()),
        (Some(410), Some("file_expired"), "it has expired")
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn response_that_is_not_a_file_is_not_saved() {
    for (script, kind) in [
        (part("bytes 0-19/20", CONTENTS), ErrorKind::Decode),
        (Script::whole(200, &[("content-encoding", "gzip")], CONTENTS), ErrorKind::Decode),
        (
            Script::whole(200, &[("content-type", "Text/HTML; charset=utf-8")], "<h1>Sign in</h1>"),
            ErrorKind::Decode,
        ),
        (Script::whole(204, &[], ""), ErrorKind::Status),
        (Script::whole(302, &[("location", "ftp://h/a")], ""), ErrorKind::Status),
    ] {
        let (_, outcome) = saved([script]).await;
        assert_eq!(outcome.unwrap_err().kind(), kind);
    }
    let client = Server::start([]).await.client();
    for url in ["", "files/a", "file:///etc/passwd", "ftp://h/a"] {
        let error = client.save(url, "nowhere/a", SaveOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{url}");
    }
}

#[tokio::test]
async fn file_over_the_limit_is_not_saved_with_or_without_content_length() {
    let packets = Script::begin(200, &[]).packet(&CONTENTS[..10]).packet(&CONTENTS[10..]).end();
    for script in [Script::whole(200, &[], CONTENTS), packets] {
        let (server, folder) = (Server::start([script]).await, folder());
        let options = SaveOptions { max_bytes: 19, ..SaveOptions::default() };
        let error = server.client().save(&server.url(), folder.path().join("a"), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.message().contains("larger than the allowed 19 bytes"), "{error}");
        assert!(names(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn existing_file_is_replaced_by_default_and_survives_failures() {
    let whole = || Script::whole(200, &[], CONTENTS);
    let (server, folder) = (Server::start([Script::whole(404, &[], ""), whole(), whole()]).await, folder());
    let place = folder.path().join("a");
    std::fs::write(&place, "before").unwrap();
    let keep = SaveOptions { overwrite: false, ..SaveOptions::default() };
    let error = server.client().save(&server.url(), &place, keep).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("overwriting was not allowed"), "{error}");
    assert!(server.requests().is_empty(), "nothing is fetched that has no place");
    assert_eq!(save(&server, &place).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read(&place).unwrap(), b"before");
    save(&server, &place).await.unwrap();
    assert_eq!(std::fs::read(&place).unwrap(), CONTENTS);
    assert_eq!(names(folder.path()), ["a"]);
}

#[cfg(unix)]
#[tokio::test]
async fn symlink_is_followed_and_special_files_are_left_alone() {
    let (server, folder) = (Server::start([Script::whole(200, &[], CONTENTS)]).await, folder());
    let (place, link) = (folder.path().join("a"), folder.path().join("link"));
    std::fs::write(&place, "before").unwrap();
    std::os::unix::fs::symlink(&place, &link).unwrap();
    save(&server, &link).await.unwrap();
    assert_eq!(std::fs::read(&place).unwrap(), CONTENTS);
    assert!(link.is_symlink());
    for other in [folder.path(), Path::new("/dev/null")] {
        assert_eq!(save(&server, other).await.unwrap_err().kind(), ErrorKind::Io);
    }
}

#[tokio::test]
async fn missing_folder_is_reported_before_anything_is_fetched() {
    let (server, folder) = (Server::start([]).await, folder());
    let place = folder.path().join("missing/a");
    let error = save(&server, &place).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("missing/a: its folder does not exist"), "{error}");
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
    assert!(server.requests().is_empty());
    assert_eq!(check_place(&place, &SaveOptions::default()).await.unwrap_err().kind(), ErrorKind::Io);
    check_place(folder.path().join("a"), &SaveOptions::default()).await.unwrap();
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn dropping_or_timing_out_leaves_nothing_behind_and_closes_the_connection() {
    let hanging = || Script::begin(200, &[]).packet(CONTENTS).then(Step::Hang);
    let (server, folder) = (Server::start([hanging(), hanging()]).await, folder());
    let place = folder.path().join("a");
    let dropped = tokio::time::timeout(Duration::from_millis(500), save(&server, &place)).await;
    assert!(dropped.is_err());
    assert!(server.connections_closed(1, Duration::from_secs(2)).await);
    assert!(names(folder.path()).is_empty());
    let options = SaveOptions { timeout: Some(Duration::from_millis(150)), ..SaveOptions::default() };
    let started = Instant::now();
    let error = server.client().save(&server.url(), &place, options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn transfer_that_stalls_twice_is_a_timeout() {
    let silent = || Script::begin(200, &[]).packet(CONTENTS).then(Step::Hang);
    let (server, folder) = (Server::start([silent(), silent()]).await, folder());
    let client = server.builder().idle_timeout(Duration::from_millis(100)).build().unwrap();
    let error =
        client.save(&server.url(), folder.path().join("a"), SaveOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Timeout, 2));
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn large_file_is_streamed_and_arrives_complete() {
    let megabyte: Vec<u8> = (0..=u8::MAX).cycle().take(1024 * 1024).collect();
    let mut script = Script::begin(200, &[]);
    for _ in 0..24 {
        script = script.packet(&megabyte);
    }
    let (_, outcome) = saved([script.end()]).await;
    assert!(outcome.unwrap() == megabyte.repeat(24));
}

#[tokio::test]
async fn image_is_saved_from_base64_or_url() {
    let server = Server::start([Script::whole(200, &[], CONTENTS)]).await;
    let (client, folder) = (server.client(), folder());
    let place = folder.path().join("a.png");
    let image = |json: String| serde_json::from_str::<Image>(&json).unwrap();
    let by_url = image(format!(r#"{{"url":"{}/files/a"}}"#, server.url()));
    let saved = client.images().save(&by_url, &place, SaveOptions::default()).await.unwrap();
    assert_eq!((saved.bytes, std::fs::read(&place).unwrap()), (20, CONTENTS.to_vec()));
    // Longer than one step of the decoder.
    let contents: Vec<u8> = (0..=u8::MAX).cycle().take(200_001).collect();
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &contents);
    let inline = image(format!(r#"{{"b64_json":"{encoded}"}}"#));
    let saved = client.images().save(&inline, &place, SaveOptions::default()).await.unwrap();
    assert_eq!((saved.bytes, std::fs::read(&place).unwrap()), (200_001, contents));
    assert_eq!(server.requests().len(), 1);
    let small = SaveOptions { max_bytes: 200_000, ..SaveOptions::default() };
    assert_eq!(client.images().save(&inline, &place, small).await.unwrap_err().kind(), ErrorKind::Decode);
}

#[tokio::test]
async fn invalid_base64_is_rejected_and_leaves_nothing_behind() {
    let (client, folder) = (Server::start([]).await.client(), folder());
    let place = folder.path().join("a.png");
    for (b64_json, kind) in [
        (Some("aGk=aGk="), ErrorKind::Decode),
        (Some("aGk"), ErrorKind::Decode),
        (Some("aG k="), ErrorKind::Decode),
        (Some("aGl="), ErrorKind::Decode),
        (Some("data:image/png;base64,aGk="), ErrorKind::Decode),
        (None, ErrorKind::InvalidRequest),
    ] {
        let image = Image { b64_json: b64_json.map(str::to_owned), ..Image::default() };
        let error = client.images().save(&image, &place, SaveOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{b64_json:?}");
    }
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn video_is_saved_from_its_task() {
    let server = Server::start([Script::whole(200, &[], CONTENTS), Script::whole(200, &[], CONTENTS)]).await;
    let (client, folder) = (server.client(), folder());
    let task = format!(
        r#"{{"id":"t","status":"completed","created":1,"model":"m","output":{{"url":"{}/v","duration":5,"resolution":"1x1","format":"mp4"}}}}"#,
        server.url()
    );
    let typed: VideoTask = serde_json::from_str(&task).unwrap();
    let place = folder.path().join("t.mp4");
    let saved = client.videos().generations().save(&typed, &place, SaveOptions::default()).await.unwrap();
    assert_eq!(saved.bytes, 20);
    assert_eq!(client.save_video(task.as_bytes(), &place, SaveOptions::default()).await.unwrap(), saved);
}
