//! Limits and timeouts of `gatewright serve`.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use clap::Args;
use gatewright_gateway::Config;

use crate::seconds::seconds;

/// A limit that is not given is that of the configuration file, or else of [`Config::default`]. The help states those
/// defaults, and a test compares the two.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Limits {
    /// Maximum size of a request body [default: 10485760]
    #[arg(long, value_name = "BYTES")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_BODY_BYTES", hide_env_values = true)]
    max_body_bytes: Option<NonZeroU32>,
    /// Maximum total size of generated files, each stored for one hour; requests that need more are rejected [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_FILE_BYTES", hide_env_values = true)]
    max_file_bytes: Option<NonZeroU64>,
    /// Maximum memory of all requests and answers in progress; requests that need more fail [default: 536870912]
    #[arg(long, value_name = "BYTES")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_HELD_BYTES", hide_env_values = true)]
    max_held_bytes: Option<NonZeroU32>,
    /// Maximum number of open connections; further ones wait [default: 1024]
    #[arg(long, value_name = "COUNT")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_CONNECTIONS", hide_env_values = true)]
    max_connections: Option<NonZeroU32>,
    /// Maximum number of open connections per client address; further ones are refused. Behind a proxy, all clients
    /// share its address [default: 256]
    #[arg(long, value_name = "COUNT")]
    #[arg(env = "GATEWRIGHT_SERVE_MAX_CONNECTIONS_PER_PEER", hide_env_values = true)]
    max_connections_per_peer: Option<NonZeroU32>,
    /// Timeout for receiving the request headers, and for idle connections [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_HEADER_TIMEOUT", hide_env_values = true)]
    header_timeout: Option<Duration>,
    /// Timeout for receiving the request body [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_BODY_TIMEOUT", hide_env_values = true)]
    body_timeout: Option<Duration>,
    /// Maximum time that a client may stall while reading its response [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    #[arg(env = "GATEWRIGHT_SERVE_WRITE_TIMEOUT", hide_env_values = true)]
    write_timeout: Option<Duration>,
    /// Time for requests, video tasks and webhooks in progress to finish at shutdown [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = grace)]
    #[arg(env = "GATEWRIGHT_SERVE_SHUTDOWN_GRACE", hide_env_values = true)]
    shutdown_grace: Option<Duration>,
    /// Time during which the gateway still accepts connections after the stop signal, while /health/ready returns 503 [default:
    /// 0]
    #[arg(long, value_name = "SECONDS", value_parser = grace)]
    #[arg(env = "GATEWRIGHT_SERVE_DRAIN_DELAY", hide_env_values = true)]
    drain_delay: Option<Duration>,
}

/// Longest accepted timeout.
const MAX_DURATION: Duration = Duration::from_hours(24);

fn grace(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| *time <= MAX_DURATION)
        .ok_or_else(|| "must be a number of seconds from 0 to 86400".to_owned())
}

fn wait(text: &str) -> Result<Duration, String> {
    let wait = grace(text).ok().filter(|time| !time.is_zero());
    wait.ok_or_else(|| "must be a number of seconds above 0, up to 86400".to_owned())
}

impl Limits {
    /// The configuration with the given limits applied.
    pub(super) fn over(&self, config: Config) -> Config {
        let room = |given: Option<u64>, of_file: usize| {
            given.map_or(of_file, |count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let size = |given: Option<NonZeroU32>, of_file: usize| {
            room(given.map(|count| u64::from(count.get())), of_file)
        };
        Config {
            max_body_bytes: size(self.max_body_bytes, config.max_body_bytes),
            max_file_bytes: room(self.max_file_bytes.map(NonZeroU64::get), config.max_file_bytes),
            max_held_bytes: size(self.max_held_bytes, config.max_held_bytes),
            max_connections: size(self.max_connections, config.max_connections),
            max_connections_per_peer: size(self.max_connections_per_peer, config.max_connections_per_peer),
            header_timeout: self.header_timeout.unwrap_or(config.header_timeout),
            body_timeout: self.body_timeout.unwrap_or(config.body_timeout),
            write_timeout: self.write_timeout.unwrap_or(config.write_timeout),
            shutdown_grace: self.shutdown_grace.unwrap_or(config.shutdown_grace),
            drain_delay: self.drain_delay.unwrap_or(config.drain_delay),
            ..config
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn defaults_in_help_match_the_gateway() {
        let command = Program::command();
        let stated = command.get_arguments().filter_map(|argument| {
            let help = argument.get_help()?.to_string();
            let default = help.rsplit_once("[default: ")?.1.trim_end_matches(']').to_owned();
            Some(format!("--{}={default}", argument.get_long()?))
        });
        let arguments: Vec<String> = std::iter::once("serve".to_owned()).chain(stated).collect();
        assert_eq!(arguments.len(), 11, "{arguments:?}");
        let limits = Program::try_parse_from(arguments).expect("limits").limits;
        let without = Config { shutdown_grace: Duration::ZERO, max_connections: 1, ..Config::default() };
        assert_eq!(format!("{:?}", limits.over(without)), format!("{:?}", Config::default()));
    }

    #[test]
    fn each_limit_flag_sets_its_limit() {
        let arguments = [
            "serve",
            "--max-body-bytes=1",
            "--max-file-bytes=5368709120",
            "--max-connections=3",
            "--max-connections-per-peer=4",
            "--header-timeout=5",
            "--body-timeout=6",
            "--write-timeout=7",
            "--shutdown-grace=0",
            "--drain-delay=8",
            "--max-held-bytes=9",
        ];
        let limits = Program::try_parse_from(arguments).expect("limits").limits;
        let config = limits.over(Config::default());
        let sizes = (config.max_body_bytes, config.max_file_bytes, config.max_connections);
        assert_eq!((sizes, config.max_connections_per_peer), ((1, 5 << 30, 3), 4));
        assert_eq!(config.max_held_bytes, 9);
        let before = [config.header_timeout, config.body_timeout, config.write_timeout];
        assert_eq!(before.map(|time| time.as_secs()), [5, 6, 7]);
        assert_eq!([config.shutdown_grace, config.drain_delay].map(|time| time.as_secs()), [0, 8]);
        for wrong in
            ["--max-connections=0", "--write-timeout=0", "--header-timeout=-1", "--body-timeout=1e300"]
        {
            assert!(Program::try_parse_from(["serve", wrong]).is_err(), "{wrong}");
        }
    }
}
