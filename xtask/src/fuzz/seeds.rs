//! The seeds of a search: the test vectors, one file per case.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{files_of, root};

/// Writes the seeds for a target; a target without vectors starts with nothing.
pub(super) fn write(target: &str, folder: &Path) -> Result<()> {
    let inputs = match target {
        "sse" => [("sse/framing.json", "/chunks"), ("sse/streams.json", "/response/packets")]
            .into_iter()
            .map(|(file, packets)| {
                Ok(cases(file)?.iter().filter_map(|case| case.pointer(packets)).map(bytes).collect())
            })
            .collect::<Result<Vec<Vec<_>>>>()?
            .concat(),
        "accumulate" => {
            let documents =
                |case: &Value| case["data"].as_array().into_iter().flatten().map(json).collect::<Vec<_>>();
            cases("sse/streams.json")?.iter().map(|case| documents(case).join(&b'\n')).collect()
        }
        "limits" => {
            ["limits/requests.json", "limits/tools.json", "limits/native.json", "limits/messages.json"]
                .into_iter()
                .map(|file| Ok(cases(file)?.iter().map(|case| json(&case["body"])).collect::<Vec<_>>()))
                .collect::<Result<Vec<_>>>()?
                .concat()
        }
        "client_schemas" => cases("simulator/schemas.json")?
            .iter()
            .map(|case| {
                format!("{}\n{}", case["question"].as_str().unwrap_or_default(), case["schema"]).into_bytes()
            })
            .collect(),
        "gateway" => {
            let cases = cases("limits/requests.json")?;
            let text = |case: &Value| {
                format!("{}\n\n{}", case["operation"].as_str().unwrap_or_default(), case["body"])
            };
            let others =
                ["list_models\n\n", "list_native_models\n\n", "OPTIONS /files/x.png?exp=1&sig=x\n\n"];
            let faults = "create_response\nx-gatewright-fault: drip=1,repeat_terminal\nidempotency-key: k\n\n\
                {\"model\":\"model-sol\",\"input\":\"count to 9\",\"stream\":true}";
            let others = others.into_iter().chain([faults]).map(str::to_owned);
            cases.iter().map(text).chain(others).map(String::into_bytes).collect()
        }
        "protocols" | "strict" => protocol_documents()?,
        "relay" => streams()?,
        "config" => {
            let examples = files_of(&root().join("deploy/examples"), "toml")?;
            let starting = root().join("config/src/starting.toml");
            let read = |path| Ok(std::fs::read(path)?);
            let uncommented = |text: Vec<u8>| {
                let text = String::from_utf8_lossy(&text).replace("\n# ", "\n").replace("\n#", "\n");
                text.into_bytes()
            };
            let mut files = examples.into_iter().map(read).collect::<Result<Vec<_>>>()?;
            files.push(uncommented(std::fs::read(starting)?));
            files
        }
        "batch" => batches(),
        "form" => {
            let head = "multipart/form-data; boundary=b\n";
            let model = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n";
            let file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n";
            let forms = [format!("{head}{model}{file}--b--\r\n"), format!("{head}{file}{model}--b--")];
            forms.into_iter().map(String::into_bytes).collect()
        }
        "videos" => {
            let public = r#"{"id":"v","status":"completed","seconds":"8","size":"1280x720","error":null}"#;
            let specified = r#"{"id":"v","status":"completed","output":{"url":"https://a.example/v.mp4",
                "duration":8,"resolution":"1280x720"},"estimated_time":9}"#;
            let failed = r#"{"id":"v","status":"failed","error":{"code":"x","message":"no"}}"#;
            let request = r#"{"model":"m","prompt":"a","duration":5,"resolution":"720p","seconds":"5",
                "size":"1x1","webhook_url":"https://a.example"}"#;
            let documents = [public, specified, failed, request];
            documents
                .iter()
                .flat_map(|text| ["\0", "\u{1}"].map(|form| format!("{form}{text}").into_bytes()))
                .collect()
        }
        "report" | "report_checker" => report_documents()?,
        "base_url" => texts(&[
            "http://127.0.0.1:8080\nm",
            "https://gateway.example/a/v1beta//\na b:ü",
            " http://[::1]:1/v1/ \n..%2f",
            "http://h/%2e%2e/v1/v1\n.",
            "http://u:p@h\nx",
            "http://h:65536/\n\u{7f}",
            "http://xn--\u{ad}\n\\",
        ]),
        "answer" => texts(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.0 404 No\r\nconnection: close\r\n\r\nrest",
        ]),
        "connection" => texts(&[
            "\u{7}POST /a?b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nokGET / HTTP/1.1\r\n\r\n",
            "\u{1}POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nx: y\r\n\r\n\r\nHEAD * HTTP/1.0\n\n",
            "\u{3}PUT http://h/ HTTP/1.1\r\nexpect: 100-continue\r\nconnection: close, x\r\ncontent-length: 1, 1\r\n\r\n!",
        ]),
        "error_body" => error_bodies()?,
        "headers" => texts(&[
            "\0\0retry-after: 10000000000000000000\nretry-after-ms: 1e400",
            "\0\0retry-after-ms: -0\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT",
            "\0\0retry-after: NaN\nretry-after: 1e-400",
            "\u{1}\0location: //elsewhere/\nx-request-id: r\nrequest-id: s",
            "\0\0content-range: bytes 5-18446744073709551615/*\netag: \"a\"",
            "\0\0content-range: bytes 5-9/10\ncontent-type: text/html; charset=x\nx-should-retry: true",
        ]),
        "webhook" => {
            let bodies = cases("webhooks/verify.json")?;
            let bodies = bodies.iter().filter_map(|case| case["body"]["text"].as_str());
            bodies.map(|body| format!("msg_1\nv1,bm90IHNpZ25lZA==\n{body}").into_bytes()).collect()
        }
        _ => Vec::new(),
    };
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("{number:04}")), input)?;
    }
    Ok(())
}

