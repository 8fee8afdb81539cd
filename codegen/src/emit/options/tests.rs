//! What the emitter generates from the fixture's options.

use insta::assert_snapshot;

use super::emit;
use crate::fixture::{emitted, sources};

/// The contents of the file whose path ends with this.
fn file(end: &str) -> String {
    let files = emitted(emit, &sources()).expect("the fixture generates");
    files.into_iter().find(|file| file.path.ends_with(end)).expect("the emitter writes it").contents
}

#[test]
fn core_gets_constants_and_merging_of_call_options() {
    assert_snapshot!(file("transport/generated/options.rs"));
}

#[test]
fn builder_gets_setters_and_defaults() {
    assert_snapshot!(file("client/generated/builder.rs"));
}

#[test]
fn waits_and_downloads_get_structs_with_defaults() {
    assert_snapshot!(file("jobs/generated/options.rs"));
}

#[test]
fn checkkit_gets_options_and_json_members() {
    assert_snapshot!(file("checkkit/src/generated/options.rs"));
}

#[test]
fn cli_gets_check_flags_within_report_bounds() {
    assert_snapshot!(file("check_flags.rs"));
}

#[test]
fn cli_gets_wait_flags() {
    assert_snapshot!(file("wait_flags.rs"));
}

#[test]
fn python_gets_keyword_arguments_with_units_and_defaults() {
    assert_snapshot!(file("generated/options.py"));
}

#[test]
fn python_engine_reads_each_option_by_its_kind() {
    assert_snapshot!(file("bindings-python/src/generated/options.rs"));
}

#[test]
fn node_gets_interfaces_and_option_conversions() {
    assert_snapshot!(file("options.ts"));
}

#[test]
fn node_engine_accepts_converted_options() {
    assert_snapshot!(file("bindings-node/src/generated/options.rs"));
}

#[test]
fn option_scope_with_a_guide_becomes_a_table_in_it() {
    let mut sources = sources();
    sources.options.client.guide = Some("docs/pens.md".to_owned());
    let mut parts = emitted(emit, &sources).expect("the fixture generates");
    parts.retain(|file| file.part.is_some());
    assert_eq!(parts.len(), 1);
    assert_snapshot!(parts[0].contents);
}
