//! Writes a body as `multipart/form-data` (RFC 7578), with names as the HTML standard encodes them. Every binding sends
//! its forms through here. The whole body is built in memory, so that each attempt of a call sends the same bytes.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderValue;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::api::file_part::FilePart;
use crate::api::operation::{FormMember, Operation};
use crate::wire::error::{Error, ErrorKind};
use crate::wire::long_integers::long_integer;

/// Maximum length of a form, in bytes: files, other members and what separates them.
///
/// ```
/// assert_eq!(gatewright::MAX_FORM_BYTES, 512 * 1024 * 1024);
/// ```
pub const MAX_FORM_BYTES: usize = 512 * 1024 * 1024;

/// Length of a boundary.
const BOUNDARY_CHARS: usize = 32;

/// A file and the member of the body that it belongs to.
pub(crate) type NamedFile = (String, FilePart);

/// A body that is ready to be sent.
pub(crate) struct EncodedForm {
    pub(crate) content_type: HeaderValue,
    pub(crate) body: Bytes,
}

/// One part: the head, from its first header on, and the content.
struct Part {
    head: String,
    content: Bytes,
}

/// The members of a body that are files, by their names: what checks a body sees these in their place.
///
/// Errors: InvalidRequest, if a file belongs to no such member, or several to one that holds a single file.
pub(crate) fn file_names(operation: &Operation, files: &[NamedFile]) -> Result<Map<String, Value>, Error> {
    let mut names: Map<String, Value> = Map::new();
    for (member, file) in files {
        let Some(known) = operation.form.iter().find(|known| known.is_file && known.name == member) else {
            return Err(invalid(format!("{member} takes no file")));
        };
        match names.get_mut(member) {
            None if known.is_list => _ = names.insert(member.clone(), Value::from(vec![file.name()])),
            None => _ = names.insert(member.clone(), Value::from(file.name())),
            Some(Value::Array(list)) => list.push(Value::from(file.name())),
            Some(_) => return Err(invalid(format!("{member} takes one file, not several"))),
        }
    }
    Ok(names)
}

/// Encodes a JSON object and its files. Files come last, so that a server knows everything else before it reads them.
///
/// A null member is omitted, a list repeats its field, and text is sent unchanged: unlike a browser, this does not
/// change line ends.
///
/// Errors: InvalidRequest, if the body is not an object, lacks the content of a file, or is longer than
/// [`MAX_FORM_BYTES`].
pub(crate) fn encode(operation: &Operation, body: &[u8], files: &[NamedFile]) -> Result<EncodedForm, Error> {
    let members: IndexMap<String, &RawValue> = serde_json::from_slice(body).map_err(not_an_object)?;
    let mut parts = Vec::new();
    for (name, &json) in &members {
        let known = operation.form.iter().find(|known| known.name == name);
        let values = match json.get() {
            "null" => Vec::new(),
            list if list.starts_with('[') => serde_json::from_str(list).map_err(not_an_object)?,
            _ => vec![json],
        };
        if known.is_some_and(|known| known.is_file) {
            // An empty list of files has no part.
            if !values.is_empty() && !files.iter().any(|(member, _)| member == name) {
                return Err(invalid(format!("{name}: the content of the file is missing")));
            }
            continue;
        }
        let field = known.map_or(name.as_str(), |known| known.field);
        for value in values {
            parts.push(text_part(field, value)?);
        }
    }
    for (member, file) in files {
        parts.push(file_part(field_of(operation, member), file)?);
    }
    written(&parts)
}

fn field_of<'a>(operation: &'a Operation, member: &'a str) -> &'a str {
    let known: Option<&FormMember> = operation.form.iter().find(|known| known.name == member);
    known.map_or(member, |known| known.field)
}

/// Objects have no form of their own: they are sent as JSON.
fn text_part(field: &str, json: &RawValue) -> Result<Part, Error> {
    let content = match serde_json::from_str(json.get()).map_err(not_an_object)? {
        Value::String(text) => text,
        // The value has made a float of it.
        _ if long_integer(json.get()).is_some() => json.get().to_owned(),
        other => other.to_string(),
    };
    Ok(Part { head: disposition(field), content: content.into() })
}

