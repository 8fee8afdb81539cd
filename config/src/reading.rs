//! Reads a configuration file: TOML, then the schema, then the rules that no schema can express. Reports all problems at
//! once.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::Value;
use toml::de::DeTable;

use super::file::File;
use super::log::Log;
use super::presets;
use super::problem::{Problem, Problems};
use super::resolve::ConfigResolver;
use super::schema;
use super::secret::{Absent, Variables};
use super::sharing::{self, Sharing};
use super::source_map::{self, SourceMap, line_and_column};
use super::toml_as_json::table;
use crate::Config;

/// Maximum size of a configuration file, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum number of violations that are collected.
const MAX_SETTINGS: usize = 200;

/// Which part of a configuration a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind<'s> {
    Whole,
    /// The part that gateways share.
    Shared(&'s Sharing),
}

/// A configuration file that was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Its settings, applied to the defaults.
    pub config: Config,
    /// Its log settings.
    pub log: Log,
    /// Possible mistakes.
    pub warnings: Vec<Problem>,
    /// The models without a price, if some have one, and the consequence.
    pub unpriced: Option<Problem>,
    /// Whether the file is completely empty, without even a comment: its writer may not have finished.
    pub is_blank: bool,
    /// The file itself and those it refers to: keys and certificates.
    pub files: Vec<PathBuf>,
}

impl ConfigFile {
    /// Reads a file and the secrets it refers to. Errors: all problems in it.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        read(path, |name| std::env::var_os(name), Absent::IsWrong)
    }

    /// The same, but secrets and certificates missing on this machine are warnings. The result is for checks and
    /// incomplete.
    pub fn check(path: &Path) -> Result<Self, Problems> {
        read(path, |name| std::env::var_os(name), Absent::IsWarned)
    }

    /// Reads a text that `name` stands for in messages. Errors: all problems, with their positions.
    pub fn of_text(text: &str, name: &str) -> Result<Self, Problems> {
        let variables: Variables = |name| std::env::var_os(name);
        parse(text, name, Path::new(""), variables, Absent::IsWrong, DocumentKind::Whole)
    }
}

fn read(path: &Path, variables: Variables, absent: Absent) -> Result<ConfigFile, Problems> {
    let name = path.display().to_string();
    let unreadable = |why: String| {
        let message = format!("cannot be read: {why}");
        Problems::new(vec![Problem { file: name.clone(), place: None, key: String::new(), message }])
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read = parse(&text, &name, folder, variables, absent, DocumentKind::Whole)?;
    read.files.insert(0, path.to_owned());
    Ok(read)
}

/// Reads a text as a file without a location: secrets in files are treated as missing. Errors: all problems, with
/// their positions.
pub fn read_text(
    text: &str,
    variables: fn(&str) -> Option<std::ffi::OsString>,
) -> Result<ConfigFile, Problems> {
    parse(text, "gatewright.toml", Path::new("/nowhere"), variables, Absent::IsWarned, DocumentKind::Whole)
}

/// Parses a file's text. `name`: its name in messages. `folder`: the base of relative paths.
pub(super) fn parse(
    text: &str,
    name: &str,
    folder: &Path,
    variables: Variables,
    absent: Absent,
    part: DocumentKind<'_>,
) -> Result<ConfigFile, Problems> {
    let problem = |place: (usize, usize), key: &source_map::Path, message: String| Problem {
        file: name.to_owned(),
        place: Some(place),
        key: key.to_string(),
        message,
    };
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problems = errors.iter().take(MAX_SETTINGS).map(|error| {
            let place = line_and_column(text, &error.span().unwrap_or_default());
            problem(place, &source_map::Path::default(), error.message().to_owned())
        });
        return Err(Problems::new(problems.collect()));
    }
    let mut document = table(root.get_ref());
    let places = SourceMap::new(text, root);
    let mut broken: Vec<Problem> = schema::violations(&document, MAX_SETTINGS)
        .into_iter()
        .map(|broken| {
            let place = if broken.is_key { places.of_key(&broken.path) } else { places.of(&broken.path) };
            problem(place, &broken.path, broken.message)
        })
        .collect();
    if let DocumentKind::Shared(_) = part {
        for (path, message) in not_shared(&document) {
            broken.push(problem(places.of_key(&path), &path, message));
        }
    }
    // After the schema check, which must see only the contents of the file itself.
    for (path, message) in presets::fill(&mut document) {
        broken.push(problem(places.of(&path), &path, message));
    }
    if !broken.is_empty() {
        return Err(Problems::new(broken));
    }
    // Everything the schema allows has these types, so this fails only if the two differ.
    let file = File::deserialize(document).map_err(|error| {
        Problems::new(vec![problem((1, 1), &source_map::Path::default(), error.to_string())])
    })?;
    let mut settling = ConfigResolver::new(folder, variables, absent);
    if let DocumentKind::Shared(sharing) = part {
        settling.sharing = Some(sharing);
    }
    let (config, log) = settling.settle(file);
    let located = |notes: Vec<(source_map::Path, String)>| -> Vec<Problem> {
        notes.into_iter().map(|(path, message)| problem(places.of(&path), &path, message)).collect()
    };
    if !settling.wrong.is_empty() || settling.wrong_prices.is_some() {
        let problems = Problems::new(located(settling.wrong)).and(settling.wrong_prices);
        return Err(problems.naming(settling.files));
    }
    let unpriced = settling.unpriced.map(|message| (source_map::Path::default().to("models"), message));
    let unpriced = located(unpriced.into_iter().collect()).pop();
    let (warnings, is_blank) = (located(settling.warnings), text.trim().is_empty());
    Ok(ConfigFile { config, log, warnings, unpriced, is_blank, files: settling.files })
}

/// Problems of a shared document: keys that belong in each gateway's own file, or no models at all.
fn not_shared(document: &Value) -> Vec<(source_map::Path, String)> {
    let known = &schema::schema()["properties"];
    let of_each = document.as_object().into_iter().flatten().map(|(name, _)| name);
    // Unknown keys have already been reported.
    let of_each =
        of_each.filter(|name| !sharing::TABLES.contains(&name.as_str()) && known.get(name).is_some());
    let mut found: Vec<_> = of_each
        .map(|name| {
            let message = "is not shared: keep it in each gateway's own file; only upstreams, families and models are shared";
            (source_map::Path::default().to(name.as_str()), message.to_owned())
        })
        .collect();
    if document.get("models").is_none() && document.get("upstreams").is_none() {
        found.push((
            source_map::Path::default(),
            "no model is configured: add [models.ID] with targets".to_owned(),
        ));
    }
    found
}
