//! The list of what a client of event streams must survive: every number is covered by a vector of
//! tests/vectors/sse/streams.json or by a test named here.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::vectors;

/// The length of the list.
const LAST: u32 = 52;

/// Cases that a vector cannot express: number, file beside this one, test.
const TESTS: &[(u32, &str, &str)] = &[
    (
        13,
        include_str!("stream_levels.rs"),
        "line_of_four_megabytes_is_one_event_over_a_socket_in_linear_time",
    ),
    (
        17,
        include_str!("stream_levels.rs"),
        "stream_ends_at_its_terminator_although_the_connection_stays_open",
    ),
    (39, include_str!("stream_levels.rs"), "two_timers_watch_bytes_and_events"),
];

/// Cases about the framing or the connection, which are the same in each protocol, and cases about the members of one
/// protocol. All other cases must be covered in each of the three protocols.
const IN_EACH_PROTOCOL: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 29, 30, 31, 32, 33,
    34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 46, 47, 48, 49, 50, 51, 52,
];

#[derive(Deserialize)]
struct Case {
    facts: Vec<u32>,
    operation: String,
}

#[test]
fn every_case_of_the_list_is_covered_by_a_vector_or_a_named_test() {
    let cases = vectors::read::<Case>("sse/streams.json");
    let mut covered: BTreeSet<u32> = cases.iter().flat_map(|case| &case.facts).copied().collect();
    for (number, file, name) in TESTS {
        assert!(file.contains(&format!("async fn {name}()")), "{number}: there is no test {name}");
        covered.insert(*number);
    }
    assert_eq!(covered, (1..=LAST).collect());
}

#[test]
fn each_protocol_covers_what_it_must_survive() {
    let cases = vectors::read::<Case>("sse/streams.json");
    let mut missing = Vec::new();
    for operation in
        ["create_chat_completion", "create_response", "create_message", "stream_generate_content"]
    {
        let of_it = cases.iter().filter(|case| case.operation == operation);
        let covered: BTreeSet<u32> = of_it.flat_map(|case| &case.facts).copied().collect();
        missing.extend(
            IN_EACH_PROTOCOL
                .iter()
                .filter(|&number| !covered.contains(number))
                .map(|number| (operation, number)),
        );
    }
    assert!(missing.is_empty(), "{missing:?}");
}
