//! Generated files: downloads the images and videos that responses point to and streams them to disk.

mod atomic_download;

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::BASE64_STANDARD;
use base64::read::DecoderReader;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use url::Url;

use self::atomic_download::PartialFile;
use crate::client::Client;
use crate::jobs::generated::options::SaveOptions;
use crate::transport::exchange::{ERROR_BODY_TIME, read_some};
use crate::transport::file_client::{FileResponse, shown};
use crate::transport::secret::Secrets;
use crate::wire::error::{Error, ErrorKind};

/// Pause before a broken transfer is resumed. It is resumed once.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Base64 is decoded in chunks of this many bytes.
const DECODING_STEP_BYTES: usize = 64 * 1024;

/// A saved file.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::SaveOptions;
///
/// let saved = client.save("https://example.com/boat.png", "boat.png", SaveOptions::default()).await?;
/// println!("{} bytes in {}", saved.bytes, saved.path.display());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The path, as the caller gave it.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Checks that a file can be saved at the path, before a costly request: creates the temporary file and removes it.
///
/// Errors (Io): as [`Client::save`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use gatewright::{ErrorKind, SaveOptions, check_place};
///
/// let error = check_place("no such folder/boat.png", &SaveOptions::default()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Io);
/// # });
/// ```
pub async fn check_place(path: impl AsRef<Path>, options: &SaveOptions) -> Result<(), Error> {
    PartialFile::begin(path.as_ref(), options).await.map(drop)
}

impl Client {
    /// Opens a generated file, such as `output.url` of a video task or `url` of an image, as a stream of bytes.
    ///
    /// The API key is never sent: the URL alone gives access. Nothing is retried.
    ///
    /// Errors: InvalidRequest if `url` is not an http or https URL; Connection; Timeout; the kind of an unsuccessful
    /// status.
    ///
    /// Source: sections 2.7, 2.11 and 4 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let mut download = client.download("https://example.com/boat.png").await?;
    /// let mut image = Vec::new();
    /// while let Some(chunk) = download.chunk().await? {
    ///     image.extend_from_slice(&chunk);
    /// }
    /// # Ok(())
    /// # }
    /// ```
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
    /// The data is written to a temporary file next to it, which is renamed at the end, or removed if the transfer
    /// fails or the future is dropped: the file is written completely or not at all. A symbolic link is followed; a
    /// replaced file keeps its permissions. A transfer that breaks off or fails temporarily (5xx except 501, 429,
    /// 408, 409, a timeout) is retried once: from where it broke off if the server confirms that the file is
    /// unchanged (`Range`, `If-Range` with a strong `ETag`), else from the start.
    ///
    /// The API key is never sent: the URL alone gives access.
    ///
    /// Errors: those of [`Client::download`]; Io for a problem with the disk or with `path`, with the system's error
    /// as its source; Decode if the file is longer than allowed, has a content encoding or is a page (`text/html`).
    ///
    /// Source: sections 2.7, 2.11 and 4 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::SaveOptions;
    ///
    /// let options = SaveOptions { overwrite: false, ..SaveOptions::default() };
    /// let saved = client.save("https://example.com/boat.png", "boat.png", options).await?;
    /// println!("{} bytes", saved.bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save(
        &self,
        url: &str,
        path: impl AsRef<Path>,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let mut transfer = Transfer { url: address(url)?, total: None, tag: None };
        let secrets = Secrets::of_address(&transfer.url, self.transport().known_keys());
        let saving = async {
            let mut partial_file = PartialFile::begin(path.as_ref(), &options).await?;
            let first = transfer.pull(self, &mut partial_file).await;
            if let Err(error) = first {
                if !error.kind().is_retryable() {
                    return Err(error);
                }
                tokio::time::sleep(RESUME_PAUSE).await;
                transfer.pull(self, &mut partial_file).await?;
            }
            partial_file.finish().await
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

    /// Errors: as they occur, not redacted.
    async fn get(&self, url: Url, mut headers: HeaderMap) -> Result<FileResponse, Error> {
        let shown = shown(&url);
        // A compressed transfer has other lengths, ranges and tags than the file.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(USER_AGENT, self.transport().user_agent().clone());
        let response = self.downloads().get(self.transport(), url, headers).await?;
        let status = response.status;
        if !matches!(
            status,
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::PARTIAL_CONTENT
        ) {
            let headers = response.headers.clone();
            let body = read_some(response.into_body(), ERROR_BODY_TIME).await;
            let fallback = || format!("{shown} returned status {status}");
            return Err(Error::from_body(ErrorKind::from_status(status.as_u16()), body, fallback)
                .with_status(status.as_u16())
                .with_headers(headers));
        }
        let encoding = response.headers.get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(Error::new(
                ErrorKind::Decode,
                format!("{shown} returned a compressed file, which was not requested"),
            ));
        }
        Ok(response)
    }
}

