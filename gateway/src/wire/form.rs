//! Reads a body of `multipart/form-data` (RFC 7578): where its parts are, and what their heads say.
//!
//! The bytes go to upstreams as they came, and each upstream reads them with a parser of its own. So this reader accepts only what all
//! parsers read in one way, which is what libraries write: lines end with CRLF, the boundary occurs nowhere but between parts, and nothing
//! is before the first or after the last one. Otherwise the gateway might check one model, and the upstream call another one.
//!
//! The work is linear in the length of the body, and the bounds are checked before anything is kept.

use std::ops::Range;

use memchr::memmem;

/// Maximum number of parts.
pub(crate) const MAX_PARTS: usize = 100;
/// Maximum length of the head of a part, in bytes.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Maximum length of a boundary (RFC 2046, section 5.1.1).
const MAX_BOUNDARY_CHARS: usize = 70;
/// Maximum number of parameters of a header.
const MAX_PARAMETERS: usize = 16;

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormPart {
    /// Name of its field; never empty.
    pub(crate) name: String,
    /// Name of its file. `None`: it is a value.
    pub(crate) file_name: Option<String>,
    /// Its content type, if it states one.
    pub(crate) media_type: Option<String>,
    /// Where its content is.
    pub(crate) content: Range<usize>,
}

/// Why a body is no form that every server reads in the same way. The message names the place and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MalformedForm(String);

