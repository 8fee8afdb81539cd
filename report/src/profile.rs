//! Profiles: the kit name and model ids of a deployment, which replace those of section 2.12.
//!
//! The file of `--profile`, for the check kit and the validator alike: `{"kit_name": "our-kit", "models": ["a", "b"]}`;
//! both members are optional.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::finding::quoted;
use crate::rules::SCHEMA;

/// Maximum number of model ids in a profile: a report has a cell for each model and check.
///
/// ```
/// use gatewright_report::{MAX_PROFILE_MODELS, Profile};
///
/// let models: Vec<_> = (0..=MAX_PROFILE_MODELS).map(|number| format!("\"model-{number}\"")).collect();
/// let error = Profile::read(format!(r#"{{ "models": [{}] }}"#, models.join(", ")).as_bytes()).unwrap_err();
/// assert_eq!(error, "/models has 1001 ids, more than 1000");
/// ```
pub const MAX_PROFILE_MODELS: usize = 1000;

static STANDARD: LazyLock<Profile> = LazyLock::new(|| {
    let schema: Json = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
    let text = |value: &Json| value.as_str().expect("the embedded schema names kit and models").to_owned();
    let models = schema["$defs"]["model_id"]["enum"].as_array().expect("the embedded schema lists models");
    Profile {
        kit_name: Some(text(&schema["$defs"]["kit"]["properties"]["name"]["const"])),
        models: models.iter().map(text).collect(),
    }
});

/// The kit name and tested models of a deployment's reports, instead of those of the specification.
///
/// ```
/// use gatewright_report::{Profile, Validator};
///
/// let profile = Profile::read(br#"{ "kit_name": "our-kit", "models": ["our-model"] }"#)?;
/// assert_eq!(profile.models(), ["our-model"]);
/// let validator = Validator::builder().profile(&profile).build();
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the kit; `None` for that of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kit_name: Option<String>,
    /// Ids of the tested models, in order; empty for those of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