/// Files of requests.
fn batches() -> Vec<Vec<u8>> {
    let line = |id: &str, body: &str| {
        format!(r#"{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":{body}}}"#)
    };
    let (one, two) = (line("a", r#"{"model":"m","n":2}"#), line("b", r#"{"max_tokens":7,"model":"m"}"#));
    [one.clone(), format!("{one}\r\n\n{two}\n")].into_iter().map(String::into_bytes).collect()
}

/// Errors that are large, deep or not JSON, and streams in place of errors.
fn error_bodies() -> Result<Vec<Vec<u8>>> {
    let worst = [
        br#"[{"error":{"code":503,"message":"m","status":"S","details":[{"fieldViolations":[{"field":"f"}]}]}}]"#
            .to_vec(),
        [b"id: i\n\n".to_vec(), b"data:\n\n".repeat(99)].concat(),
        [b"[".to_vec(), br#"{"":0},"#.repeat(99), b"0]".to_vec()].concat(),
        b"[".repeat(999),
        b"<html><title>\xFF</title".repeat(9),
    ];
    let streams = cases("sse/streams.json")?;
    let packets = streams.iter().filter_map(|case| case.pointer("/response/packets"));
    Ok(worst.into_iter().chain(packets.map(bytes)).collect())
}

/// Requests, answers and streams of each protocol: a byte for the protocol, one for the kind, and the document.
fn protocol_documents() -> Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    for (protocol, folder) in (0..).zip(["chat", "responses", "messages", "native"]) {
        for (kind, file, member) in [(0, "requests", "request"), (1, "answers", "answer")] {
            for case in cases(&format!("protocols/{folder}/{file}.json"))? {
                inputs.push([vec![protocol, kind], json(&case[member])].concat());
            }
        }
        for case in cases(&format!("protocols/{folder}/streams.json"))? {
            let mut input = vec![protocol, 3];
            for event in case["events"].as_array().into_iter().flatten() {
                let name = event["event"].as_str().map(|name| format!("{name}\t")).unwrap_or_default();
                let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
                input.extend_from_slice(format!("{name}{data}\n").as_bytes());
            }
            inputs.push(input);
        }
    }
    Ok(inputs)
}

/// Streams of each protocol as upstreams send them: bytes for the protocol, the form and the size of packets.
fn streams() -> Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    for (protocol, folder) in (0..).zip(["chat", "responses", "messages", "native"]) {
        for (number, case) in (0..).zip(cases(&format!("protocols/{folder}/streams.json"))?) {
            let end = ["\n", "\r\n", "\r"][usize::from(number % 3)];
            let mut input = vec![protocol, number % 4, number];
            for event in case["events"].as_array().into_iter().flatten() {
                let name =
                    event["event"].as_str().map(|name| format!("event: {name}{end}")).unwrap_or_default();
                let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
                input.extend_from_slice(format!("{name}data: {data}{end}{end}").as_bytes());
            }
            inputs.push(input);
        }
    }
    Ok(inputs)
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn cases(file: &str) -> Result<Vec<Value>> {
    let path = root().join("tests/vectors").join(file);
    let mut vectors: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    match vectors["cases"].take() {
        Value::Array(cases) => Ok(cases),
        _ => anyhow::bail!("{} has no cases", path.display()),
    }
}

fn json(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The bytes of packets, each `{"text": …}` or `{"hex": …}`.
fn bytes(packets: &Value) -> Vec<u8> {
    let packets = packets.as_array().into_iter().flatten();
    packets
        .flat_map(|packet| match (packet["text"].as_str(), packet["hex"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (_, Some(hex)) => unhex(hex),
            _ => Vec::new(),
        })
        .collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| Some(u8::try_from(digit.to_digit(16)?).expect("below 16"))).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The bases, and the documents that are written out. The search itself mutates the bases.
fn report_documents() -> Result<Vec<Vec<u8>>> {
    let folder = root().join("tests/vectors/report");
    let mut documents = Vec::new();
    for base in files_of(&folder.join("bases"), "json")? {
        documents.push(std::fs::read(base)?);
    }
    for file in files_of(&folder, "json")? {
        let name = file.file_name().and_then(|name| name.to_str()).context("a vector file has a name")?;
        for case in cases(&format!("report/{name}"))? {
            match (&case["text"], case.get("document")) {
                (Value::String(text), _) => documents.push(text.clone().into_bytes()),
                (Value::Array(lines), _) => {
                    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                    documents.push(lines.join("\n").into_bytes());
                }
                (_, Some(document)) => documents.push(json(document)),
                _ => {}
            }
        }
    }
    Ok(documents)
}