impl From<&str> for MalformedForm {
    fn from(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl From<String> for MalformedForm {
    fn from(what: String) -> Self {
        Self(what)
    }
}

/// The boundary that a content type of `multipart/form-data` names.
pub(crate) fn boundary_of(content_type: &str) -> Result<&str, MalformedForm> {
    let parameters = content_type.find(';').map_or("", |at| &content_type[at..]);
    let parameters = parameters_of(parameters)
        .ok_or("the parameters of the content-type cannot be read; send multipart/form-data; boundary=…")?;
    if parameters.iter().any(|parameter| parameter.name.contains('*')) {
        return Err("the content-type has an encoded parameter; send boundary=… without an asterisk".into());
    }
    let is_boundary = |parameter: &&Parameter<'_>| parameter.name.eq_ignore_ascii_case("boundary");
    let mut boundaries = parameters.iter().filter(is_boundary).map(|parameter| parameter.value);
    let boundary = boundaries
        .next()
        .ok_or("the content-type names no boundary; leave this header to the library that writes the form")?;
    if boundaries.next().is_some() {
        return Err("the content-type names two boundaries; send one".into());
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&byte);
    if boundary.is_empty() || boundary.len() > MAX_BOUNDARY_CHARS || !boundary.bytes().all(is_allowed) {
        let message = format!(
            "the boundary of the content-type must be 1 to {MAX_BOUNDARY_CHARS} letters, digits or characters of '()+_,-./:=?"
        );
        return Err(message.into());
    }
    Ok(boundary)
}

/// The parts of a form, in order.
pub(crate) fn parts_of(body: &[u8], boundary: &str) -> Result<Vec<FormPart>, MalformedForm> {
    let delimiter = format!("--{boundary}");
    if !body.starts_with(delimiter.as_bytes()) {
        return Err("the form does not begin with its boundary; send the one that the content-type names, and nothing \
                    before it"
            .into());
    }
    let finder = memmem::Finder::new(delimiter.as_bytes());
    let mut parts = Vec::new();
    // Where the part in progress begins.
    let mut open: Option<usize> = None;
    for at in finder.find_iter(body) {
        let stray = || {
            let message = "the boundary occurs within a part, or in a line that does not end with CRLF; choose another boundary";
            MalformedForm::from(message)
        };
        if at > 0 && !body[..at].ends_with(b"\r\n") {
            return Err(stray());
        }
        if let Some(begin) = open.take() {
            let number = parts.len() + 1;
            // A part has at least the line that ends its head.
            let end = at.checked_sub(2).filter(|end| *end >= begin);
            let end = end.ok_or_else(|| format!("part {number} of the form is empty; give it a name"))?;
            parts.push(part_of(body, begin..end, number)?);
        }
        let after = &body[at + delimiter.len()..];
        if let Some(rest) = after.strip_prefix(b"--") {
            return match rest {
                b"" | b"\r\n" => Ok(parts),
                _ => Err("something follows the last boundary of the form; end the body there".into()),
            };
        }
        if !after.starts_with(b"\r\n") {
            return Err(stray());
        }
        if parts.len() == MAX_PARTS {
            return Err(format!("the form has more than {MAX_PARTS} parts, the maximum; send fewer").into());
        }
        open = Some(at + delimiter.len() + 2);
    }
    Err("the form ends without its last boundary, which two dashes follow; send the whole body".into())
}

fn part_of(body: &[u8], range: Range<usize>, number: usize) -> Result<FormPart, MalformedForm> {
    let all = &body[range.clone()];
    let beginning = &all[..all.len().min(MAX_HEAD_BYTES + 4)];
    let head = memmem::find(beginning, b"\r\n\r\n").map(|end| &all[..end]).ok_or_else(|| {
        let longest =
            format!("the head of part {number} of the form has no end within {MAX_HEAD_BYTES} bytes");
        format!("{longest}; send a shorter name of the file, and an empty line after the head")
    })?;
    let content = range.start + head.len() + 4..range.end;
    let refused = |why: &str| MalformedForm(format!("part {number} of the form {why}"));
    let head = std::str::from_utf8(head).map_err(|_| refused("has a head that is not UTF-8; encode it"))?;
    let (mut disposition, mut media_type) = (None, None);
    for line in head.split("\r\n") {
        let is_whole = !line.starts_with([' ', '\t']) && !line.contains(['\r', '\n', '\0']);
        let (name, value) =
            line.split_once(':').filter(|(name, _)| is_whole && is_token(name)).ok_or_else(|| {
                refused("has a line in its head that is no header; send `name: value` in one line")
            })?;
        let value = value.trim_matches([' ', '\t']);
        let known = match name.to_ascii_lowercase().as_str() {
            "content-disposition" => &mut disposition,
            "content-type" => {
                if value.get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/")) {
                    return Err(refused("is a form itself; send each file as a part of its own"));
                }
                &mut media_type
            }
            "content-transfer-encoding" => {
                let is_plain =
                    ["binary", "8bit", "7bit"].iter().any(|plain| value.eq_ignore_ascii_case(plain));
                if !is_plain {
                    return Err(refused("has a content-transfer-encoding; send its bytes as they are"));
                }
                continue;
            }
            _ => continue,
        };
        if known.replace(value).is_some() {
            return Err(refused("has a header twice; send it once"));
        }
    }
    let named = "has no name; send `content-disposition: form-data; name=\"…\"`";
    let disposition = disposition.ok_or_else(|| refused(named))?;
    let (kind, parameters) = disposition.split_at(disposition.find(';').unwrap_or(disposition.len()));
    if !kind.trim_end_matches([' ', '\t']).eq_ignore_ascii_case("form-data") {
        return Err(refused("has a content-disposition other than form-data"));
    }
    let parameters = parameters_of(parameters).ok_or_else(|| {
        refused("has a content-disposition that cannot be read; write a quote in a name as %22")
    })?;
    let (mut name, mut file_name, mut encoded_name) = (None, None, None);
    for Parameter { name: key, value, is_quoted } in parameters {
        let known = match key.to_ascii_lowercase().as_str() {
            "name" => &mut name,
            "filename" => &mut file_name,
            "filename*" => &mut encoded_name,
            // Also `name*0`, which some parsers take for the beginning of the name.
            key if key.starts_with("name*") => {
                return Err(refused("has an encoded name; send it as UTF-8 in `name`"));
            }
            _ => {
                return Err(refused(
                    "has a content-disposition with more than name and filename; leave it out",
                ));
            }
        };
        // Some parsers remove angle brackets.
        if !is_quoted && !is_token(value) {
            return Err(refused("has a name with special characters; put it in quotes"));
        }
        // Some parsers look for `name=` within quotes, too.
        if value.to_ascii_lowercase().contains("name=") {
            return Err(refused("has a name that contains `name=`; choose another one"));
        }
        if known.replace(value).is_some() {
            return Err(refused("has two names; send one"));
        }
    }
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| refused(named))?;
    if name.contains('\\') {
        return Err(refused("has a name with a backslash; write a quote in a name as %22"));
    }
    Ok(FormPart {
        name: name.to_owned(),
        file_name: file_name.or(encoded_name).map(str::to_owned),
        media_type: media_type.map(str::to_owned),
        content,
    })
}

