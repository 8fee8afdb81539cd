//! The maximum memory of a gateway: the operators' handbook computes it, and deployments have it.

use gatewright::operations;
use gatewright_config::Config;
use gatewright_store::MAX_ANSWER_BYTES;

use super::{head, outgoing, wire};
use crate::relay::MAX_REPORT_MEMORY;
use crate::tasks::MAX_LOOK_UPS;
use crate::wire::PIECE;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const HANDBOOK: &str = include_str!("../../../../docs/handbook/strangers.md");

/// The maximum memory of a gateway, as the operators' handbook computes it: parts, how they are computed, and bytes.
fn memory_bound(max_held: usize, max_connections: usize) -> [(&'static str, String, usize); 8] {
    let buffers = head::MAX_BYTES + wire::LONG_PACKET + outgoing::MAX_COLLECTED + PIECE;
    let window = gatewright_connect::STREAM_WINDOW as usize;
    // Of a file or a batch, an answer is at most as long as its record.
    let is_repeatable = |operation: &&&operations::Operation| {
        operation.has_body && operation.protocol != operations::Protocol::Batch
    };
    let repeatable = operations::ALL.iter().filter(is_repeatable).count();
    let of_each = |bytes: usize| format!("{} KiB × `limits.max_connections`", bytes / KIB);
    let answers = format!("{} KiB × {repeatable} operations", MAX_ANSWER_BYTES / KIB);
    [
        ("requests and answers in progress", "1.5 × `limits.max_held`".to_owned(), max_held + max_held / 2),
        ("buffers of connections", of_each(buffers), buffers * max_connections),
        ("what providers send ahead over HTTP/2", of_each(window), window * max_connections),
        ("answers to requests with `Idempotency-Key`", answers, MAX_ANSWER_BYTES * repeatable),
        (
            "polls of videos",
            format!("{} KiB × {MAX_LOOK_UPS}", MAX_REPORT_MEMORY / KIB),
            MAX_REPORT_MEMORY * MAX_LOOK_UPS,
        ),
        ("copies of stored responses", "fixed".to_owned(), 64 * MIB),
        ("what waits for the store while it is away", "fixed".to_owned(), 64 * MIB),
        ("the program itself", "measured".to_owned(), 64 * MIB),
    ]
}

fn sum(parts: &[(&str, String, usize)]) -> usize {
    parts.iter().map(|(_, _, bytes)| bytes).sum()
}

/// The number after a text.
fn number_after(text: &str, before: &str) -> Option<usize> {
    let (_, rest) = text.split_once(before)?;
    rest[..rest.find(|character: char| !character.is_ascii_digit())?].parse().ok()
}

/// The memory limits of containers hold what their gateways may take, with a twentieth for TLS.
#[test]
fn deployments_have_the_memory_that_their_limits_allow() {
    let defaults = Config::default();
    let compose = include_str!("../../../../deploy/compose.yaml");
    let kubernetes = include_str!("../../../../deploy/kubernetes/deployment.yaml");
    let chart = include_str!("../../../../deploy/helm/values.yaml");
    for (place, gib, configuration) in [
        (
            "compose",
            number_after(compose, "cpus: \"2\", memory: "),
            include_str!("../../../../deploy/compose/gatewright.toml"),
        ),
        (
            "kubernetes",
            number_after(kubernetes, "limits:\n              memory: "),
            include_str!("../../../../deploy/kubernetes/config-map.yaml"),
        ),
        ("helm", number_after(chart, "limits:\n    memory: "), chart),
        ("handbook", number_after(HANDBOOK, "A configuration for a machine with "), HANDBOOK),
    ] {
        let limit = gib.unwrap_or_else(|| panic!("{place} has no limit")) * 1024 * MIB;
        let max_held =
            number_after(configuration, "\nmax_held = \"").map_or(defaults.max_held_bytes, |mib| mib * MIB);
        let max_connections =
            number_after(configuration, "\nmax_connections = ").unwrap_or(defaults.max_connections);
        let bound = sum(&memory_bound(max_held, max_connections));
        assert!(bound <= limit / 20 * 19, "{place}: {} MiB may be needed", bound / MIB);
    }
}

/// The operators' handbook calculates the maximum memory of a gateway.
#[test]
fn handbook_states_the_gateway_memory_bound() {
    let page = HANDBOOK;
    let config = Config::default();
    let parts = memory_bound(config.max_held_bytes, config.max_connections);
    let total = ("sum", String::new(), sum(&parts));
    for (part, computed, bytes) in parts.iter().chain([&total]) {
        let row =
            [*part, computed, &format!("{} MiB", bytes / MIB)].map(|cell| format!("| {cell} ")).concat()
                + "|";
        assert!(page.contains(&row.replace("|  |", "| |")), "{row}");
    }
    assert!(page.contains(&format!("`limits.max_files`, {} MiB", config.max_file_bytes / MIB)));
    let peers = format!("may have {} of 1,024 connections", config.max_connections_per_peer);
    assert!(page.contains(&peers) && config.max_connections == 1024);
    for (what, setting, time) in [
        ("send a body", "body_timeout", config.body_timeout),
        ("read nothing of an answer", "write_timeout", config.write_timeout),
        ("idle between requests", "header_timeout", config.header_timeout),
    ] {
        let row = format!("| {what} | `limits.{setting}` | {} s |", time.as_secs());
        assert!(page.contains(&row), "{row}");
    }
}
