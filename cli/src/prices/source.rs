//! Where a list comes from: a file, standard input, or a download.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use serde_json::value::RawValue;
use url::{Host, Url};

use crate::exit::Failure;
use crate::places;

/// Maximum size of a list, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Timeout of a download.
const MAX_TIME: Duration = Duration::from_mins(1);
/// Maximum number of top-level entries of a list.
const MAX_ENTRIES: usize = 100_000;

/// The top-level entries of a list, which are parsed one by one: an invalid one doesn't spoil the rest.
pub(super) type Entries<'t> = BTreeMap<String, &'t RawValue>;

/// Errors: the text is not a JSON object, or has too many members.
pub(super) fn entries(text: &str) -> Result<Entries<'_>, String> {
    let entries: Entries<'_> =
        serde_json::from_str(text).map_err(|error| format!("it is not a JSON object: {error}"))?;
    if entries.len() > MAX_ENTRIES {
        return Err(format!("it has more than {MAX_ENTRIES} entries"));
    }
    Ok(entries)
}

/// The members of an entry that is an object.
pub(super) fn members(entry: &RawValue) -> Option<Entries<'_>> {
    serde_json::from_str(entry.get()).ok()
}

/// Where a list is.
#[derive(Debug)]
pub(super) enum PriceSource {
    File(PathBuf),
    Url(String),
}

impl fmt::Display for PriceSource {
    /// Omits the parts of a URL that may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) if places::is_stdin(path) => formatter.write_str("standard input"),
            Self::File(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                formatter.write_str(&name.to_string_lossy())
            }
            Self::Url(url) => match Url::parse(url) {
                Ok(mut url) => {
                    url.set_query(None);
                    url.set_fragment(None);
                    // Both succeed for URLs with a host.
                    _ = url.set_password(None);
                    _ = url.set_username("");
                    url.fmt(formatter)
                }
                Err(_) => formatter.write_str("the URL"),
            },
        }
    }
}

impl PriceSource {
    pub(super) fn new(argument: String) -> Self {
        let is_url = ["https://", "http://"].iter().any(|scheme| argument.starts_with(scheme));
        if is_url { Self::Url(argument) } else { Self::File(argument.into()) }
    }

    /// The file, if the source is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Url(_) => None,
        }
    }

    pub(super) async fn read(&self) -> Result<String, Failure> {
        let bytes = match self {
            Self::File(path) => {
                let read = read_file(path);
                read.map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?
            }
            Self::Url(url) => self.download(url).await?,
        };
        if bytes.len() > MAX_BYTES {
            return Err(Failure::Usage(format!("{self} is larger than {MAX_BYTES} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{self} is not UTF-8")))
    }

    async fn download(&self, url: &str) -> Result<Vec<u8>, Failure> {
        let failed = |why: String| Failure::Failed(format!("cannot download {self}: {why}"));
        let url = Url::parse(url).map_err(|error| Failure::Usage(format!("the URL is invalid: {error}")))?;
        let client = client(&url).map_err(|why| Failure::Usage(format!("cannot download {self}: {why}")))?;
        let cause = |error: reqwest::Error| failed(innermost(&error.without_url()));
        let mut response = client.get(url).send().await.map_err(cause)?;
        if !response.status().is_success() {
            return Err(failed(format!("the server returned {}", response.status())));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(cause)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                break;
            }
        }
        Ok(bytes)
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, to detect that it is too long.
    let most = MAX_BYTES as u64 + 1;
    if places::is_stdin(path) {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// A client for one download: over TLS, except from this machine.
fn client(url: &Url) -> Result<reqwest::Client, String> {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_plain = url.scheme() == "http";
    if is_plain && !is_local {
        return Err(
            "use https: prices decide about money, so http is only allowed from this machine".to_owned()
        );
    }
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    let tls = gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth();
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).timeout(MAX_TIME);
    let client = if is_plain {
        client.redirect(Policy::none()).no_proxy()
    } else {
        client.redirect(Policy::limited(5)).https_only(true)
    };
    client.build().map_err(|error| innermost(&error))
}

/// The innermost cause of an error, which is the most specific.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