fn file_part(field: &str, file: &FilePart) -> Result<Part, Error> {
    let media_type = file.media_type();
    let is_sound = HeaderValue::try_from(media_type).is_ok() && media_type.contains('/');
    if !is_sound {
        return Err(invalid(format!("{field}: {media_type:?} is not a media type")));
    }
    let head = format!(
        "{}; filename=\"{}\"\r\nContent-Type: {media_type}",
        disposition(field),
        encoded_name(file.name())
    );
    Ok(Part { head, content: file.content().clone() })
}

fn disposition(field: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{}\"", encoded_name(field))
}

/// A name between quotes, as the HTML standard encodes it: UTF-8, without what would end the quotes or the line.
fn encoded_name(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn written(parts: &[Part]) -> Result<EncodedForm, Error> {
    // Two dashes before the boundary, and four line ends; the last boundary has four dashes and one line end.
    let framing = BOUNDARY_CHARS + 10;
    let total = parts.iter().try_fold(BOUNDARY_CHARS + 6, |total: usize, part| {
        total.checked_add(framing)?.checked_add(part.head.len())?.checked_add(part.content.len())
    });
    let Some(length) = total.filter(|total| *total <= MAX_FORM_BYTES) else {
        return Err(invalid(format!("the form is longer than {MAX_FORM_BYTES} bytes, the maximum")));
    };
    let boundary = boundary(parts);
    let mut body = BytesMut::with_capacity(length);
    for part in parts {
        for piece in [b"--", boundary.as_bytes(), b"\r\n", part.head.as_bytes(), b"\r\n\r\n"] {
            body.put_slice(piece);
        }
        body.put_slice(&part.content);
        body.put_slice(b"\r\n");
    }
    for piece in [b"--".as_slice(), boundary.as_bytes(), b"--\r\n"] {
        body.put_slice(piece);
    }
    let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"))
        .expect("a boundary is digits and letters");
    debug_assert_eq!(body.len(), length, "the buffer does not grow");
    Ok(EncodedForm { content_type, body: body.freeze() })
}

/// A boundary that no part contains. Its 122 random bits can't be guessed, so no content can end its part early; the
/// search makes sure of it.
fn boundary(parts: &[Part]) -> String {
    loop {
        let boundary = uuid::Uuid::new_v4().simple().to_string();
        let finder = memchr::memmem::Finder::new(boundary.as_bytes());
        let occurs = |bytes: &[u8]| finder.find(bytes).is_some();
        if !parts.iter().any(|part| occurs(part.head.as_bytes()) || occurs(&part.content)) {
            return boundary;
        }
    }
}

fn not_an_object(error: serde_json::Error) -> Error {
    invalid(format!("the body is not a JSON object: {error}")).with_source(error)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: &[FormMember] = &[
        FormMember { name: "file", field: "file", is_file: true, is_list: false },
        FormMember { name: "pictures", field: "pictures[]", is_file: true, is_list: true },
        FormMember { name: "marks", field: "marks[]", is_file: false, is_list: true },
        FormMember { name: "note", field: "note", is_file: false, is_list: false },
    ];

    const UPLOAD: Operation = Operation { form: MEMBERS, ..crate::api::operations::CREATE_IMAGE };

    /// The body with `BOUNDARY` in the place of the boundary.
    fn encoded(body: &str, files: &[NamedFile]) -> String {
        let form = encode(&UPLOAD, body.as_bytes(), files).expect("it can be sent");
        let content_type = form.content_type.to_str().expect("text");
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
        assert_eq!(boundary.len(), BOUNDARY_CHARS);
        String::from_utf8_lossy(&form.body).replace(boundary, "BOUNDARY")
    }

    fn refused(body: &str, files: &[NamedFile]) -> String {
        let names = file_names(&UPLOAD, files);
        let error = names.and_then(|_| encode(&UPLOAD, body.as_bytes(), files)).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        error.message().to_owned()
    }

    fn file(member: &str, name: &str, content: &'static [u8]) -> NamedFile {
        (member.to_owned(), FilePart::new(name, content))
    }

    #[test]
    fn members_come_before_files_and_lists_repeat_their_field() {
        let files = [(
            "file".to_owned(),
            FilePart::new("a.wav", b"\0\r\n--\xff".as_slice()).with_media_type("audio/wav"),
        )];
        let body = r#"{"file": "a.wav", "note": "one\ntwo ü", "marks": ["x", 2, true], "left": null, "depth": 1.50, "more": {"a": [1]}}"#;
        let expected = [
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\none\ntwo ü\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"marks[]\"\r\n\r\nx\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"marks[]\"\r\n\r\n2\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"marks[]\"\r\n\r\ntrue\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"depth\"\r\n\r\n1.5\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"more\"\r\n\r\n{\"a\":[1]}\r\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n",
            "Content-Type: audio/wav\r\n\r\n\0\r\n--\u{fffd}\r\n--BOUNDARY--\r\n",
        ];
        assert_eq!(encoded(body, &files), expected.concat());
    }

    #[test]
    fn long_integers_keep_their_digits() {
        let form = encoded(r#"{"note": 1180591620717411303424, "marks": [-36893488147419103232]}"#, &[]);
        assert!(
            form.contains("\r\n1180591620717411303424\r\n") && form.contains("\r\n-36893488147419103232\r\n")
        );
    }

    #[test]
    fn names_cannot_leave_their_header() {
        let files = [
            file("pictures", "a\"; name=\"note\r\nX: y.png", b"1"),
            file("pictures", "größe 100%.png", b"2"),
            file("pictures", "", b""),
        ];
        let body = encoded(r#"{"a\"\r\nb": 1}"#, &files);
        assert!(body.contains("form-data; name=\"a%22%0D%0Ab\"\r\n\r\n1\r\n"), "{body}");
        assert!(
            body.contains(
                "name=\"pictures[]\"; filename=\"a%22; name=%22note%0D%0AX: y.png\"\r\nContent-Type: application/octet-stream\r\n\r\n1\r\n"
            ),
            "{body}"
        );
        assert!(body.contains("; filename=\"größe 100%.png\"\r\n"), "{body}");
        assert!(
            body.contains("; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n"),
            "{body}"
        );
    }

    #[test]
    fn boundary_differs_each_time_and_nothing_contains_it() {
        let files = [file("file", "a", b"content")];
        let form = || encode(&UPLOAD, b"{}", &files).expect("it can be sent").content_type;
        assert_ne!(form(), form());
    }

    #[test]
    fn checks_see_the_names_of_files() {
        let files =
            [file("file", "a.wav", b"1"), file("pictures", "b.png", b"2"), file("pictures", "c.png", b"3")];
        let names = file_names(&UPLOAD, &files).expect("members of the form");
        assert_eq!(
            Value::Object(names),
            serde_json::json!({"file": "a.wav", "pictures": ["b.png", "c.png"]})
        );
    }

    #[test]
    fn files_that_cannot_be_sent_are_refused() {
        let one = file("file", "a", b"1");
        assert_eq!(refused("{}", &[file("note", "a", b"1")]), "note takes no file");
        assert_eq!(refused("{}", &[one.clone(), one.clone()]), "file takes one file, not several");
        assert_eq!(refused(r#"{"file": "a"}"#, &[]), "file: the content of the file is missing");
        assert_eq!(refused(r#"{"pictures": ["a"]}"#, &[]), "pictures: the content of the file is missing");
        assert_eq!(encoded(r#"{"pictures": [], "file": null}"#, &[]), "--BOUNDARY--\r\n");
        let smuggled = ("file".to_owned(), FilePart::new("a", "1").with_media_type("audio/wav\r\nX: y"));
        assert_eq!(refused("{}", &[smuggled]), "file: \"audio/wav\\r\\nX: y\" is not a media type");
        assert!(refused("[]", &[one]).starts_with("the body is not a JSON object"));
    }

    #[test]
    fn length_of_a_form_is_bounded() {
        // Parts share one content, so that the test needs no more memory than it says.
        let content = Bytes::from(vec![0; MAX_FORM_BYTES / 4]);
        let part = |index| ("pictures".to_owned(), FilePart::new(format!("{index}"), content.clone()));
        let files: Vec<NamedFile> = (0..4).map(part).collect();
        assert_eq!(
            refused("{}", &files),
            format!("the form is longer than {MAX_FORM_BYTES} bytes, the maximum")
        );
    }
}
