//! The values of `--provider`: `NAME`, or `NAME=URL`; and which of their models are wanted.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use gatewright_gateway::{ModelSource, ProviderChoice, check_base_url, preset, presets};

/// Which models of the providers are wanted. `known`: `--known-models`.
pub(crate) fn models(known: bool) -> ModelSource {
    if known { ModelSource::Known } else { ModelSource::ListedAndKnown }
}

/// Parses a provider. Shells complete the names.
#[derive(Debug, Clone)]
pub(crate) struct ProviderParser;

impl ProviderParser {
    fn names() -> PossibleValuesParser {
        PossibleValuesParser::new(presets().iter().map(|preset| preset.name))
    }
}

impl TypedValueParser for ProviderParser {
    type Value = ProviderChoice;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<ProviderChoice, Error> {
        let invalid = |why: String| {
            // An address may contain a password.
            let message = format!("invalid value for '--provider <NAME[=URL]>': {why}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        };
        let (name, url) = match value.to_str().and_then(|text| text.split_once('=')) {
            Some((name, url)) => (OsStr::new(name), Some(url)),
            None => (value, None),
        };
        // Unknown names get a suggestion.
        let name = Self::names().parse_ref(command, argument, name)?;
        let preset = preset(&name).map_err(&invalid)?;
        if let Some(url) = url {
            check_base_url(url).map_err(|why| invalid(format!("the address {why}")))?;
        }
        Ok(ProviderChoice::new(preset, url.map(str::to_owned)))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // Not borrowed from a parser that ends here.
        Some(Box::new(presets().iter().map(|preset| PossibleValue::new(preset.name))))
    }
}
