//! The gateway's address and the paths of operations under it. A path is built from its parameters; a request built by
//! generated code is checked to belong to the operation.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::api::operation::Operation;
use crate::api::operations;
use crate::wire::error::{Error, ErrorKind};

/// Characters that a path segment need not escape (RFC 3986, unreserved).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A parsed base URL: scheme, host and any path prefix, with no trailing slash and no version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    url: Url,
    /// The address as text, without a trailing slash; operation paths are appended to it.
    text: String,
    /// The URLs of operations without path parameters, by path.
    plain: Vec<(&'static str, Url)>,
}

impl BaseUrl {
    /// Parses an address as people write it: the bare host, with or without trailing slashes, `/v1` or `/v1beta`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let hint = "set the gateway's address, such as https://gateway.example or http://127.0.0.1:8080";
            Error::new(ErrorKind::Configuration, format!("the base URL {why}: {hint}"))
        };
        let mut url = Url::parse(text.trim()).map_err(|error| refuse("cannot be read").with_source(error))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(refuse("is neither http:// nor https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("contains a user name or password, which is not supported"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("has a query or a fragment"));
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").or_else(|| path.strip_suffix("/v1beta")).unwrap_or(path);
        let path = path.trim_end_matches('/').to_owned();
        url.set_path(&path);
        let text = url.as_str().trim_end_matches('/').to_owned();
        let base = Self { url, text, plain: Vec::new() };
        let plain: Result<Vec<_>, Error> = operations::ALL
            .iter()
            .filter(|operation| operation.path_parameters.is_empty())
            .map(|operation| Ok((operation.path, base.join(operation, &[])?)))
            .collect();
        let plain = plain.map_err(|error| refuse("leads to no operation").with_source(error))?;
        Ok(Self { plain, ..base })
    }

    /// The address without a trailing slash.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The URL of an operation, without a query.
    ///
    /// Errors: a path parameter is missing, unknown, or could change the path around it.
    pub(crate) fn join(&self, operation: &Operation, parameters: &[(String, String)]) -> Result<Url, Error> {
        if let Some((name, _)) =
            parameters.iter().find(|(name, _)| !operation.path_parameters.contains(&name.as_str()))
        {
            return Err(Error::new(ErrorKind::InvalidRequest, format!("unknown path parameter {name:?}")));
        }
        if let Some((_, url)) = self.plain.iter().find(|(path, _)| *path == operation.path) {
            return Ok(url.clone());
        }
        let mut text = self.text.clone();
        for piece in template_pieces(operation.path) {
            match piece {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Parameter(name) => {
                    let (_, value) = parameters.iter().find(|(given, _)| given == name).ok_or_else(|| {
                        Error::new(ErrorKind::InvalidRequest, format!("path parameter {name:?} is missing"))
                    })?;
                    push_parameter(&mut text, operation, name, value)?;
                }
            }
        }
        let url = Url::parse(&text).map_err(|error| {
            Error::new(ErrorKind::InvalidRequest, "the operation's address cannot be built")
                .with_source(error)
        })?;
        self.check(operation, &url)?;
        Ok(url)
    }

    /// Checks that a URL belongs to the operation under this address and that its path parameters stay within their
    /// segments. Returns its path as [`join`](Self::join) writes it.
    pub(crate) fn check(&self, operation: &Operation, url: &Url) -> Result<String, Error> {
        let elsewhere = || {
            let message = format!("a path parameter leads out of {}", operation.path);
            Error::new(ErrorKind::InvalidRequest, message)
        };
        if url.origin() != self.url.origin() {
            return Err(elsewhere());
        }
        let prefix = self.url.path().trim_end_matches('/');
        let mut rest = url.path().strip_prefix(prefix).ok_or_else(elsewhere)?;
        let mut path = prefix.to_owned();
        let mut pieces = template_pieces(operation.path).peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                TemplatePart::Literal(literal) => {
                    rest = rest.strip_prefix(literal).ok_or_else(elsewhere)?;
                    path.push_str(literal);
                }
                TemplatePart::Parameter(name) => {
                    let end = match pieces.peek() {
                        // The last match: a value may itself contain the literal that follows, as in "a:b".
                        Some(TemplatePart::Literal(literal)) => rest.rfind(literal).ok_or_else(elsewhere)?,
                        _ => rest.len(),
                    };
                    let value = percent_decode_str(&rest[..end]).decode_utf8().map_err(|_| elsewhere())?;
                    push_parameter(&mut path, operation, name, &value)?;
                    rest = &rest[end..];
                }
            }
        }
        if rest.is_empty() { Ok(path) } else { Err(elsewhere()) }
    }
}

