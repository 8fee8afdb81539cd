//! The files that contain the version, because cargo, npm, helm or kustomize read it there. Everything else takes it from one of
//! them: the wheel and the program from the workspace, the addon from its package.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use semver::Version;

/// A version that is never released: the fuzz targets'.
const NEVER_RELEASED: &str = "0.0.0";

struct VersionFile {
    path: &'static str,
    /// Where the file's text contains the version.
    spots: fn(&str) -> Vec<Range<usize>>,
}

/// The others are compared with the first.
const PLACES: [VersionFile; 8] = [
    VersionFile { path: "Cargo.toml", spots: manifest },
    VersionFile { path: "Cargo.lock", spots: lock },
    VersionFile { path: "fuzz/Cargo.lock", spots: lock },
    VersionFile { path: "bindings-node/package.json", spots: package },
    VersionFile { path: "bindings-node/package-lock.json", spots: package_lock },
    VersionFile { path: "bindings-python/pyproject.toml", spots: server_of_wheel },
    VersionFile { path: "deploy/helm/Chart.yaml", spots: deployed },
    VersionFile { path: "deploy/kubernetes/kustomization.yaml", spots: deployed },
];

/// The version that all places agree on.
pub(super) fn version(root: &Path) -> Result<Version> {
    let mut first: Option<Version> = None;
    for place in &PLACES {
        let text = read(root, place)?;
        for spot in (place.spots)(&text) {
            let found = text[spot.clone()].parse().with_context(|| format!("{}: its version", place.path))?;
            let version = first.get_or_insert_with(|| Version::clone(&found));
            if *version != found {
                let line = text[..spot.start].matches('\n').count() + 1;
                bail!("{}:{line}: the version is {found}, and that of the workspace {version}", place.path);
            }
        }
    }
    first.with_context(|| format!("{} has no version", PLACES[0].path))
}

/// The texts of all files with a new version.
pub(super) fn with_version(root: &Path, version: &Version) -> Result<Vec<(&'static str, String)>> {
    let mut files = Vec::new();
    for place in &PLACES {
        let mut text = read(root, place)?;
        for spot in (place.spots)(&text).into_iter().rev() {
            text.replace_range(spot, &version.to_string());
        }
        files.push((place.path, text));
    }
    Ok(files)
}

fn read(root: &Path, place: &VersionFile) -> Result<String> {
    let text = std::fs::read_to_string(root.join(place.path))
        .with_context(|| format!("cannot read {}", place.path))?;
    if (place.spots)(&text).is_empty() {
        bail!("{} has no version where it should; see xtask/src/release/places.rs", place.path);
    }
    Ok(text)
}

/// `version` of the workspace, and of its crates as dependencies of each other.
fn manifest(text: &str) -> Vec<Range<usize>> {
    let mut section = "";
    let mut spots = Vec::new();
    for (start, line) in lines(text) {
        if line.starts_with('[') {
            section = line;
        }
        let of_ours = match section {
            "[workspace.package]" => line.starts_with("version = "),
            "[workspace.dependencies]" => line.contains("path = "),
            _ => false,
        };
        if of_ours {
            spots.extend(quoted(line, "version = ").map(|spot| start + spot.start..start + spot.end));
        }
    }
    spots
}

/// Packages without a source belong to the checkout.
fn lock(text: &str) -> Vec<Range<usize>> {
    let mut spots = Vec::new();
    let mut start = 0;
    for block in text.split_inclusive("\n\n") {
        if block.starts_with("[[package]]\n")
            && !block.contains("\nsource = ")
            && let Some(spot) = quoted(block, "\nversion = ")
            && block[spot.clone()] != *NEVER_RELEASED
        {
            spots.push(start + spot.start..start + spot.end);
        }
        start += block.len();
    }
    spots
}

fn package(text: &str) -> Vec<Range<usize>> {
    quoted(text, "\n  \"version\": ").into_iter().collect()
}

/// The wheel's extra installs the server of the same version.
fn server_of_wheel(text: &str) -> Vec<Range<usize>> {
    let Some((before, rest)) = text.split_once("\"gatewright-server==") else { return Vec::new() };
    let start = before.len() + "\"gatewright-server==".len();
    rest.find('"').map(|length| start..start + length).into_iter().collect()
}

/// The version of a chart and of its program, and the tag of the manifests' image.
fn deployed(text: &str) -> Vec<Range<usize>> {
    const NAMES: [&str; 3] = ["version: ", "appVersion: ", "newTag: "];
    let spot = |(start, line): (usize, &str)| {
        let value = NAMES.iter().find_map(|name| line.trim_start().strip_prefix(name))?;
        let end = start + line.len();
        Some(end - value.len()..end)
    };
    lines(text).filter_map(spot).collect()
}

/// The package's own version is at the top, and in the first of the packages, whose path is "".
fn package_lock(text: &str) -> Vec<Range<usize>> {
    let own = text.find("\n    \"\": {").and_then(|begin| {
        let end = begin + text[begin..].find("\n    }")?;
        let spot = quoted(&text[begin..end], "\n      \"version\": ")?;
        Some(begin + spot.start..begin + spot.end)
    });
    package(text).into_iter().chain(own).collect()
}

/// The text in quotation marks after `key`.
fn quoted(text: &str, key: &str) -> Option<Range<usize>> {
    let start = text.find(key)? + key.len() + 1;
    let length = text[start..].find('"')?;
    Some(start..start + length)
}

/// Lines with their starting positions.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let place = start;
        start += line.len();
        (place, line.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    fn found(spots: fn(&str) -> Vec<Range<usize>>, text: &str) -> Vec<&str> {
        spots(text).into_iter().map(|spot| &text[spot]).collect()
    }

    #[test]
    fn every_version_in_the_tree_matches_the_workspace() {
        assert_eq!(version(&root()).expect("the places agree").to_string(), env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn only_our_versions_in_a_manifest_are_found() {
        let text = "[workspace.package]\nversion = \"1.2.3\"\nrust-version = \"1.95\"\n\n[workspace.dependencies]\n\
                    gatewright = { path = \"core\", version = \"1.2.3\" }\nserde = { version = \"1\" }\n";
        assert_eq!(found(manifest, text), ["1.2.3", "1.2.3"]);
    }

    #[test]
    fn only_local_packages_in_a_cargo_lock_are_found() {
        let text = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"theirs\"\n\
                    version = \"1.2.3\"\nsource = \"registry\"\n\n[[package]]\nname = \"fuzz\"\nversion = \"0.0.0\"\n";
        assert_eq!(found(lock, text), ["1.2.3"]);
    }

    #[test]
    fn chart_versions_and_image_tags_are_found_but_not_cluster_versions() {
        let text = "apiVersion: v2\nversion: 1.2.3\nappVersion: 1.2.3\nkubeVersion: \">=1.31.0-0\"\n    newTag: 1.2.3\n";
        assert_eq!(found(deployed, text), ["1.2.3"; 3]);
    }

    #[test]
    fn only_the_root_package_in_an_npm_lock_is_found() {
        let text = "{\n  \"name\": \"ours\",\n  \"version\": \"1.2.3\",\n  \"packages\": {\n    \"\": {\n      \"version\": \
                    \"1.2.3\"\n    },\n    \"node_modules/theirs\": {\n      \"version\": \"9.9.9\"\n    }\n  }\n}\n";
        assert_eq!(found(package_lock, text), ["1.2.3", "1.2.3"]);
    }
}
