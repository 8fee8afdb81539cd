//! Reads a body of `multipart/form-data` as strictly as RFC 7578 and RFC 2046 allow: nothing before, between and after the parts.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

/// The boundary of a form; none for another media type.
pub(super) fn boundary(content_type: Option<&str>) -> Option<String> {
    content_type?.strip_prefix("multipart/form-data; boundary=").map(str::to_owned)
}

/// The parts in order: `name`, and either `text`, or of a file `filename` (as it is encoded), `content-type` and `bytes` in
/// hexadecimal digits.
pub(super) fn parts(body: &[u8], boundary: &str) -> Result<Value> {
    let first = format!("--{boundary}\r\n");
    let between = format!("\r\n--{boundary}");
    let mut rest =
        body.strip_prefix(first.as_bytes()).context("the body does not begin with its boundary")?;
    let mut parts = Vec::new();
    loop {
        let end = find(rest, between.as_bytes()).context("a part has no end")?;
        parts.push(part(&rest[..end])?);
        rest = &rest[end + between.len()..];
        if rest == b"--\r\n" {
            return Ok(Value::Array(parts));
        }
        rest = rest.strip_prefix(b"\r\n").context("a boundary has no line of its own")?;
    }
}

fn part(bytes: &[u8]) -> Result<Value> {
    let end = find(bytes, b"\r\n\r\n").context("a part has no head")?;
    let (head, content) = (std::str::from_utf8(&bytes[..end])?, &bytes[end + 4..]);
    let mut lines = head.split("\r\n");
    let disposition = lines.next().unwrap_or_default();
    let names =
        disposition.strip_prefix("Content-Disposition: form-data; name=\"").context("a part has no name")?;
    let names = names.strip_suffix('"').context("a name has no end")?;
    let mut description = Map::new();
    if let Some((name, file)) = names.split_once("\"; filename=\"") {
        let kind = lines
            .next()
            .and_then(|line| line.strip_prefix("Content-Type: "))
            .context("a file has no type")?;
        let bytes = content.iter().fold(String::new(), |mut digits, byte| {
            _ = write!(digits, "{byte:02x}");
            digits
        });
        description.extend([
            ("name".to_owned(), json!(name)),
            ("filename".to_owned(), json!(file)),
            ("content-type".to_owned(), json!(kind)),
            ("bytes".to_owned(), json!(bytes)),
        ]);
    } else {
        description.extend([
            ("name".to_owned(), json!(names)),
            ("text".to_owned(), json!(std::str::from_utf8(content)?)),
        ]);
    }
    if names.matches('"').count() > 2 || lines.next().is_some() {
        bail!("a head has more than it should: {head:?}");
    }
    Ok(Value::Object(description))
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