/// Appends a path parameter, escaped, to the path so far. A value may repeat the preceding segment, as the native names
/// of models do (`models/model-luna`); that prefix is removed because the path already contains it.
fn push_parameter(path: &mut String, operation: &Operation, name: &str, value: &str) -> Result<(), Error> {
    let slashed = operation.slashed_parameters.contains(&name);
    let before = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let mut value = value;
    // Repeatedly, so that parsing a path again does not change it.
    while let Some(rest) =
        value.strip_prefix(before).and_then(|rest| rest.strip_prefix('/')).filter(|_| slashed)
    {
        value = rest;
    }
    check_parameter(operation, name, value)?;
    write!(path, "{}", utf8_percent_encode(value, ESCAPED)).expect("writing to a string succeeds");
    Ok(())
}

/// Rejects a value that some server along the way could interpret as another path: separators if the operation allows
/// none, dot segments, escapes of either, control characters, and an empty value.
pub(crate) fn check_parameter(operation: &Operation, name: &str, value: &str) -> Result<(), Error> {
    if operation.slashed_parameters.contains(&name) {
        value.split('/').try_for_each(|segment| check_segment(name, segment))
    } else {
        check_segment(name, value)
    }
}

fn check_segment(name: &str, value: &str) -> Result<(), Error> {
    let why = if value.is_empty() {
        "is empty"
    } else if value == "." || value == ".." {
        "is a dot segment"
    } else if value.contains(['/', '\\']) {
        "contains a path separator"
    } else if value.contains('%') {
        "contains a percent sign"
    } else if value.chars().any(char::is_control) {
        "contains a control character"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidRequest, format!("path parameter {name:?} {why}: {value:?}")))
}