/// Decodes base64 and writes it to a file in steps. Errors: Decode if it is not strict base64; Io.
pub(crate) async fn save_base64(text: &str, path: &Path, options: &SaveOptions) -> Result<Saved, Error> {
    let mut partial_file = PartialFile::begin(path, options).await?;
    let mut decoder = DecoderReader::new(text.as_bytes(), &BASE64_STANDARD);
    let mut step = vec![0; DECODING_STEP_BYTES];
    loop {
        let length = decoder.read(&mut step).map_err(|error| {
            // The message quotes at most one byte.
            Error::new(ErrorKind::Decode, format!("the data to save is not valid base64: {error}"))
                .with_source(error)
        })?;
        if length == 0 {
            return partial_file.finish().await;
        }
        partial_file.write(&step[..length]).await?;
    }
}

/// A file on its way to disk, with its description in the first response.
struct Transfer {
    url: Url,
    /// Its size.
    total: Option<u64>,
    /// A strong entity tag, which shows whether a later response is about the same file.
    tag: Option<HeaderValue>,
}

impl Transfer {
    /// Fetches the file, or the rest of it, to the end.
    async fn pull(&mut self, client: &Client, partial_file: &mut PartialFile) -> Result<(), Error> {
        let mut response = self.ask(client, partial_file).await?;
        let shown = shown(&self.url);
        if is_page(&response.headers) {
            let message = format!(
                "{shown} returned a page (text/html) instead of the file: its address may have expired, or require a sign-in"
            );
            return Err(Error::new(ErrorKind::Decode, message)
                .with_status(response.status.as_u16())
                .with_headers(response.headers.clone()));
        }
        if response.status != StatusCode::PARTIAL_CONTENT {
            partial_file.start_over().await?;
            self.total = response.length;
            let tag = response.headers.get(ETAG);
            self.tag = tag.filter(|tag| tag.as_bytes().starts_with(b"\"")).cloned();
            if let Some(total) = self.total {
                partial_file.check_size(total)?;
            }
        }
        while let Some(piece) = response.chunk().await? {
            partial_file.write(&piece).await?;
        }
        match self.total {
            Some(total) if total != partial_file.written() => {
                let message =
                    format!("{shown} was cut off after {} of {total} bytes", partial_file.written());
                Err(Error::new(ErrorKind::Connection, message))
            }
            _ => Ok(()),
        }
    }

    /// Requests the missing part if the server can tell whether the file is the same. Otherwise, or if the server sends
    /// a different part, requests the whole file.
    async fn ask(&self, client: &Client, partial_file: &PartialFile) -> Result<FileResponse, Error> {
        if let (Some(tag), from @ 1..) = (&self.tag, partial_file.written()) {
            let mut headers = HeaderMap::new();
            let range = HeaderValue::try_from(format!("bytes={from}-")).expect("digits");
            headers.insert(RANGE, range);
            headers.insert(IF_RANGE, tag.clone());
            match client.get(self.url.clone(), headers).await {
                Ok(response) if response.status != StatusCode::PARTIAL_CONTENT => return Ok(response),
                Ok(response) if continues(&response.headers, from, self.total, self.tag.as_ref()) => {
                    return Ok(response);
                }
                Ok(_) => {}
                Err(error) if error.status() == Some(StatusCode::RANGE_NOT_SATISFIABLE.as_u16()) => {}
                Err(error) => return Err(error),
            }
        }
        let response = client.get(self.url.clone(), HeaderMap::new()).await?;
        if response.status == StatusCode::PARTIAL_CONTENT {
            let message = format!(
                "{} returned only part of the file, but the whole file was requested",
                shown(&self.url)
            );
            return Err(Error::new(ErrorKind::Decode, message));
        }
        Ok(response)
    }
}

