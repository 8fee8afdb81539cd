//! Generated files (4 rule 4): the images and videos that answers point to, fetched by their address.

use std::fmt;

use bytes::Bytes;

use crate::client::{Client, DEFAULT_CONNECT_TIMEOUT, DEFAULT_IDLE_TIMEOUT};
use crate::error::{Error, ErrorKind};

/// Redirects followed: a gateway may point to where its files are kept.
const MAX_REDIRECTS: usize = 5;

impl Client {
    /// Opens a generated file, such as `output.url` of a video task or `url` of an image.
    ///
    /// The key is not sent: the address alone gives access, and need not be the gateway's own. Nothing is tried
    /// again.
    ///
    /// Errors: InvalidRequest where `url` is no http or https URL, Connection, Timeout, the kind of a status that
    /// is no success.
    ///
    /// Source: 2.7, 2.11, 4 rule 4.
    pub async fn download(&self, url: &str) -> Result<Download, Error> {
        let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(parsed) = parsed else {
            return Err(Error::new(ErrorKind::InvalidRequest, format!("{url:?} is no address of a file")));
        };
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(crate::tls::client_config(true)?)
            .connect_timeout(DEFAULT_CONNECT_TIMEOUT)
            .read_timeout(DEFAULT_IDLE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::limited(MAX_REDIRECTS))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Configuration, "the HTTP client cannot be set up").with_source(error)
            })?;
        let response = http.get(parsed).send().await.map_err(transfer_error)?;
        let status = response.status();
        if !status.is_success() {
            let message = format!("{} answers with {status}", response.url());
            return Err(
                Error::new(ErrorKind::from_status(status.as_u16()), message).with_status(status.as_u16())
            );
        }
        Ok(Download { response })
    }
}

/// A file that is arriving. Dropping it closes the connection.
pub struct Download {
    response: reqwest::Response,
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
        self.response.chunk().await.map_err(transfer_error)
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("size", &self.size()).finish_non_exhaustive()
    }
}

fn transfer_error(error: reqwest::Error) -> Error {
    let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Connection };
    let message = format!("the file cannot be fetched: {}", crate::transport::root_cause(&error));
    Error::new(kind, message).with_source(error.without_url())
}