/// A parameter of a header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter<'t> {
    /// A token.
    pub(crate) name: &'t str,
    pub(crate) value: &'t str,
    is_quoted: bool,
}

/// The parameters of a header after its value: `; name="value"; name=value`. `None`: they are not of this form, or parsers read them
/// in several ways.
pub(crate) fn parameters_of(text: &str) -> Option<Vec<Parameter<'_>>> {
    const SPACE: [char; 2] = [' ', '\t'];
    let mut parameters = Vec::new();
    let mut rest = text.trim_end_matches(SPACE);
    while !rest.is_empty() {
        rest = rest.strip_prefix(';')?.trim_start_matches(SPACE);
        if rest.is_empty() {
            break;
        }
        let (name, after) = rest.split_once('=').filter(|(name, _)| is_token(name))?;
        let is_quoted = after.starts_with('"');
        let (value, after) = if let Some(quoted) = after.strip_prefix('"') {
            let end = quoted.find('"')?;
            // Some parsers take the quote for a part of the value.
            if quoted[..end].ends_with('\\') {
                return None;
            }
            (&quoted[..end], &quoted[end + 1..])
        } else {
            let end = after.find([';', ' ', '\t']).unwrap_or(after.len());
            let value = &after[..end];
            if value.is_empty()
                || !value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\,".contains(&byte))
            {
                return None;
            }
            (value, &after[end..])
        };
        if parameters.len() == MAX_PARAMETERS {
            return None;
        }
        parameters.push(Parameter { name, value, is_quoted });
        rest = after.trim_start_matches(SPACE);
    }
    Some(parameters)
}

