//! A request that is a form: its members as a JSON document, which everything that reads requests gets, and the bytes as they came, which
//! an upstream gets.

use std::ops::Range;

use bytes::Bytes;
use gatewright::operations::{FormMember, Operation};
use gatewright::{ErrorCode, limits};
use gatewright_protocol::lazy_json::spliced;
use http::HeaderValue;
use serde_json::{Map, Value};

use super::error::ApiError;
use super::form::{self, FormPart, MalformedForm, Parameter, parameters_of};

/// Maximum length of all members together that are not files, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The member that turns streaming on, where a server has it.
const STREAM: &str = "stream";

/// The bytes of a form, and where its model and its files are.
#[derive(Debug)]
pub(crate) struct FormBody {
    /// As it was sent.
    pub(crate) bytes: Bytes,
    /// Its content type, with the boundary.
    pub(crate) media_type: HeaderValue,
    /// Whether it asks for a stream.
    pub(crate) asks_for_stream: bool,
    /// Where the model is.
    model: Option<Range<usize>>,
    /// Where the files are, by the names of their members.
    files: Vec<(&'static str, Range<usize>)>,
}

impl From<MalformedForm> for ApiError {
    fn from(malformed: MalformedForm) -> Self {
        Self::new(&ErrorCode::INVALID_VALUE, malformed.to_string())
    }
}

impl FormBody {
    /// Reads a form. Also returns its members as JSON: of a file, its name; of another member, its value by the type in the
    /// specification. Fields that the specification doesn't name are not members.
    ///
    /// Errors: it is malformed, repeats a member, has one under another spelling of its name, too much text, or a file in place of text
    /// or text in place of a file.
    pub(crate) fn read(
        operation: &'static Operation,
        media_type: HeaderValue,
        bytes: Bytes,
    ) -> Result<(Self, Value), ApiError> {
        let parts = form::parts_of(&bytes, form::boundary_of(media_type.to_str().unwrap_or_default())?)?;
        let mut members = Map::new();
        let (mut model, mut files, mut asks_for_stream) = (None, Vec::new(), false);
        let mut left = MAX_TEXT_BYTES;
        for part in parts {
            let is_of = |known: &&FormMember| part.name == known.field || part.name == known.name;
            let Some(known) = operation.form.iter().find(is_of) else {
                if let Some(known) = operation.form.iter().find(|known| is_spelling_of(known, &part.name)) {
                    return Err(wrong(
                        known,
                        &format!(
                            "is in the form under another spelling, which only some servers read as this member; name the field {}",
                            known.field
                        ),
                    ));
                }
                asks_for_stream |= part.name == STREAM && !is_off(&bytes[part.content]);
                continue;
            };
            let value = if known.is_file {
                files.push((known.name, part.content.clone()));
                Value::from(file_name(known, &part)?)
            } else {
                if known.name == "model" {
                    model = Some(part.content.clone());
                }
                let text = text(known, &part, &bytes, &mut left)?;
                if known.name == STREAM {
                    asks_for_stream = !is_off(text.as_bytes());
                    switch(text)
                } else {
                    limits::field(operation, known.name, text)
                }
            };
            match members.get_mut(known.name) {
                None if known.is_list => _ = members.insert(known.name.to_owned(), vec![value].into()),
                None => _ = members.insert(known.name.to_owned(), value),
                Some(Value::Array(list)) if known.is_list => list.push(value),
                Some(_) => return Err(wrong(known, "is in the form twice; send it once")),
            }
        }
        Ok((Self { bytes, media_type, asks_for_stream, model, files }, Value::Object(members)))
    }

    /// The form with another name for the model. The rest is as the client wrote it.
    pub(crate) fn named(&self, model: &str) -> Bytes {
        let at = self.model.clone().filter(|at| self.bytes[at.clone()] != *model.as_bytes());
        let edits: Vec<_> = at.into_iter().map(|at| (at, model.as_bytes())).collect();
        spliced(&self.bytes, &edits)
    }