enum TemplatePart<'a> {
    Literal(&'a str),
    Parameter(&'a str),
}

/// Splits `/v1beta/models/{model}:generateContent` into literals and parameters.
fn template_pieces(template: &str) -> impl Iterator<Item = TemplatePart<'_>> {
    template.split_inclusive(['{', '}']).map(|piece| match piece.strip_suffix('}') {
        Some(name) => TemplatePart::Parameter(name),
        None => TemplatePart::Literal(piece.strip_suffix('{').unwrap_or(piece)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations;

    const HOSTILE: &[&str] = &[
        "",
        ".",
        "..",
        "../admin",
        "..\\..\\admin",
        "a/b",
        "a\\b",
        "%2e%2e",
        "%2F",
        "a%00",
        "a\0b",
        "a\nb",
        "\t",
        "\u{7f}",
        "/",
        "\\",
    ];

    fn base(text: &str) -> BaseUrl {
        BaseUrl::parse(text).expect("a base URL")
    }

    #[test]
    fn trailing_slash_and_version_are_dropped_and_prefix_retained() {
        for text in [
            "http://h:1",
            "http://h:1/",
            "http://h:1/v1",
            "http://h:1/v1/",
            "http://h:1/v1beta//",
            " http://h:1 ",
        ] {
            assert_eq!(base(text).as_str(), "http://h:1", "{text}");
        }
        assert_eq!(base("https://h/gate/v1/").as_str(), "https://h/gate");
        assert_eq!(base("https://h/notv1").as_str(), "https://h/notv1");
    }

    #[test]
    fn invalid_base_url_is_rejected_with_an_example() {
        for text in [
            "",
            "gateway",
            "localhost:8080",
            "ftp://h",
            "http://u:p@h",
            "http://h?x=1",
            "http://h#f",
            "http://",
        ] {
            let error = BaseUrl::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains("https://gateway.example"), "{error}");
        }
    }

    #[test]
    fn path_parameter_is_percent_encoded() {
        let parameters = [("model".to_owned(), "a b:ü?#".to_owned())];
        let url = base("http://h/p").join(&operations::GENERATE_CONTENT, &parameters).expect("a URL");
        assert_eq!(url.as_str(), "http://h/p/v1beta/models/a%20b%3A%C3%BC%3F%23:generateContent");
    }

    #[test]
    fn path_parameter_that_escapes_its_segment_is_rejected() {
        for value in HOSTILE {
            let parameters = [("task_id".to_owned(), (*value).to_owned())];
            let error = base("http://h").join(&operations::RETRIEVE_VIDEO, &parameters).expect_err(value);
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{value:?}");
        }
    }

    #[test]
    fn model_id_may_contain_slashes_and_a_models_prefix() {
        let url = |operation, model: &str| {
            let parameters = [("model".to_owned(), model.to_owned())];
            base("http://h/p").join(operation, &parameters).map(|url| url.path().to_owned())
        };
        for (model, path) in [
            ("model-luna", "/p/v1beta/models/model-luna:generateContent"),
            ("models/model-luna", "/p/v1beta/models/model-luna:generateContent"),
            ("another/model", "/p/v1beta/models/another%2Fmodel:generateContent"),
            ("models", "/p/v1beta/models/models:generateContent"),
        ] {
            assert_eq!(url(&operations::GENERATE_CONTENT, model).expect(model), path);
        }
        let path = url(&operations::RETRIEVE_MODEL, "another/model").expect("a path");
        assert_eq!(path, "/p/v1/models/another%2Fmodel");
        for model in
            ["models/", "models/..", "../admin", "a/../b", "a//b", "/a", "a/", "a/.", "a\\b", "a/%2e%2e"]
        {
            assert!(url(&operations::RETRIEVE_MODEL, model).is_err(), "{model}");
        }
    }

    #[test]
    fn checked_path_equals_the_built_path() {
        let base = base("http://h/p");
        for model in
            ["x", "models", "models/x", "models/models", "models/models/x", "models/a/models/x", "a/models/x"]
        {
            for operation in [&operations::GENERATE_CONTENT, &operations::RETRIEVE_MODEL] {
                let url = base.join(operation, &[("model".to_owned(), model.to_owned())]).expect(model);
                assert_eq!(base.check(operation, &url).expect(model), url.path(), "{model}");
            }
        }
    }

    #[test]
    fn missing_or_unknown_path_parameter_is_rejected() {
        assert!(base("http://h").join(&operations::RETRIEVE_VIDEO, &[]).is_err());
        let parameters = [("model".to_owned(), "m".to_owned())];
        assert!(base("http://h").join(&operations::LIST_MODELS, &parameters).is_err());
    }

    #[test]
    fn prebuilt_url_must_match_the_operation() {
        let base = base("http://h/p");
        let check = |url: &str| base.check(&operations::GENERATE_CONTENT, &Url::parse(url).expect("a URL"));
        assert!(check("http://h/p/v1beta/models/m:generateContent?x=1").is_ok());
        assert!(check("http://h/p/v1beta/models/a:b:generateContent").is_ok());
        assert!(check("http://h/p/v1beta/models/a%2Fb:generateContent").is_ok());
        let named = check("http://h/p/v1beta/models/models%2Fm:generateContent").expect("the same");
        assert_eq!(named, "/p/v1beta/models/m:generateContent");
        for url in [
            "http://other/p/v1beta/models/m:generateContent",
            "http://h/v1beta/models/m:generateContent",
            "http://h/p/v1beta/models/:generateContent",
            "http://h/p/v1beta/models/a%2F..%2Fb:generateContent",
            "http://h/p/v1beta/models/a%5Cb:generateContent",
            "http://h/p/v1beta/models/a//b:generateContent",
            "http://h/p/v1beta/models/%FF:generateContent",
            "http://h/p/v1beta/models/..\\..\\admin:generateContent",
            "http://h/p/v1beta/models/m:generateContent/more",
            "http://h/p/admin",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
    }
}