impl Profile {
    /// Parses the JSON of a profile.
    ///
    /// Errors, without the file name: not a JSON object, an unknown member, an empty list of models, an empty or
    /// repeated id, more than [`MAX_PROFILE_MODELS`] models.
    ///
    /// ```
    /// use gatewright_report::Profile;
    ///
    /// assert_eq!(Profile::read(br#"{ "models": ["a", "b"] }"#)?.models(), ["a", "b"]);
    /// assert!(Profile::read(br#"{ "models": [] }"#).is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let no_profile = |error: serde_json::Error| format!("no profile: {error}");
        // The derived deserialiser would also accept a list of the members' values.
        if json.trim_ascii_start().starts_with(b"[") {
            serde_json::from_slice::<serde::de::IgnoredAny>(json).map_err(no_profile)?;
            return Err("no profile: it is a list, not an object".to_owned());
        }
        let profile: Self = serde_json::from_slice(json).map_err(no_profile)?;
        if profile.models.is_empty()
            && serde_json::from_slice::<Json>(json).is_ok_and(|json| !json["models"].is_null())
        {
            return Err("/models is empty: omit it to use the specification's".to_owned());
        }
        if profile.kit_name.as_deref() == Some("") {
            return Err("/kit_name is empty: omit it to use the specification's".to_owned());
        }
        if profile.models.len() > MAX_PROFILE_MODELS {
            return Err(format!("/models has {} ids, more than {MAX_PROFILE_MODELS}", profile.models.len()));
        }
        for (index, id) in profile.models.iter().enumerate() {
            if id.is_empty() {
                return Err(format!("/models/{index} is empty"));
            }
            if let Some(first) = profile.models[..index].iter().position(|other| other == id) {
                return Err(format!("/models/{index}: {} is already at /models/{first}", quoted(id)));
            }
        }
        Ok(profile)
    }

    /// The names that a report declares, if they differ from those of the specification and could be a profile.
    pub(crate) fn of_report(document: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Declared {
            kit: Kit,
            configuration: Configuration,
        }
        #[derive(Deserialize)]
        struct Kit {
            name: String,
        }
        #[derive(Deserialize)]
        struct Configuration {
            models: Vec<String>,
        }
        let Declared { kit, configuration } = serde_json::from_slice(document).ok()?;
        // A report may be about fewer models than there are.
        let is_known = configuration.models.iter().all(|model| STANDARD.models.contains(model));
        let models = if is_known { Vec::new() } else { configuration.models };
        let kit_name = Some(kit.name).filter(|name| STANDARD.kit_name.as_ref() != Some(name));
        let profile = Self { kit_name, models };
        if profile == Self::default() {
            return None;
        }
        Self::read(&serde_json::to_vec(&profile).ok()?).ok()
    }

    /// The kit's name: the profile's, or the specification's.
    ///
    /// ```
    /// use gatewright_report::Profile;
    ///
    /// assert_eq!(Profile::default().kit_name(), "gatewright-checkkit");
    /// ```
    pub fn kit_name(&self) -> &str {
        let name = self.kit_name.as_deref().or(STANDARD.kit_name.as_deref());
        name.unwrap_or_default()
    }

    /// The tested models: the profile's, or the specification's.
    ///
    /// ```
    /// use gatewright_report::Profile;
    ///
    /// assert_eq!(Profile::default().models(), ["model-sol", "model-terra", "model-luna"]);
    /// ```
    pub fn models(&self) -> &[String] {
        if self.models.is_empty() { &STANDARD.models } else { &self.models }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_profile_uses_the_specifications_names() {
        let profile = Profile::read(b"{}").expect("nothing is required");
        assert_eq!(profile, Profile::default());
        assert_eq!(profile.kit_name(), "gatewright-checkkit");
        assert_eq!(profile.models(), ["model-sol", "model-terra", "model-luna"]);
    }

    #[test]
    fn profile_sets_kit_name_and_models() {
        let profile = Profile::read(br#"{"kit_name": "our-kit", "models": ["b", "a"]}"#).expect("a profile");
        assert_eq!(
            (profile.kit_name(), profile.models()),
            ("our-kit", &["b".to_owned(), "a".to_owned()][..])
        );
    }

    #[test]
    fn invalid_profile_is_rejected_with_its_pointer() {
        for (json, message) in [
            (&br#"{"kit": "x"}"#[..], "no profile: unknown field `kit`"),
            (br#"{"kit_name": "a", "kit_name": "b"}"#, "no profile: duplicate field `kit_name`"),
            (br#"{"models": "a"}"#, "no profile: invalid type"),
            (br#"{"models": ["a", ""]}"#, "/models/1 is empty"),
            (br#"{"models": ["a", "b", "a"]}"#, "/models/2: \"a\" is already at /models/0"),
            (br#"{"kit_name": ""}"#, "/kit_name is empty"),
            (br#"{"models": []}"#, "/models is empty: omit it"),
            (b"[]", "no profile: it is a list"),
            (br#" ["our", ["model-sol"]]"#, "no profile: it is a list"),
            (b"null", "no profile: invalid type"),
            (b"[", "no profile: EOF"),
        ] {
            let error = Profile::read(json).expect_err(message);
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn profile_is_derived_from_the_names_in_a_report() {
        let report = |kit: &str, models: &str| {
            let text = format!(
                r#"{{"kit": {{"name": "{kit}"}}, "configuration": {{"models": {models}}}, "x": [1]}}"#
            );
            Profile::of_report(text.as_bytes()).map(|profile| (profile.kit_name, profile.models))
        };
        let ours = "gatewright-checkkit";
        assert_eq!(report(ours, r#"["gpt-5"]"#), Some((None, vec!["gpt-5".to_owned()])));
        assert_eq!(report("our-kit", r#"["model-luna"]"#), Some((Some("our-kit".to_owned()), Vec::new())));
        assert_eq!(report(ours, r#"["model-luna", "model-sol"]"#), None);
        for unusable in [r#"["a", "a"]"#, r#"["a", ""]"#, r#""a""#, "[1]"] {
            assert_eq!(report(ours, unusable), None, "{unusable}");
        }
    }
}
