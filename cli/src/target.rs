//! The gateway that a command calls.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use clap::Args;
use gatewright::{API_KEY_VARIABLE, ApiKey, BASE_URL_VARIABLE, Client, ClientBuilder, DEFAULT_BASE_URL};
use url::{Host, Url};

use crate::exit::Failure;
use crate::running::{self, RunningGateway};

/// How long an address of this machine is tried.
const LOOK: Duration = Duration::from_millis(500);

/// Where the gateway is, for commands that call one.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Address of the gateway, without /v1 [default: the gateway that you run on this machine, else http://127.0.0.1:8080]
    #[arg(long, alias = "endpoint", value_name = "URL", env = BASE_URL_VARIABLE, hide_env_values = true)]
    base_url: Option<String>,
}

/// The address to call and, if this user runs the gateway there, the gateway.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) local: Option<RunningGateway>,
}

impl Address {
    /// `given`: from an option or a variable; if it is missing or empty, this user's gateway, otherwise the default.
    ///
    /// Errors: several gateways run here.
    pub(crate) fn of(given: Option<&str>) -> Result<Self, Failure> {
        if let Some(url) = given.map(str::trim).filter(|url| !url.is_empty()) {
            return Ok(Self { url: url.to_owned(), local: running::at(url) });
        }
        let local = running::only()?;
        let url = local.as_ref().map_or(DEFAULT_BASE_URL, RunningGateway::url).to_owned();
        Ok(Self { url, local })
    }

    /// The key to send if GATEWRIGHT_API_KEY is not set: the kept one of this user's gateway. It is sent nowhere else.
    pub(crate) fn saved_key(&self) -> Result<Option<ApiKey>, Failure> {
        if std::env::var_os(API_KEY_VARIABLE).is_some_and(|key| !key.is_empty()) {
            return Ok(None);
        }
        self.local.as_ref().map_or(Ok(None), RunningGateway::key)
    }
}

impl Target {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        // Without a gateway, a key is not what is missing.
        if std::env::var_os(API_KEY_VARIABLE).is_none_or(|key| key.is_empty()) {
            let Address { url, local } = self.address()?;
            if local.is_none() && is_unused(&url) {
                return Err(Failure::Usage(format!(
                    "no gateway runs at {url}: start one with `gatewright serve`; for a gateway elsewhere, set {BASE_URL_VARIABLE} \
                     and {API_KEY_VARIABLE}"
                )));
            }
        }
        self.client_with(|builder| builder)
    }

    pub(crate) fn address(&self) -> Result<Address, Failure> {
        Address::of(self.base_url.as_deref())
    }

    /// A client with additional options.
    pub(crate) fn client_with(
        &self,
        options: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Failure> {
        let address = self.address()?;
        let mut builder = Client::builder().base_url(&address.url);
        if let Some(key) = address.saved_key()? {
            builder = builder.api_key(key.expose());
        }
        let builder = options(builder);
        // Commands read the key only from the environment, because process lists show flags.
        Ok(builder.build_saying("; `gatewright serve` and `gatewright keys create` print one")?)
    }
}

/// Whether an address is one of this machine at which nothing listens.
fn is_unused(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let addresses = if is_local { url.socket_addrs(|| None).unwrap_or_default() } else { Vec::new() };
    let refuses = |address: &SocketAddr| {
        let connected = TcpStream::connect_timeout(address, LOOK);
        connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    !addresses.is_empty() && addresses.iter().all(refuses)
}

#[cfg(test)]
mod tests {
    use clap::Command;

    /// The commands below one that take an address, by path, and whether each also takes `--endpoint`.
    fn takers(command: &Command, path: &str, found: &mut Vec<(String, bool)>) {
        for argument in command.get_arguments().filter(|argument| argument.get_long() == Some("base-url")) {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            found.push((path.to_owned(), aliases.contains(&"endpoint")));
        }
        for below in command.get_subcommands() {
            takers(below, &format!("{path} {}", below.get_name()), found);
        }
    }

    #[test]
    fn every_command_accepts_the_old_address_flag() {
        let mut found = Vec::new();
        takers(&crate::program(), "gatewright", &mut found);
        let lacking: Vec<&String> = found.iter().filter(|(_, takes)| !takes).map(|(path, _)| path).collect();
        assert_eq!(lacking, [""; 0]);
        for command in ["check", "chat", "doctor", "models", "image", "video"] {
            assert!(found.iter().any(|(path, _)| *path == format!("gatewright {command}")), "{command}");
        }
    }
}
