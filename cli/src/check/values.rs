//! Parses flags of `gatewright check` whose values have a special form.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use gatewright::report::{AgentMode, CheckId};
use gatewright_checkkit::ProbedProtocol;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    Skipped,
    OneModel,
    AllModels,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProtocolChoice {
    Chat,
    Messages,
    Native,
    All,
}

pub(crate) fn protocols(chosen: &[ProtocolChoice]) -> Vec<ProbedProtocol> {
    let named = |choice: &ProtocolChoice| match choice {
        ProtocolChoice::Chat => vec![ProbedProtocol::Chat],
        ProtocolChoice::Messages => vec![ProbedProtocol::Messages],
        ProtocolChoice::Native => vec![ProbedProtocol::Native],
        ProtocolChoice::All => ProbedProtocol::ALL.to_vec(),
    };
    chosen.iter().flat_map(named).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnnotationsFor {
    Github,
}

impl From<Mode> for AgentMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Skipped => Self::Skipped,
            Mode::OneModel => Self::OneModel,
            Mode::AllModels => Self::AllModels,
        }
    }
}

pub(crate) fn check_id() -> impl clap::builder::TypedValueParser<Value = CheckId> {
    PossibleValuesParser::new(CheckId::ALL.map(CheckId::name)).map(|name| {
        let known = CheckId::ALL.into_iter().find(|id| id.name() == name);
        known.expect("the parser lets none but these through")
    })
}

/// A time limit. Refuses only values that are not numbers of its type; the check kit validates the bounds.
pub(crate) fn milliseconds<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number of milliseconds from {MIN} to {MAX}"))
}