/// Whether a name is a token (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing {
    //! The entry point of the fuzz target: a form, and what must hold of it.

    use super::{MAX_PARTS, boundary_of, parts_of};

    /// Reads a form: the content type in the first line of the input, and the body after it. Returns whether it is one.
    ///
    /// # Panics
    /// If parts overlap, or a content has a boundary, or a form that is put together from them is read in another way.
    pub fn read_form(input: &[u8]) -> bool {
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return false };
        let (content_type, body) = (String::from_utf8_lossy(&input[..end]), &input[end + 1..]);
        let Ok(boundary) = boundary_of(&content_type) else { return false };
        let Ok(parts) = parts_of(body, boundary) else { return false };
        assert!(parts.len() <= MAX_PARTS, "{} parts", parts.len());
        let delimiter = format!("--{boundary}");
        let (mut before, mut copy) = (0, Vec::new());
        for part in &parts {
            let content = &body[part.content.clone()];
            assert!(part.content.start >= before && !part.name.is_empty(), "{part:?} after {before}");
            assert!(memchr::memmem::find(content, delimiter.as_bytes()).is_none(), "{part:?} has a boundary");
            before = part.content.end;
            let head =
                format!("{delimiter}\r\nContent-Disposition: form-data; name=\"{}\"\r\n\r\n", part.name);
            copy.extend_from_slice(head.as_bytes());
            copy.extend_from_slice(content);
            copy.extend_from_slice(b"\r\n");
        }
        copy.extend_from_slice(format!("{delimiter}--").as_bytes());
        let again = parts_of(&copy, boundary).unwrap_or_else(|malformed| panic!("{malformed}"));
        assert_eq!(again.len(), parts.len());
        for (part, again) in parts.iter().zip(&again) {
            assert_eq!(
                (&part.name, &body[part.content.clone()]),
                (&again.name, &copy[again.content.clone()])
            );
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const FIELD: &str = "Content-Disposition: form-data; name=\"a\"";

    /// The parts as name, name of the file and content.
    fn read(body: &str) -> Result<Vec<(String, Option<String>, String)>, String> {
        let parts = parts_of(body.as_bytes(), "b").map_err(|malformed| malformed.to_string())?;
        let read = parts.into_iter().map(|part| (part.name, part.file_name, body[part.content].to_owned()));
        Ok(read.collect())
    }

    fn form(head: &str, content: &str) -> String {
        format!("--b\r\n{head}\r\n\r\n{content}\r\n--b--\r\n")
    }

    fn one(name: &str, file_name: Option<&str>, content: &str) -> Vec<(String, Option<String>, String)> {
        vec![(name.to_owned(), file_name.map(str::to_owned), content.to_owned())]
    }

    #[test]
    fn parts_of_common_libraries_are_read() {
        for (head, expected) in [
            (FIELD, one("a", None, "x")),
            ("content-disposition:form-data;name=a", one("a", None, "x")),
            ("Content-Disposition: form-data; name=\"a[]\"\r\nContent-Length: 1", one("a[]", None, "x")),
            (
                "Content-Disposition: form-data; name=\"f\"; filename=\"größe %22.wav\"\r\nContent-Type: audio/wav",
                one("f", Some("größe %22.wav"), "x"),
            ),
            (
                "Content-Type: audio/wav\r\nContent-Disposition: form-data; filename=\"a\\b.wav\"; name=\"f\"",
                one("f", Some("a\\b.wav"), "x"),
            ),
            ("Content-Disposition: form-data; name=\"f\"; filename=\"\"", one("f", Some(""), "x")),
            (
                "Content-Disposition: form-data; name=\"f\"; filename*=utf-8''a%20b.wav",
                one("f", Some("utf-8''a%20b.wav"), "x"),
            ),
            (
                "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: Binary",
                one("a", None, "x"),
            ),
        ] {
            assert_eq!(read(&form(head, "x")), Ok(expected), "{head}");
        }
        assert_eq!(read("--b--"), Ok(Vec::new()));
        assert_eq!(read("--b--\r\n"), Ok(Vec::new()));
        assert_eq!(read(&form(FIELD, "")), Ok(one("a", None, "")));
        assert_eq!(read(&form(FIELD, "\r\n\r\n--\r\n--c\r\n")), Ok(one("a", None, "\r\n\r\n--\r\n--c\r\n")));
        let two = format!("--b\r\n{FIELD}\r\n\r\n1\r\n--b\r\n{FIELD}\r\n\r\n2\r\n--b--");
        assert_eq!(read(&two), Ok([one("a", None, "1"), one("a", None, "2")].concat()));
    }

    #[test]
    fn what_parsers_read_in_several_ways_is_refused() {
        let head = |head: &str| form(head, "x");
        for (body, expected) in [
            (String::new(), "does not begin with its boundary"),
            (format!("\r\n{}", form(FIELD, "x")), "does not begin with its boundary"),
            (format!("preamble\r\n{}", form(FIELD, "x")), "does not begin with its boundary"),
            (form(FIELD, "x").replace("\r\n", "\n"), "boundary occurs within a part"),
            (form(FIELD, "x").replacen("\r\n", "\n", 1), "boundary occurs within a part"),
            (form(FIELD, "x\n--b\r\nmore"), "boundary occurs within a part"),
            (form(FIELD, "x--b"), "boundary occurs within a part"),
            (form(FIELD, "x\r\n--bc"), "boundary occurs within a part"),
            (form(FIELD, "x\r\n---b"), "boundary occurs within a part"),
            (form(FIELD, "x\r\n--b  \r\n"), "boundary occurs within a part"),
            (format!("{}epilogue", form(FIELD, "x")), "something follows the last boundary"),
            (format!("{}\r\n", form(FIELD, "x")), "something follows the last boundary"),
            (form(FIELD, "x").replace("--b--", "--b-- "), "something follows the last boundary"),
            (format!("--b\r\n{FIELD}\r\n\r\nx\r\n"), "ends without its last boundary"),
            (format!("--b\r\n{FIELD}\r\n\r\nx\r\n--b\r\n"), "ends without its last boundary"),
            (format!("--b\r\n{FIELD}\r\n\r\nx\r\n--b-"), "boundary occurs within a part"),
            ("--b".to_owned(), "boundary occurs within a part"),
            ("--b\r\n--b--".to_owned(), "part 1 of the form is empty"),
            ("--b\r\n\r\n--b--".to_owned(), "the head of part 1"),
            (format!("--b\r\n{FIELD}\r\n--b--"), "the head of part 1"),
            (format!("--b\r\n{FIELD}\r\n\r\n--b--"), "the head of part 1"),
            (head("X: y"), "part 1 of the form has no name"),
            (head("Content-Disposition: form-data"), "part 1 of the form has no name"),
            (head("Content-Disposition: form-data; name=\"\""), "part 1 of the form has no name"),
            (head("Content-Disposition: form-data; name*=utf-8''a"), "has an encoded name"),
            (head("Content-Disposition: form-data; name=\"a\"; name*0=\"model\""), "has an encoded name"),
            (
                head("Content-Disposition: form-data; name=\"a\"; filename*0=\"b\""),
                "more than name and filename",
            ),
            (head("Content-Disposition: form-data; name=\"a\"; size=3"), "more than name and filename"),
            (head("Content-Disposition: form-data; name=<model>"), "put it in quotes"),
            (head("Content-Disposition: form-data; name=\"a\"; filename=(b)"), "put it in quotes"),
            (
                head("Content-Disposition: form-data; filename=\"x; NAME=model \"; name=\"y\""),
                "a name that contains `name=`",
            ),
            (head("Content-Disposition: form-data; name=\"a\"; name=\"b\""), "has two names"),
            (head("Content-Disposition: form-data; name=\"a\"; NAME=b"), "has two names"),
            (head("Content-Disposition: form-data; name=\"a"), "cannot be read"),
            (head("Content-Disposition: form-data; name=\"a\\\"; filename=\"b\""), "cannot be read"),
            (head("Content-Disposition: form-data; name=a b"), "cannot be read"),
            (head("Content-Disposition: form-data; name = a"), "cannot be read"),
            (head("Content-Disposition: form-data name=a"), "other than form-data"),
            (head("Content-Disposition: attachment; name=\"a\""), "other than form-data"),
            (
                head(&format!("Content-Disposition: form-data; name=\"a\"{}", "; x=y".repeat(16))),
                "cannot be read",
            ),
            (head("Content-Disposition: form-data; name=\"a\\b\""), "a name with a backslash"),
            (head(&format!("{FIELD}\r\n{FIELD}")), "a header twice"),
            (head(&format!("{FIELD}\r\nContent-Type: a/b\r\ncontent-type: c/d")), "a header twice"),
            (head("Content-Disposition: form-data;\r\n name=\"a\""), "is no header"),
            (head(&format!("{FIELD}\r\nno header")), "is no header"),
            (head(&format!("{FIELD}\r\nX y: z")), "is no header"),
            (head(&format!("{FIELD}\r\nX: y\nContent-Type: a/b")), "is no header"),
            (head(&format!("{FIELD}\r\nContent-Type: Multipart/mixed; boundary=c")), "is a form itself"),
            (head(&format!("{FIELD}\r\nContent-Transfer-Encoding: base64")), "content-transfer-encoding"),
            (head(&format!("{FIELD}\r\nX: {}", "y".repeat(MAX_HEAD_BYTES))), "the head of part 1"),
        ] {
            let message = read(&body).expect_err(&body);
            assert!(message.contains(expected), "{body:?}: {message}");
        }
        let latin = b"--b\r\nContent-Disposition: form-data; name=\"\xe9\"\r\n\r\nx\r\n--b--";
        let message = parts_of(latin, "b").expect_err("not UTF-8").to_string();
        assert!(message.contains("not UTF-8"), "{message}");
    }

    #[test]
    fn boundary_is_read_from_the_content_type() {
        for (content_type, boundary) in [
            ("multipart/form-data; boundary=b", "b"),
            ("multipart/form-data;charset=utf-8; Boundary=\"a b\"", ""),
            ("Multipart/Form-Data; boundary=\"----=_Part_0\"; charset=utf-8", "----=_Part_0"),
            ("multipart/form-data; boundary=----WebKitFormBoundaryx1;", "----WebKitFormBoundaryx1"),
            ("multipart/form-data", ""),
            ("multipart/form-data; boundary", ""),
            ("multipart/form-data; boundary=", ""),
            ("multipart/form-data; boundary=\"\"", ""),
            ("multipart/form-data; boundary=b; boundary=b", ""),
            ("multipart/form-data; boundary=b; boundary*=utf-8''c", ""),
            ("multipart/form-data; boundary=b; boundary*0=c", ""),
            ("multipart/form-data; boundary=b; x*=utf-8''c", ""),
            ("multipart/form-data; boundary=a,b", ""),
            ("multipart/form-data; boundary=\"b", ""),
            ("multipart/form-data; boundary=ü", ""),
        ] {
            assert_eq!(boundary_of(content_type).unwrap_or_default(), boundary, "{content_type}");
        }
        let longest = "b".repeat(MAX_BOUNDARY_CHARS);
        assert_eq!(boundary_of(&format!("multipart/form-data; boundary={longest}")), Ok(longest.as_str()));
        assert!(boundary_of(&format!("multipart/form-data; boundary=b{longest}")).is_err());
    }

    #[test]
    fn number_of_parts_is_bounded() {
        let part = format!("--b\r\n{FIELD}\r\n\r\nx\r\n");
        let of = |count: usize| read(&format!("{}--b--", part.repeat(count))).map(|parts| parts.len());
        assert_eq!(of(MAX_PARTS), Ok(MAX_PARTS));
        let message = of(MAX_PARTS + 1).expect_err("too many");
        assert!(message.contains("more than 100 parts"), "{message}");
        assert!(of(100_000).is_err());
    }

    #[test]
    fn hostile_bodies_take_linear_time() {
        let megabytes = 8 << 20;
        let started = Instant::now();
        // A head without an end, almost boundaries, dashes, and empty lines.
        let head = format!("--b\r\nX: {}", "y".repeat(megabytes));
        let almost = form(FIELD, &"\r\n--c".repeat(megabytes / 5));
        let dashes = form(FIELD, &"-".repeat(megabytes));
        let lines = form(FIELD, &"\r\n".repeat(megabytes / 2));
        assert!(read(&head).is_err());
        for body in [almost, dashes, lines] {
            assert!(read(&body).is_ok());
        }
        let boundary = "-".repeat(MAX_BOUNDARY_CHARS);
        let same = format!("--{boundary}\r\n{FIELD}\r\n\r\n{}", "-".repeat(megabytes));
        assert!(parts_of(same.as_bytes(), &boundary).is_err());
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn mutated_forms_are_read_in_one_way() {
        const TRIED: u64 = 20_000;
        let parts = [
            "multipart/form-data; boundary=b\n",
            "--b\r\n",
            "--b--\r\n",
            "Content-Disposition: form-data; name=\"a\"",
            "; filename=\"c\"",
            "\r\n",
            "\r\n\r\n",
            "x",
            "--b",
            "-",
            "\n",
        ];
        let (mut chance, mut read) = (0x9e37_79b9_7f4a_7c15_u64, 0);
        let mut below = |bound: usize| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            usize::try_from(chance % bound as u64).expect("small")
        };
        for _ in 0..TRIED {
            // A valid form, of which some pieces are replaced.
            let mut pieces = vec![0, 1, 3, 6, 7, 5, 1, 3, 4, 6, 7, 5, 2];
            for _ in 0..below(3) {
                let place = below(pieces.len());
                pieces[place] = below(parts.len());
            }
            let input: String = pieces.iter().map(|piece| parts[*piece]).collect();
            read += u64::from(fuzzing::read_form(input.as_bytes()));
        }
        assert!(read > TRIED / 10, "only {read} are forms");
    }
}
