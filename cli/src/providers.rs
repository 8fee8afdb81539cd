//! `gatewright providers`: lists the providers that upstreams may name, and shows one.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use clap::Args;
use gatewright_gateway::{ModelKind, Preset, preset, presets};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct ProvidersArguments {
    /// Provider to show, as a configuration fragment
    name: Option<String>,
    /// Print JSON: an array of all providers, or an object for one
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ProvidersArguments) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match (&arguments.name, arguments.json) {
        (None, false) => table::write(&mut out, &rows(), 0..0)?,
        (None, true) => write_json(&mut out, &presets().iter().map(object).collect())?,
        (Some(name), is_json) => {
            let preset = preset(name).map_err(|why| Failure::Usage(format!("provider {name:?}: {why}")))?;
            if is_json {
                write_json(&mut out, &object(preset))?;
            } else {
                write_shown(&mut out, preset)?;
            }
        }
    }
    out.flush()?;
    Ok(0)
}

fn write_json(out: &mut impl io::Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string_pretty(value).expect("plain values"))
}

/// Name, kind, variables of the key and URL; a dash if there is none.
fn rows() -> Vec<[String; 4]> {
    let heads = ["PROVIDER", "KIND", "KEY", "BASE URL"].map(str::to_owned);
    let row = |preset: &Preset| {
        let variables = match preset.key_variables() {
            [] => "-".to_owned(),
            variables => variables.join(", "),
        };
        let base_url = preset.base_url().unwrap_or("-").to_owned();
        [preset.name.to_owned(), preset.kind().name().to_owned(), variables, base_url]
    };
    std::iter::once(heads).chain(presets().iter().map(row)).collect()
}

fn object(preset: &Preset) -> Value {
    json!({
        "name": preset.name,
        "title": preset.title,
        "kind": preset.kind().name(),
        "base_url": preset.base_url(),
        "example_base_url": preset.example_base_url,
        "key_variables": preset.key_variables(),
        "start": preset.start,
        "own_models": preset.own_models,
        "lists_models": preset.lists_models,
        "upstream": preset.upstream(),
        "models": preset.models,
        "embedding_models": preset.embedding_models,
        "rerank_models": preset.rerank_models,
        "moderation_models": preset.moderation_models,
        "image_models": preset.image_models,
        "video_models": preset.video_models,
        "speech_models": preset.speech_models,
        "transcription_models": preset.transcription_models,
        "notes": preset.notes,
        "unconfirmed": preset.unconfirmed(),
        "sources": preset.sources.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}

/// Writes the settings of `provider = "NAME"`, to copy and change, with the provider's notes as comments.
fn write_shown(out: &mut impl io::Write, preset: &Preset) -> io::Result<()> {
    let name = preset.name;
    let base_url = preset.example_base_url.as_ref().map(|url| format!("base_url = \"{url}\"\n"));
    let base_url = base_url.unwrap_or_default();
    writeln!(out, "# {}. In a configuration file, these lines are short for the ones below:", preset.title)?;
    for line in format!("[upstreams.{name}]\nprovider = \"{name}\"\n{base_url}").lines() {
        writeln!(out, "#   {line}")?;
    }
    writeln!(out, "#")?;
    for note in &preset.notes {
        writeln!(out, "# - {note}")?;
    }
    if let Some(start) = &preset.start {
        writeln!(out, "# - `{start}` starts it.")?;
    }
    for (key, page) in &preset.sources {
        writeln!(out, "# {key}: {page}")?;
    }
    let unconfirmed = preset.unconfirmed();
    if !unconfirmed.is_empty() {
        writeln!(out, "# not documented on any page: {}", unconfirmed.join(", "))?;
    }
    write!(out, "\n{}{base_url}", preset.upstream())?;
    let mut shown = Vec::new();
    for (kind, model) in preset.all_models() {
        // One of each kind.
        if shown.contains(&kind) {
            continue;
        }
        shown.push(kind);
        let kind = match kind {
            ModelKind::Text => String::new(),
            kind => format!("kind = \"{}\"\n", kind.name()),
        };
        writeln!(out, "\n[models.\"{model}\"]\n{kind}targets = [{{ upstream = \"{name}\" }}]")?;
    }
    Ok(())
}