    /// The form with ranges of the file of a member replaced. `edits`: in order, without overlaps.
    pub(crate) fn with_file(&self, member: &str, edits: &[(Range<usize>, &[u8])]) -> Bytes {
        let start = self.files.iter().find(|(name, _)| *name == member).map_or(0, |(_, at)| at.start);
        let edits: Vec<_> = edits.iter().map(|(at, new)| (start + at.start..start + at.end, *new)).collect();
        spliced(&self.bytes, &edits)
    }

    /// The content of the file of a member.
    pub(crate) fn file(&self, member: &str) -> Option<Bytes> {
        let (_, at) = self.files.iter().find(|(name, _)| *name == member)?;
        Some(self.bytes.slice(at.clone()))
    }
}

/// Whether some servers read a field as a member of another name: they ignore case and spaces, or read brackets as a list or an object.
fn is_spelling_of(known: &FormMember, field: &str) -> bool {
    let name = field.split('[').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case(known.name)
}

/// The name of a file. Errors: it is no file.
fn file_name<'p>(known: &FormMember, part: &'p FormPart) -> Result<&'p str, ApiError> {
    part.file_name
        .as_deref()
        .ok_or_else(|| wrong(known, "must be a file; send its name as `filename` in the content-disposition"))
}

/// The content of a part that is text. `left`: how many bytes of text the form may still have; reduced by this one's. Errors: it is a
/// file, too long, or not UTF-8.
fn text<'b>(
    known: &FormMember,
    part: &FormPart,
    bytes: &'b Bytes,
    left: &mut usize,
) -> Result<&'b str, ApiError> {
    if part.file_name.is_some() {
        return Err(wrong(known, "must be text, not a file; send it without `filename`"));
    }
    if part.media_type.as_deref().is_some_and(|media_type| !is_plain_text(media_type)) {
        return Err(wrong(known, "must be text in UTF-8; send it without a content-type"));
    }
    let content = &bytes[part.content.clone()];
    *left = left.checked_sub(content.len()).ok_or_else(|| {
        wrong(known, &format!("is too long: all text of a form may have {MAX_TEXT_BYTES} bytes together"))
    })?;
    std::str::from_utf8(content).map_err(|_| wrong(known, "is not UTF-8; encode it"))
}

/// Whether a media type is that of text in UTF-8.
fn is_plain_text(media_type: &str) -> bool {
    let (kind, parameters) = media_type.split_at(media_type.find(';').unwrap_or(media_type.len()));
    let is_charset = |Parameter { name, value, .. }: &Parameter<'_>| {
        !name.eq_ignore_ascii_case("charset")
            || ["utf-8", "us-ascii"].iter().any(|charset| value.eq_ignore_ascii_case(charset))
    };
    kind.trim().eq_ignore_ascii_case("text/plain")
        && parameters_of(parameters).is_some_and(|parameters| parameters.iter().all(is_charset))
}

/// Whether every server reads a value as false.
fn is_off(value: &[u8]) -> bool {
    value.is_empty() || value.eq_ignore_ascii_case(b"false") || value == b"0"
}

/// The value of the member that turns streaming on, as servers read it. Anything else stays a text.
fn switch(text: &str) -> Value {
    if is_off(text.as_bytes()) {
        Value::Bool(false)
    } else if text.eq_ignore_ascii_case("true") || text == "1" {
        Value::Bool(true)
    } else {
        Value::from(text)
    }
}

fn wrong(known: &FormMember, why: &str) -> ApiError {
    ApiError::new(&ErrorCode::INVALID_VALUE, format!("{} {why}", known.name)).param(known.name)
}

#[cfg(test)]
mod tests {
    use gatewright::operations::CREATE_TRANSCRIPTION;
    use serde_json::json;

    use super::*;

    const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("multipart/form-data; boundary=b");

    fn part(head: &str, content: &str) -> String {
        format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    }

    fn read(parts: &[String]) -> Result<(FormBody, Value), ApiError> {
        let body = format!("{}--b--\r\n", parts.concat());
        FormBody::read(&CREATE_TRANSCRIPTION, MEDIA_TYPE, body.into())
    }

    fn file() -> String {
        part("name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav", "\r\nRIFF\0--")
    }

