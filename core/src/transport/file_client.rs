//! The HTTP client that fetches generated files: no key, other redirects, no decompression.

use std::sync::OnceLock;

use url::Url;

use crate::transport::connecting::is_this_machine;
use crate::transport::exchange::Transport;
use crate::wire::error::{Error, ErrorKind};

/// Number of redirects followed: a gateway may redirect to where its files are stored.
const MAX_REDIRECTS: usize = 5;

/// The connections for downloading files. They are separate from those to the gateway, because they follow redirects
/// and carry no key. Created when the first file is fetched, and shared by all clones of a client.
#[derive(Default)]
pub(crate) struct FileClient {
    /// For files on this machine, which are never fetched through a proxy of the environment.
    here: OnceLock<reqwest::Client>,
    elsewhere: OnceLock<reqwest::Client>,
}

impl FileClient {
    pub(crate) fn get(&self, transport: &Transport, url: &Url) -> Result<&reqwest::Client, Error> {
        let slot = if is_this_machine(url) { &self.here } else { &self.elsewhere };
        if let Some(made) = slot.get() {
            return Ok(made);
        }
        // Always set up for TLS, even if this address does not use it: another address or a redirect may.
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
