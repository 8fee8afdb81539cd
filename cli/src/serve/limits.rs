//! Limits and timeouts of `gatewright serve`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use gatewright_gateway::Config;

use crate::seconds::seconds;

/// Defaults are those of [`Config::default`]. The help states them, and a test compares the two.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Limits {
    /// Maximum size of a request body
    #[arg(long, value_name = "BYTES", default_value = "10485760")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_BODY_BYTES", hide_env_values = true)]
    max_body_bytes: NonZeroU32,
    /// Maximum size of all generated files together; each is kept for one hour, and requests that need more are refused
    #[arg(long, value_name = "BYTES", default_value = "268435456")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_FILE_BYTES", hide_env_values = true)]
    max_file_bytes: NonZeroU32,
    /// Maximum number of open connections; further ones wait
    #[arg(long, value_name = "COUNT", default_value = "1024")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_CONNECTIONS", hide_env_values = true)]
    max_connections: NonZeroU32,
    /// Maximum number of open connections per client address; further ones are refused. Behind a proxy, all clients share its address
    #[arg(long, value_name = "COUNT", default_value = "256")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_CONNECTIONS_PER_PEER", hide_env_values = true)]
    max_connections_per_peer: NonZeroU32,
    /// Timeout for receiving the request headers, and for idle connections
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_HEADER_TIMEOUT", hide_env_values = true)]
    header_timeout: Duration,
    /// Timeout for receiving the request body
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_BODY_TIMEOUT", hide_env_values = true)]
    body_timeout: Duration,
    /// Longest time that a client may read nothing of its response
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_WRITE_TIMEOUT", hide_env_values = true)]
    write_timeout: Duration,
    /// Time that requests, video tasks and webhooks in progress get to finish at shutdown
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = grace)]
    #[arg(env = "GATEWRIGHT_SERVE_SHUTDOWN_GRACE", hide_env_values = true)]
    shutdown_grace: Duration,
}

/// Longest accepted timeout.
const LONGEST: Duration = Duration::from_hours(24);

fn grace(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "must be a number of seconds from 0 to 86400".to_owned())
}

fn wait(text: &str) -> Result<Duration, String> {
    let wait = grace(text).ok().filter(|time| !time.is_zero());
    wait.ok_or_else(|| "must be a number of seconds above 0, up to 86400".to_owned())
}

impl Limits {
    /// The configuration with these limits.
    pub(super) fn over(&self, config: Config) -> Config {
        let size = |count: NonZeroU32| usize::try_from(count.get()).unwrap_or(usize::MAX);
        Config {
            max_body_bytes: size(self.max_body_bytes),
            max_file_bytes: size(self.max_file_bytes),
            max_connections: size(self.max_connections),
            max_connections_per_peer: size(self.max_connections_per_peer),
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
            write_timeout: self.write_timeout,
            shutdown_grace: self.shutdown_grace,
            ..config
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn the_defaults_that_help_states_are_those_of_the_gateway() {
        let limits = Program::try_parse_from(["serve"]).expect("no argument is needed").limits;
        let without = Config { shutdown_grace: Duration::ZERO, ..Config::default() };
        assert_eq!(format!("{:?}", limits.over(without)), format!("{:?}", Config::default()));
    }

    #[test]
    fn each_limit_arrives() {
        let arguments = [
            "serve",
            "--max-body-bytes=1",
            "--max-file-bytes=2",
            "--max-connections=3",
            "--max-connections-per-peer=4",
            "--header-timeout=5",
            "--body-timeout=6",
            "--write-timeout=7",
            "--shutdown-grace=0",
        ];
        let limits = Program::try_parse_from(arguments).expect("limits").limits;
        let config = limits.over(Config::default());
        let sizes = (config.max_body_bytes, config.max_file_bytes, config.max_connections);
        assert_eq!((sizes, config.max_connections_per_peer), ((1, 2, 3), 4));
        let times = [config.header_timeout, config.body_timeout, config.write_timeout, config.shutdown_grace];
        assert_eq!(times.map(|time| time.as_secs()), [5, 6, 7, 0]);
        for wrong in
            ["--max-connections=0", "--write-timeout=0", "--header-timeout=-1", "--body-timeout=1e300"]
        {
            assert!(Program::try_parse_from(["serve", wrong]).is_err(), "{wrong}");
        }
    }
}
