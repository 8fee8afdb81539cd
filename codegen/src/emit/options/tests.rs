//! What follows from the options of the fixture.

use insta::assert_snapshot;

use super::{emit, parts};
use crate::build::build;
use crate::fixture::sources;

/// The contents of the file whose path ends so.
fn file(end: &str) -> String {
    let files = emit(&build(&sources()).expect("the fixture builds"));
    files.iter().find(|file| file.path.ends_with(end)).expect("the emitter writes it").contents.clone()
}

#[test]
fn the_core_gets_constants_and_the_merging_of_a_call_s_options() {
    assert_snapshot!(file("transport/generated/options.rs"));
}

#[test]
fn the_builder_gets_setters_and_its_defaults_put_in() {
    assert_snapshot!(file("client/generated/builder.rs"));
}

#[test]
fn waits_and_downloads_get_structs_with_defaults() {
    assert_snapshot!(file("jobs/generated/options.rs"));
}

#[test]
fn the_kit_gets_its_options_and_the_members_of_the_object() {
    assert_snapshot!(file("checkkit/src/generated/options.rs"));
}

#[test]
fn the_program_gets_flags_within_the_bounds_of_the_report() {
    assert_snapshot!(file("check_flags.rs"));
}

#[test]
fn the_program_gets_the_flags_of_a_wait() {
    assert_snapshot!(file("wait_flags.rs"));
}

#[test]
fn python_gets_keywords_with_units_and_defaults() {
    assert_snapshot!(file("generated/options.py"));
}

#[test]
fn the_engine_of_python_reads_each_option_by_its_kind() {
    assert_snapshot!(file("bindings-python/src/generated/options.rs"));
}

#[test]
fn node_gets_interfaces_and_how_each_option_crosses_over() {
    assert_snapshot!(file("options.ts"));
}

#[test]
fn the_engine_of_node_takes_what_crosses_over() {
    assert_snapshot!(file("bindings-node/src/generated/options.rs"));
}

#[test]
fn a_scope_with_a_guide_becomes_a_table_in_it() {
    let mut sources = sources();
    sources.options.client.guide = Some("docs/pens.md".to_owned());
    let parts = parts(&build(&sources).expect("the fixture builds"));
    assert_eq!(parts.len(), 1);
    assert_snapshot!(parts[0].contents);
}
