//! The file that `gatewright config init` writes: each key of the schema, and its default.

use std::path::Path;

use serde_json::Value;

use super::{Absent, DocumentKind, parse, read, set};
use crate::schema::schema;
use crate::toml_as_json::table;
use crate::{Config, Kind, Log, STARTING_FILE};

/// The starting file with its keys uncommented: those that state defaults, and the examples if requested.
fn starting_file(examples: bool) -> String {
    let is_key = |text: &str| {
        let name = text.split(" = ").next().unwrap_or_default();
        !name.is_empty() && text != name && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let is_part = |text: &str| is_key(text) || text.starts_with(['[', ']']) || text.starts_with("  {");
    let lines = STARTING_FILE.lines().filter_map(|line| match line.strip_prefix('#') {
        None => Some(line),
        Some(stated) if is_key(stated) => Some(stated),
        Some(example) => example.strip_prefix(' ').filter(|text| examples && is_part(text)),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn starting_file_states_the_defaults() {
    let stated = read(&starting_file(false)).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(format!("{:?}", stated.config), format!("{:?}", Config::default()));
    assert_eq!((stated.log, STARTING_FILE.matches("\n#").count() > 50), (Log::default(), true));
}

#[test]
fn every_example_in_the_starting_file_parses() {
    let text = starting_file(true);
    let read =
        parse(&text, "gatewright.toml", Path::new("/nowhere"), set, Absent::IsWarned, DocumentKind::Whole);
    let read = read.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let [upstream] = read.config.upstreams.as_slice() else { panic!("{:?}", read.config.upstreams) };
    assert_eq!((upstream.kind, upstream.max_concurrent), (Kind::Responses, Some(100)));
    assert!(read.config.admin_key.is_none() && read.config.key.is_some() && read.config.tls.is_some());
    let warned: Vec<&str> = read.warnings.iter().map(|warning| warning.key.as_str()).collect();
    let absent = ["server.tls.certificate", "access.admin_key", "store.pepper", "prices.file"];
    assert_eq!(warned, absent, "files that are not on this machine");
}

/// Keys of the schema that no table of a document contains. `values`: the document's values in that place.
fn left_out(schema: &Value, values: &[&Value], at: &str, found: &mut Vec<String>) {
    let keys = schema["properties"].as_object();
    // A table that allows one of several forms.
    let one_of = [
        &["env", "file"][..],
        &["application_default", "command", "credentials_file", "env", "file", "oauth", "sigv4", "ttl"],
        &[
            "answer",
            "count_tokens",
            "embeddings",
            "images",
            "moderations",
            "rerank",
            "speech",
            "stream",
            "transcriptions",
            "translations",
            "videos",
        ],
        &["header", "prefix", "query"],
    ];
    let is_choice = keys.is_some_and(|keys| {
        let mut names: Vec<&str> = keys.keys().map(String::as_str).collect();
        names.sort_unstable();
        one_of.contains(&names.as_slice())
    });
    for (name, key) in keys.into_iter().flatten().filter(|_| !is_choice) {
        let at = format!("{at}.{name}");
        let held: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if held.is_empty() {
            found.push(at);
            continue;
        }
        left_out(key, &held, &at, found);
        let items: Vec<&Value> = held.iter().filter_map(|held| held.as_array()).flatten().collect();
        left_out(&key["items"], &items, &at, found);
        let entries: Vec<&Value> =
            held.iter().filter_map(|held| held.as_object()).flat_map(serde_json::Map::values).collect();
        left_out(&key["additionalProperties"], &entries, &at, found);
    }
}

#[test]
fn starting_file_contains_every_schema_key() {
    let text = starting_file(true);
    let document = toml::de::DeTable::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut found = Vec::new();
    left_out(schema(), &[&table(document.get_ref())], "", &mut found);
    assert_eq!(found, [""; 0]);
}