    #[test]
    fn members_have_the_types_of_the_specification() {
        let (form, members) = read(&[
            part("name=\"model\"", "mine"),
            part("name=temperature", "0.5"),
            part("name=\"prompt\"\r\nContent-Type: text/plain; charset=UTF-8", "7"),
            part("name=\"timestamp_granularities[]\"", "word"),
            part("name=\"timestamp_granularities[]\"", "segment"),
            part("name=\"future\"", "1"),
            part("name=\"future\"", "2"),
            file(),
        ])
        .expect("a form");
        assert_eq!(
            members,
            json!({
                "model": "mine", "temperature": 0.5, "prompt": "7", "timestamp_granularities": ["word", "segment"],
                "file": "a.wav",
            })
        );
        assert_eq!(form.file("file").as_deref(), Some(&b"\r\nRIFF\0--"[..]));
        assert!(!form.asks_for_stream && form.file("model").is_none());
    }

    #[test]
    fn only_the_model_is_renamed() {
        let (form, _) =
            read(&[file(), part("name=\"model\"", "mine"), part("name=\"prompt\"", "mine")]).expect("a form");
        let renamed = String::from_utf8(form.named("their/model").to_vec()).expect("text");
        let expected =
            String::from_utf8(form.bytes.to_vec()).expect("text").replacen("mine", "their/model", 1);
        assert_eq!(renamed, expected);
        assert_eq!(form.named("mine").as_ptr(), form.bytes.as_ptr(), "it is the same");
    }

    #[test]
    fn stream_is_off_only_by_what_every_server_reads_so() {
        for (value, expected) in [
            ("", false),
            ("false", false),
            ("False", false),
            ("0", false),
            ("true", true),
            ("1", true),
            ("no", true),
        ] {
            let (form, members) = read(&[part("name=\"stream\"", value)]).expect("a form");
            let read = if value == "no" { json!("no") } else { json!(expected) };
            assert_eq!((form.asks_for_stream, &members["stream"]), (expected, &read), "{value}");
        }
    }

    #[test]
    fn member_of_the_wrong_kind_is_refused() {
        let model = || part("name=\"model\"", "mine");
        for (parts, field, expected) in [
            (vec![model(), model()], "model", "is in the form twice"),
            (vec![file(), file()], "file", "is in the form twice"),
            (vec![part("name=\"model\"; filename=\"m\"", "mine")], "model", "must be text, not a file"),
            (vec![part("name=\"file\"", "RIFF")], "file", "must be a file"),
            (
                vec![part("name=\"model\"\r\nContent-Type: text/plain; charset=utf-16", "mine")],
                "model",
                "must be text in UTF-8",
            ),
            (
                vec![part("name=\"model\"\r\nContent-Type: application/json", "mine")],
                "model",
                "must be text in UTF-8",
            ),
            (
                vec![part("name=\"prompt\"", &"a".repeat(MAX_TEXT_BYTES + 1))],
                "prompt",
                "is too long: all text of a form may have 1048576 bytes",
            ),
            (
                vec![part("name=\"timestamp_granularities[]\"", &"a".repeat(MAX_TEXT_BYTES / 3)); 4],
                "timestamp_granularities",
                "is too long: all text of a form may have 1048576 bytes",
            ),
        ] {
            let error = read(&parts).expect_err(expected);
            assert_eq!(error.field(), Some(field));
            assert!(error.message().contains(expected), "{}", error.message());
        }
        for (other, field) in [
            ("model[]", "model"),
            ("model[0]", "model"),
            ("Model", "model"),
            (" model ", "model"),
            ("file[a]", "file"),
            ("timestamp_granularities[0]", "timestamp_granularities"),
        ] {
            let error = read(&[model(), part(&format!("name=\"{other}\""), "other")]).expect_err(other);
            assert_eq!(error.field(), Some(field), "{other}");
            assert!(error.message().contains("under another spelling"), "{}", error.message());
        }
        for other in ["models", "chunking_strategy[type]", "include[]", "my_model", "[model]"] {
            assert!(read(&[model(), part(&format!("name=\"{other}\""), "other")]).is_ok(), "{other}");
        }
        let body = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n\xff\r\n--b--".as_slice();
        let error = FormBody::read(&CREATE_TRANSCRIPTION, MEDIA_TYPE, body.into()).expect_err("not UTF-8");
        assert!(error.message().contains("is not UTF-8"), "{}", error.message());
    }
}
