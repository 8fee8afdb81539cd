//! The store that several gateways share, its pepper, and their counters: from variables, since process lists show flags.

use gatewright_gateway::{Config, CounterServer, CountersUrl, Pepper, Registry, StoreUrl};

use super::key::variable;
use crate::exit::Failure;

/// Environment variable of the address of the Postgres database.
const URL_VARIABLE: &str = "GATEWRIGHT_SERVE_STORE_URL";
/// Environment variable of the pepper.
const PEPPER_VARIABLE: &str = "GATEWRIGHT_SERVE_PEPPER";

/// Environment variable of the address of the Redis or Valkey server.
const COUNTERS_VARIABLE: &str = "GATEWRIGHT_SERVE_COUNTERS_URL";

/// The variables take precedence over the configuration.
pub(super) fn over(mut config: Config) -> Result<Config, Failure> {
    config.store = url()?.or(config.store);
    config.pepper = pepper()?.or(config.pepper);
    if let Some(url) = counters()? {
        match &mut config.counters {
            Some(counters) => counters.url = url,
            none => *none = Some(CounterServer::new(url)),
        }
    }
    Ok(config)
}

fn url() -> Result<Option<StoreUrl>, Failure> {
    let url = variable(URL_VARIABLE)?.map(|url| StoreUrl::new(&url)).transpose();
    url.map_err(|why| Failure::Usage(format!("{URL_VARIABLE}: {why}")))
}

fn pepper() -> Result<Option<Pepper>, Failure> {
    let pepper = variable(PEPPER_VARIABLE)?.map(|pepper| Pepper::new(&pepper)).transpose();
    pepper.map_err(|why| Failure::Usage(format!("{PEPPER_VARIABLE}: {why}")))
}

fn counters() -> Result<Option<CountersUrl>, Failure> {
    let url = variable(COUNTERS_VARIABLE)?.map(|url| CountersUrl::new(&url)).transpose();
    url.map_err(|why| Failure::Usage(format!("{COUNTERS_VARIABLE}: {why}")))
}

/// Opens the store that the variables name. Errors: one of them is missing.
pub(crate) async fn open() -> Result<Registry, Failure> {
    let missing = |name: &str| Failure::Usage(format!("set {name}"));
    let url = url()?.ok_or_else(|| missing(URL_VARIABLE))?;
    let pepper = pepper()?.ok_or_else(|| missing(PEPPER_VARIABLE))?;
    Ok(Registry::open_server(&url, &pepper).await?)
}