/// Whether a part continues at `from` and belongs to the same file, which has this size and tag.
pub(crate) fn continues(
    headers: &HeaderMap,
    from: u64,
    total: Option<u64>,
    tag: Option<&HeaderValue>,
) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).and_then(content_range);
    let Some((start, end, stated_total)) = range else { return false };
    let same_size =
        [total, stated_total].into_iter().flatten().all(|total| Some(total) == end.checked_add(1));
    start == from && same_size && headers.get(ETAG).is_none_or(|other| Some(other) == tag)
}

/// Whether the response says that it is a web page: no image or video is one.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
}

/// First byte, last byte and, if given, size of the file, from `bytes 5-9/10` or `bytes 5-9/*`.
fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((start.parse().ok()?, end.parse().ok()?, total))
}

/// A file that is arriving. Dropping it closes the connection.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// let mut download = client.download("https://example.com/boat.png").await?;
/// let mut arrived = 0;
/// while let Some(chunk) = download.chunk().await? {
///     arrived += chunk.len();
///     println!("{arrived} of {:?} bytes", download.size());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Download {
    response: FileResponse,
    secrets: Secrets,
}

impl Download {
    /// Size of the whole file in bytes, if the server states it.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let download = client.download("https://example.com/boat.png").await?;
    /// if download.size().is_none_or(|bytes| bytes > 1 << 20) {
    ///     println!("this may take a while");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn size(&self) -> Option<u64> {
        self.response.length
    }

    /// The next bytes as they arrive; none once the file is complete.
    ///
    /// Errors: Connection if the file breaks off before its end; Timeout.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use std::io::Write as _;
    ///
    /// let mut download = client.download("https://example.com/boat.png").await?;
    /// while let Some(chunk) = download.chunk().await? {
    ///     std::io::stdout().write_all(&chunk).expect("written");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.response.chunk().await.map_err(|error| self.secrets.show(error))
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("size", &self.size()).finish_non_exhaustive()
    }
}

fn address(url: &str) -> Result<Url, Error> {
    // Never quoted whole: the query of the URL gives access.
    let refuse = || {
        let shown = url.split(['?', '#']).next().unwrap_or_default();
        Error::new(
            ErrorKind::InvalidRequest,
            format!("{shown:?} is not the URL of a file: it must be an http or https URL"),
        )
    };
    let parsed = Url::parse(url).map_err(|_| refuse())?;
    if matches!(parsed.scheme(), "http" | "https") { Ok(parsed) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_content_range_does_not_resume_a_download() {
        for range in ["bytes 5-18446744073709551615/*", "bytes 5-18446744073709551615/0", "bytes 5-9/11"] {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(range))]);
            assert!(!continues(&headers, 5, Some(10), None), "{range}");
        }
        let headers = HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static("bytes 5-9/10"))]);
        assert!(continues(&headers, 5, Some(10), None));
    }

    #[test]
    fn content_range_is_parsed_strictly() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, 9, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, 9, None)));
        for other in ["", "bytes */10", "bytes 5-/10", "items 5-9/10", "bytes 5-9", "bytes 5-9/x"] {
            assert_eq!(content_range(other), None, "{other}");
        }
    }

    #[test]
    fn displayed_url_omits_credentials_and_signature() {
        let error = address("ftp://h/files/a.png?sig=canary").expect_err("not HTTP");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(!error.to_string().contains("canary"), "{error}");
        let url = Url::parse("https://me:canary@h/files/a.png?sig=canary#canary").expect("a URL");
        assert!(!shown(&url).contains("canary"), "{}", shown(&url));
        assert!(shown(&url).ends_with("h/files/a.png"), "{}", shown(&url));
    }
}
