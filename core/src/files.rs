//! Generated files (4 rule 4): the images and videos that answers point to, fetched by their address, and saved
//! without ever being whole in memory.

mod landing;

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use base64::prelude::BASE64_STANDARD;
use base64::read::DecoderReader;
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use url::Url;

use self::landing::Landing;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::secret::Secrets;
use crate::transport::{self, ERROR_BODY_TIME, Transport};

/// Bound on a saved file, in bytes, unless told otherwise.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Redirects followed: a gateway may point to where its files are kept.
const MAX_REDIRECTS: usize = 5;
/// Pause before a transfer that broke off is taken up again. That is done once.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Base64 is decoded in steps of so many bytes.
const DECODING_STEP_BYTES: usize = 64 * 1024;

/// How to save a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveOptions {
    /// Whether a file that is there is replaced. Default yes, as wherever files are saved.
    pub overwrite: bool,
    /// Bound on the file, in bytes. Default [`DEFAULT_MAX_FILE_BYTES`].
    pub max_bytes: u64,
    /// Deadline over all of it. Default none: the client's connect and idle timeouts bound the silence.
    pub timeout: Option<Duration>,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self { overwrite: true, max_bytes: DEFAULT_MAX_FILE_BYTES, timeout: None }
    }
}

/// A file that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Where, as the caller named it.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// Finds out whether a file can be saved there, before something costly is asked for: makes the temporary file and
/// removes it again.
///
/// Errors (Io): as [`Client::save`].
pub async fn check_place(path: impl AsRef<Path>, options: &SaveOptions) -> Result<(), Error> {
    Landing::begin(path.as_ref(), options).await.map(drop)
}

impl Client {
    /// Opens a generated file, such as `output.url` of a video task or `url` of an image, to read it piece by piece.
    ///
    /// The key is not sent, wherever the address leads: the address alone gives access. Nothing is tried again.
    ///
    /// Errors: InvalidRequest where `url` is no http or https URL, Connection, Timeout, the kind of a status that is
    /// no success.
    ///
    /// Source: 2.7, 2.11, 4 rule 4.
    pub async fn download(&self, url: &str) -> Result<Download, Error> {
        let url = address(url)?;
        let secrets = Secrets::of_address(&url, self.transport().known_keys());
        match self.get(url, HeaderMap::new()).await {
            Ok(response) => Ok(Download { response, secrets }),
            Err(error) => Err(secrets.show(error)),
        }
    }

    /// Saves a generated file, such as `output.url` of a video task or `url` of an image, by streaming it to disk.
    ///
    /// The file is in its place whole or not at all: it is written to a temporary one beside it, which is renamed
    /// at the end and removed where the transfer fails or the future is dropped. A symbolic link is followed; a file that
    /// is replaced keeps its permissions. A transfer that breaks off, or fails in a way that passes (5xx but 501, 429,
    /// 408, 409, a timeout), is taken up again once, where it stopped if the server can tell that the file is still the
    /// same (`Range`, `If-Range` with a strong `ETag`), else from the start.
    ///
    /// The key is not sent, wherever the address leads: the address alone gives access.
    ///
    /// Errors: as [`Client::download`]; Io for trouble with the disk, or with what is at `path`, with the system's
    /// error as its source; Decode where the file is longer than allowed, arrives in an encoding or is a page
    /// (`text/html`).
    ///
    /// Source: 2.7, 2.11, 4 rule 4.
    pub async fn save(
        &self,
        url: &str,
        path: impl AsRef<Path>,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let mut transfer = Transfer { url: address(url)?, total: None, tag: None };
        let secrets = Secrets::of_address(&transfer.url, self.transport().known_keys());
        let saving = async {
            let mut landing = Landing::begin(path.as_ref(), &options).await?;
            let first = transfer.pull(self, &mut landing).await;
            if let Err(error) = first {
                if !error.kind().is_retryable() {
                    return Err(error);
                }
                tokio::time::sleep(RESUME_PAUSE).await;
                transfer.pull(self, &mut landing).await?;
            }
            landing.finish().await
        };
        let saved = match options.timeout {
            None => saving.await,
            Some(timeout) => tokio::time::timeout(timeout, saving).await.unwrap_or_else(|_| {
                let message = format!("the file was not saved within {timeout:?}");
                Err(Error::new(ErrorKind::Timeout, message))
            }),
        };
        saved.map_err(|error| secrets.show(error))
    }

