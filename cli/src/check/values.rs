//! Parses flags of `gatewright check` whose values have a special form.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use gatewright::did_you_mean::suggestion;
use gatewright::report::{AgentMode, CheckId};
use gatewright_checkkit::ProbedProtocol;

use crate::exit::Failure;

/// The name of all protocols.
const ALL_PROTOCOLS: &str = "all";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    Skipped,
    OneModel,
    AllModels,
}

/// The protocols of `--protocols`, in the order of the document.
///
/// Errors: a name that is neither one of them nor `all`.
pub(crate) fn protocols(names: &[String]) -> Result<Vec<ProbedProtocol>, Failure> {
    let known = ProbedProtocol::ALL.map(ProbedProtocol::name);
    if let Some(other) = names.iter().find(|name| *name != ALL_PROTOCOLS && !known.contains(&name.as_str())) {
        let offer = suggestion(other, known);
        let all = known.join(", ");
        return Err(Failure::Usage(format!(
            "--protocols: {other:?} is not one of {all} and {ALL_PROTOCOLS}{offer}"
        )));
    }
    let is_all = names.iter().any(|name| name == ALL_PROTOCOLS);
    let is_chosen = |protocol: &ProbedProtocol| is_all || names.iter().any(|name| name == protocol.name());
    Ok(ProbedProtocol::ALL.into_iter().filter(is_chosen).collect())
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
