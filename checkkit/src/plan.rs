//! The cells of a report, in their fixed order, and which of them run.

use gatewright::report::{AgentMode, CheckId};

use crate::generated::options::Options;

/// One cell: a check and a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCell {
    /// The check.
    pub id: CheckId,
    /// The model under test; `None` for the check of the model list.
    pub model: Option<String>,
    /// Why the cell is not run, as its `reason` in the report; `None` if it is run.
    pub skipped: Option<&'static str>,
}

pub(crate) const FILTERED: &str = "filtered: left out by the selection of checks";
const NOT_FULL: &str = "not_full: runs on the first model only unless the run is full";
const AGENT_SKIPPED: &str = "agent_mode: skipped";
const AGENT_ONE_MODEL: &str = "agent_mode: one-model runs the agent on the first model only";
pub(crate) const NO_LIST: &str = "dependency_failed: models_endpoint gave no list of models";
pub(crate) const LIST_NOT_SELECTED: &str = "dependency_failed: models_endpoint was not run";
const NOT_SERVED: &str = "dependency_failed: models_endpoint lists the model without the responses protocol";
pub(crate) const ABORTED: &str = "aborted: the run was interrupted";

/// The cells: the model list first, then for each model the other five checks in the order of 2.12. `served`: whether the
/// responses protocol serves a model, as far as its list says.
pub(crate) fn plan(options: &Options, models: &[String], served: impl Fn(&str) -> bool) -> Vec<PlannedCell> {
    let [list, per_model @ ..] = CheckId::ALL;
    let mut cells = vec![PlannedCell { id: list, model: None, skipped: skipped(options, list, 0) }];
    for (index, model) in models.iter().enumerate() {
        let unserved = (!served(model)).then_some(NOT_SERVED);
        cells.extend(per_model.iter().map(|id| {
            // Coding agents use the responses protocol, too.
            let unserved = unserved.filter(|_| selected(options, *id) && *id != CheckId::ModelAccess);
            let skipped = unserved.or_else(|| skipped(options, *id, index));
            PlannedCell { id: *id, model: Some(model.clone()), skipped }
        }));
    }
    cells
}

fn selected(options: &Options, id: CheckId) -> bool {
    (options.only.is_empty() || options.only.contains(&id)) && !options.skip.contains(&id)
}

fn skipped(options: &Options, id: CheckId, model_index: usize) -> Option<&'static str> {
    if !selected(options, id) {
        return Some(FILTERED);
    }
    match id {
        CheckId::ModelAccess if !selected(options, CheckId::ModelsEndpoint) => Some(LIST_NOT_SELECTED),
        CheckId::ResponsesStream | CheckId::ResponsesFunctionTool if !options.full && model_index > 0 => {
            Some(NOT_FULL)
        }
        CheckId::AgentCliSmoke => match options.agent_mode {
            AgentMode::Skipped => Some(AGENT_SKIPPED),
            AgentMode::OneModel if model_index > 0 => Some(AGENT_ONE_MODEL),
            AgentMode::OneModel | AgentMode::AllModels => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gatewright::report::Check;

    use super::*;

    #[test]
    fn skip_reasons_in_words_omit_the_code() {
        for reason in [
            FILTERED,
            NOT_FULL,
            AGENT_SKIPPED,
            AGENT_ONE_MODEL,
            NO_LIST,
            LIST_NOT_SELECTED,
            NOT_SERVED,
            ABORTED,
        ] {
            let (code, _) = reason.split_once(':').expect("a code");
            let words = Check::skipped(CheckId::ModelAccess, None, reason).in_words().expect("a reason");
            assert!(!words.contains(code) && !words.contains(':'), "{reason}: {words}");
        }
    }
}
