//! The six checks of section 2.12, one file each.

mod agent_cli_smoke;
mod context;
mod model_access;
mod models_endpoint;
mod responses_function_tool;
mod responses_stream;
mod responses_text;

use gatewright::report::CheckId;

pub(crate) use self::context::{Context, exchange, json_exchange, prompt};

use crate::cell::Cell;
use crate::listed_model::ListedModel;

/// The result of a check.
pub(crate) struct Checked {
    pub(crate) cell: Cell,
    /// The models, from the check of the model list.
    pub(crate) listed: Option<Vec<ListedModel>>,
}

/// Runs one check. If it needs a model, the model is set.
pub(crate) async fn run(context: &Context<'_>, id: CheckId, model: Option<&str>) -> Checked {
    let mut cell = Cell::new(id, model);
    let model = model.unwrap_or_default();
    let mut listed = None;
    match id {
        CheckId::ModelsEndpoint => listed = models_endpoint::check(context, &mut cell).await,
        CheckId::ModelAccess => model_access::check(context, &mut cell, model),
        CheckId::ResponsesText => responses_text::check(context, &mut cell, model).await,
        CheckId::ResponsesStream => responses_stream::check(context, &mut cell, model).await,
        CheckId::ResponsesFunctionTool => responses_function_tool::check(context, &mut cell, model).await,
        CheckId::AgentCliSmoke => agent_cli_smoke::check(context, &mut cell, model).await,
    }
    Checked { cell, listed }
}