    /// Errors: as they came about, not redacted.
    async fn get(&self, url: Url, headers: HeaderMap) -> Result<reqwest::Response, Error> {
        let http = self.files().get(self.transport(), &url)?;
        let shown = shown(&url);
        let mut request = reqwest::Request::new(reqwest::Method::GET, url);
        *request.headers_mut() = headers;
        // What is compressed on the way has other lengths, ranges and tags than the file.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        request.headers_mut().insert(USER_AGENT, self.transport().user_agent().clone());
        let response = http.execute(request).await.map_err(|error| transfer_error(error, &shown))?;
        let status = response.status();
        if !matches!(
            status,
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::PARTIAL_CONTENT
        ) {
            let headers = response.headers().clone();
            let body = transport::read_some(response, ERROR_BODY_TIME).await;
            let fallback = || format!("{shown} answers with {status}");
            return Err(Error::from_body(ErrorKind::from_status(status.as_u16()), body, fallback)
                .with_status(status.as_u16())
                .with_headers(headers));
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(Error::new(ErrorKind::Decode, format!("{shown} sends the file compressed, unasked")));
        }
        Ok(response)
    }
}

/// Writes base64 to a file, decoding as it goes. Errors: Decode where it is not strictly base64; Io.
pub(crate) async fn save_base64(text: &str, path: &Path, options: &SaveOptions) -> Result<Saved, Error> {
    let mut landing = Landing::begin(path, options).await?;
    let mut decoder = DecoderReader::new(text.as_bytes(), &BASE64_STANDARD);
    let mut step = vec![0; DECODING_STEP_BYTES];
    loop {
        let length = decoder.read(&mut step).map_err(|error| {
            // It quotes one byte at most.
            Error::new(ErrorKind::Decode, format!("what should be saved is not base64: {error}"))
                .with_source(error)
        })?;
        if length == 0 {
            return landing.finish().await;
        }
        landing.write(&step[..length]).await?;
    }
}

/// A file on its way to disk, with what is known of it from the first answer.
struct Transfer {
    url: Url,
    /// Its size.
    total: Option<u64>,
    /// A strong entity tag: tells whether it is the same file that is sent later.
    tag: Option<HeaderValue>,
}

impl Transfer {
    /// Fetches the file, or the rest of it, to its end.
    async fn pull(&mut self, client: &Client, landing: &mut Landing) -> Result<(), Error> {
        let mut response = self.ask(client, landing).await?;
        let shown = shown(&self.url);
        if is_page(response.headers()) {
            let message = format!(
                "{shown} answers with a page (text/html) in place of the file: its address may have expired, or \
                 want a sign-in"
            );
            return Err(Error::new(ErrorKind::Decode, message)
                .with_status(response.status().as_u16())
                .with_headers(response.headers().clone()));
        }
        if response.status() != StatusCode::PARTIAL_CONTENT {
            landing.start_over().await?;
            self.total = response.content_length();
            let tag = response.headers().get(ETAG);
            self.tag = tag.filter(|tag| tag.as_bytes().starts_with(b"\"")).cloned();
            if let Some(total) = self.total {
                landing.check_size(total)?;
            }
        }
        while let Some(piece) = response.chunk().await.map_err(|error| transfer_error(error, &shown))? {
            landing.write(&piece).await?;
        }
        match self.total {
            Some(total) if total != landing.written() => {
                let message = format!("{shown} broke off after {} of {total} bytes", landing.written());
                Err(Error::new(ErrorKind::Connection, message))
            }
            _ => Ok(()),
        }
    }

    /// Asks for what is missing, if the server can tell that it is of the same file; for all of it otherwise, or where
    /// the server sends another part than was asked for.
    async fn ask(&self, client: &Client, landing: &Landing) -> Result<reqwest::Response, Error> {
        if let (Some(tag), from @ 1..) = (&self.tag, landing.written()) {
            let mut headers = HeaderMap::new();
            let range = HeaderValue::try_from(format!("bytes={from}-")).expect("digits");
            headers.insert(RANGE, range);
            headers.insert(IF_RANGE, tag.clone());
            match client.get(self.url.clone(), headers).await {
                Ok(response) if response.status() != StatusCode::PARTIAL_CONTENT => return Ok(response),
                Ok(response) if continues(response.headers(), from, self.total, self.tag.as_ref()) => {
                    return Ok(response);
                }
                Ok(_) => {}
                Err(error) if error.status() == Some(StatusCode::RANGE_NOT_SATISFIABLE.as_u16()) => {}
                Err(error) => return Err(error),
            }
        }
        let response = client.get(self.url.clone(), HeaderMap::new()).await?;
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let message =
                format!("{} sends a part of the file where all of it was asked for", shown(&self.url));
            return Err(Error::new(ErrorKind::Decode, message));
        }
        Ok(response)
    }
}

/// Whether a part goes on at `from` and is of the same file, which has this size and tag.
pub(crate) fn continues(
    headers: &HeaderMap,
    from: u64,
    total: Option<u64>,
    tag: Option<&HeaderValue>,
) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).and_then(content_range);
    let Some((start, end, told)) = range else { return false };
    let same_size = [total, told].into_iter().flatten().all(|total| Some(total) == end.checked_add(1));
    start == from && same_size && headers.get(ETAG).is_none_or(|other| Some(other) == tag)
}

