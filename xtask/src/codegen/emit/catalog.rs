//! Emits the model catalog as Rust data.

use std::fmt::Write as _;

use super::header;
use crate::codegen::model::{Api, File};

const TYPES: &str = r"
/// A provider family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Family {
    /// Its id: the owner of its models in model lists.
    pub id: &'static str,
    /// For a person.
    pub title: &'static str,
    /// Wire protocols that serve its models: `chat`, `responses`, `native`.
    pub protocols: &'static [&'static str],
    /// Members whose value is our choice, in whole or in part, not the source's.
    pub ours: &'static [&'static str],
    /// Sections of the source.
    pub source: &'static str,
}

/// A model that makes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextModel {
    /// Model id.
    pub id: &'static str,
    /// Id of its family.
    pub family: &'static str,
    /// Members whose value is our choice, in whole or in part, not the source's.
    pub ours: &'static [&'static str],
    /// Sections of the source.
    pub source: &'static str,
}

/// A model that makes videos, and its limits; `None`: not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VideoModel {
    /// Model id.
    pub id: &'static str,
    /// Shortest duration in seconds.
    pub min_duration_s: Option<u32>,
    /// Longest duration in seconds.
    pub max_duration_s: Option<u32>,
    /// Values of `resolution` it takes.
    pub resolutions: &'static [&'static str],
    /// Values of `aspect_ratio` it takes.
    pub aspect_ratios: &'static [&'static str],
    /// For a person.
    pub features: &'static [&'static str],
    /// Members whose value is our choice, in whole or in part, not the source's.
    pub ours: &'static [&'static str],
    /// Sections of the source.
    pub source: &'static str,
}

/// A model that makes images, and its limits; `None`: not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageModel {
    /// Model id.
    pub id: &'static str,
    /// Values of `size` it takes; `None`: any up to the maximum.
    pub sizes: Option<&'static [&'static str]>,
    /// Largest width in pixels.
    pub max_width: u32,
    /// Largest height in pixels.
    pub max_height: u32,
    /// Largest resolution as the source writes it: width x height.
    pub max_resolution: &'static str,
    /// Most images of one request.
    pub max_n: u32,
    /// Longest prompt in characters.
    pub max_prompt_characters: Option<u32>,
    /// Whether it takes `quality`.
    pub quality: bool,
    /// Whether it takes `style`.
    pub style: bool,
    /// Whether answers in url form carry `revised_prompt`.
    pub revises_prompt: bool,
    /// For a person.
    pub features: &'static [&'static str],
    /// Members whose value is our choice, in whole or in part, not the source's.
    pub ours: &'static [&'static str],
    /// Sections of the source.
    pub source: &'static str,
}
";

/// `core/src/generated/catalog.rs`.
pub(crate) fn emit(api: &Api) -> Vec<File> {
    let catalog = &api.catalog;
    let mut code = format!(
        "// {}\n//! Model families, models and their limits, as data.\n{TYPES}",
        header("spec/catalog.json")
    );
    code.push_str("\n/// All families.\npub static FAMILIES: &[Family] = &[\n");
    for family in &catalog.families {
        _ = writeln!(
            code,
            "    Family {{\n        id: {:?},\n        title: {:?},\n        protocols: &{:?},\n        ours: &{:?},\n        source: {:?},\n    }},",
            family.id, family.title, family.protocols, family.ours, family.source
        );
    }
    code.push_str("];\n\n/// All models that make text.\npub static TEXT_MODELS: &[TextModel] = &[\n");
    for model in &catalog.text_models {
        _ = writeln!(
            code,
            "    TextModel {{\n        id: {:?},\n        family: {:?},\n        ours: &{:?},\n        source: {:?},\n    }},",
            model.id, model.family, model.ours, model.source
        );
    }
    code.push_str(
        "];\n\n/// All models that make videos (2.9).\npub static VIDEO_MODELS: &[VideoModel] = &[\n",
    );
    for model in &catalog.video_models {
        _ = writeln!(
            code,
            "    VideoModel {{\n        id: {:?},\n        min_duration_s: {:?},\n        max_duration_s: {:?},\n        resolutions: &{:?},\n        aspect_ratios: &{:?},\n        features: &{:?},\n        ours: &{:?},\n        source: {:?},\n    }},",
            model.id,
            model.min_duration_s,
            model.max_duration_s,
            model.resolutions,
            model.aspect_ratios,
            model.features,
            model.ours,
            model.source
        );
    }
    code.push_str(
        "];\n\n/// All models that make images (2.8, 2.10).\npub static IMAGE_MODELS: &[ImageModel] = &[\n",
    );
    for model in &catalog.image_models {
        let sizes = model.sizes.as_ref().map_or("None".to_owned(), |sizes| format!("Some(&{sizes:?})"));
        _ = writeln!(
            code,
            "    ImageModel {{\n        id: {:?},\n        sizes: {sizes},\n        max_width: {},\n        max_height: {},\n        max_resolution: {:?},\n        max_n: {},\n        max_prompt_characters: {:?},\n        quality: {},\n        style: {},\n        revises_prompt: {},\n        features: &{:?},\n        ours: &{:?},\n        source: {:?},\n    }},",
            model.id,
            model.max_width,
            model.max_height,
            model.max_resolution,
            model.max_n,
            model.max_prompt_characters,
            model.quality,
            model.style,
            model.revises_prompt,
            model.features,
            model.ours,
            model.source
        );
    }
    let defaults = &catalog.defaults;
    _ = write!(
        code,
        "];\n\n/// Seconds between two look-ups of a video task ({}).\npub const VIDEO_POLL_INTERVAL_S: u32 = {};\n\
         /// Seconds that the address of an image is valid ({}).\npub const IMAGE_URL_LIFETIME_S: u32 = {};\n",
        defaults.source.video_poll_interval_s,
        defaults.video_poll_interval_s,
        defaults.source.image_url_lifetime_s,
        defaults.image_url_lifetime_s,
    );
    vec![File { path: "core/src/generated/catalog.rs".to_owned(), contents: code }]
}
