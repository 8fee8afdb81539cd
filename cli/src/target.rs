//! The gateway that a command calls.

use clap::Args;
use gatewright::{Client, ClientBuilder};

use crate::exit::Failure;

/// Where the gateway is, for commands that call one.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Address of the gateway, without /v1
    #[arg(long, alias = "endpoint", value_name = "URL", env = gatewright::BASE_URL_VARIABLE, hide_env = true)]
    base_url: Option<String>,
}

impl Target {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(|builder| builder)
    }

    /// A client with additional options.
    pub(crate) fn client_with(
        &self,
        options: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Failure> {
        let builder = options(Client::builder());
        let builder = match self.base_url.as_deref().map(str::trim) {
            Some(url) if !url.is_empty() => builder.base_url(url),
            _ => builder,
        };
        // Commands read the key only from the environment, because process lists show flags.
        Ok(builder.build_saying("; `gatewright serve` and `gatewright keys create` print one")?)
    }
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
    fn every_command_with_an_address_takes_it_by_its_old_name_too() {
        let mut found = Vec::new();
        takers(&crate::program(), "gatewright", &mut found);
        let lacking: Vec<&String> = found.iter().filter(|(_, takes)| !takes).map(|(path, _)| path).collect();
        assert_eq!(lacking, [""; 0]);
        for command in ["check", "chat", "doctor", "models", "image", "video"] {
            assert!(found.iter().any(|(path, _)| *path == format!("gatewright {command}")), "{command}");
        }
    }
}