/// Whether the answer says that it is a page for people: no image or video is one.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
}

/// First byte, last byte and, where it is told, size of the file, from `bytes 5-9/10` or `bytes 5-9/*`.
fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((start.parse().ok()?, end.parse().ok()?, total))
}

/// A file that is arriving. Dropping it closes the connection.
pub struct Download {
    response: reqwest::Response,
    secrets: Secrets,
}

impl Download {
    /// Size of the whole file in bytes, where the server says.
    pub fn size(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece, as it arrives; none once the file is complete.
    ///
    /// Errors: Connection where the file breaks off before its end, Timeout.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let shown = shown(self.response.url());
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| self.secrets.show(transfer_error(error, &shown)))
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("size", &self.size()).finish_non_exhaustive()
    }
}

/// The connections that files come over: apart from those to the gateway, because they follow redirects and carry no
/// key. Made when the first file is fetched, and shared by all clones of a client.
#[derive(Default)]
pub(crate) struct FileClient {
    /// For files on this machine, which no proxy of the environment is asked for.
    here: OnceLock<reqwest::Client>,
    elsewhere: OnceLock<reqwest::Client>,
}

impl FileClient {
    fn get(&self, transport: &Transport, url: &Url) -> Result<&reqwest::Client, Error> {
        let slot = if transport::is_this_machine(url) { &self.here } else { &self.elsewhere };
        if let Some(made) = slot.get() {
            return Ok(made);
        }
        // Set up for TLS whatever this address says: another one, or a redirect, may need it.
        let mut target = url.clone();
        target.set_scheme("https").expect("http can become https");
        let made = transport
            .connecting()
            .client_builder(&target)?
            .read_timeout(transport.idle_timeout())
            .redirect(reqwest::redirect::Policy::custom(follow))
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Configuration, "the HTTP client cannot be set up").with_source(error)
            })?;
        Ok(slot.get_or_init(|| made))
    }
}

fn follow(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let from_https = attempt.previous().last().is_some_and(|from| from.scheme() == "https");
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error(format!("there are more than {MAX_REDIRECTS} redirects"))
    } else if !matches!((from_https, attempt.url().scheme()), (_, "https") | (false, "http")) {
        attempt.error("it redirects to an address that is not https or, from one that is not, http")
    } else {
        attempt.follow()
    }
}

fn address(url: &str) -> Result<Url, Error> {
    // Not quoted whole: the query of an address is what gives access.
    let refuse = || {
        let shown = url.split(['?', '#']).next().unwrap_or_default();
        Error::new(
            ErrorKind::InvalidRequest,
            format!("{shown:?} is no address of a file: http or https is needed"),
        )
    };
    let parsed = Url::parse(url).map_err(|_| refuse())?;
    if matches!(parsed.scheme(), "http" | "https") { Ok(parsed) } else { Err(refuse()) }
}

/// An address as it may be shown: without its query, which is what gives access.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    crate::secret::redacted_url(&shown)
}

fn transfer_error(error: reqwest::Error, shown: &str) -> Error {
    let kind = match &error {
        error if error.is_timeout() => ErrorKind::Timeout,
        // Too many, or to where no file should come from: the same next time.
        error if error.is_redirect() => ErrorKind::Status,
        _ => ErrorKind::Connection,
    };
    Error::new(kind, format!("{shown} cannot be fetched"))
        .quoting(transport::cause_and_way_out(&error))
        .caused_by(error.without_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_whose_numbers_no_file_has_goes_on_nowhere() {
        for range in ["bytes 5-18446744073709551615/*", "bytes 5-18446744073709551615/0", "bytes 5-9/11"] {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(range))]);
            assert!(!continues(&headers, 5, Some(10), None), "{range}");
        }
        let headers = HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static("bytes 5-9/10"))]);
        assert!(continues(&headers, 5, Some(10), None));
    }

    #[test]
    fn the_range_of_a_part_is_read_strictly() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, 9, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, 9, None)));
        for other in ["", "bytes */10", "bytes 5-/10", "items 5-9/10", "bytes 5-9", "bytes 5-9/x"] {
            assert_eq!(content_range(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_is_shown_without_what_gives_access() {
        let error = address("ftp://h/files/a.png?sig=canary").expect_err("no http");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(!error.to_string().contains("canary"), "{error}");
        let url = Url::parse("https://me:canary@h/files/a.png?sig=canary#canary").expect("a URL");
        assert!(!shown(&url).contains("canary"), "{}", shown(&url));
        assert!(shown(&url).ends_with("h/files/a.png"), "{}", shown(&url));
    }
}
