//! How much a model thinks, in the messages protocol.

use serde_json::{Map, Value};

use crate::conversation::{Budget, Conversation, Given, PartKind, Place, Role, ToolChoice};
use crate::protocols::effort::budget_of;
use crate::protocols::members::{Members, Rest, Writer, object};

/// Minimum number of tokens that a model may be given to think.
const LEAST_TOKENS: u64 = 1024;

/// Takes the budget from a request.
pub(super) fn read(body: &mut Members, rest: &mut Rest) -> Option<Given<Budget>> {
    let given = body.peek("thinking");
    let is_known = match given["type"].as_str() {
        Some("enabled") => given["budget_tokens"].is_u64(),
        Some("disabled" | "adaptive") => true,
        _ => false,
    };
    if !is_known {
        return None;
    }
    let mut thinking = body.members("thinking")?;
    let kind = thinking.text("type")?;
    let budget = match kind.as_str() {
        "enabled" => thinking
            .given("budget_tokens", Members::count)
            .map(|tokens| Given { value: Budget::Tokens(tokens.value), at: tokens.at }),
        "disabled" => Some(Given::new(Budget::Off, "/thinking")),
        _ => Some(Given::new(Budget::Adaptive, "/thinking")),
    };
    rest.keep(thinking, &[]);
    budget
}

/// Writes the budget of a request of this protocol.
pub(super) fn write_back(budget: Budget, writer: &mut Writer<'_>, body: &mut Map<String, Value>) {
    writer.set(body, "thinking", words(budget), "/thinking");
}

fn words(budget: Budget) -> Map<String, Value> {
    match budget {
        Budget::Off => object([("type", "disabled".into())]),
        Budget::Adaptive => object([("type", "adaptive".into())]),
        Budget::Tokens(tokens) => object([("type", "enabled".into()), ("budget_tokens", tokens.into())]),
    }
}

/// What a request of another protocol asks for.
pub(super) struct Plan<'a> {
    /// `None`: the model does not think.
    pub(super) budget: Option<Budget>,
    /// What asked for it and is not possible.
    pub(super) lost: Option<&'a Place>,
}

/// Decides how much the model thinks for a request of another protocol. Providers refuse thinking beside a forced call,
/// after a call whose thoughts are missing, before an answer that the client began, and of more tokens than the answer may
/// have: what the client says of its conversation counts more than how much it wants the model to think.
pub(super) fn plan(conversation: &Conversation, max_tokens: Option<u64>) -> Plan<'_> {
    let reasoning = &conversation.reasoning;
    let (budget, at, is_exact) = match (&reasoning.budget, &reasoning.effort) {
        (Some(budget), _) => (Some(budget.value), &budget.at, true),
        (None, Some(effort)) => {
            let tokens = budget_of(&effort.value);
            let budget = tokens.map(|tokens| if tokens == 0 { Budget::Off } else { Budget::Tokens(tokens) });
            (budget, &effort.at, false)
        }
        (None, None) => return Plan { budget: None, lost: None },
    };
    match budget {
        Some(Budget::Off) => Plan { budget: None, lost: None },
        Some(Budget::Adaptive) if can_think(conversation) => Plan { budget, lost: None },
        Some(Budget::Tokens(tokens)) if can_think(conversation) => {
            let wanted = tokens.max(LEAST_TOKENS);
            // Half of the tokens are left for the answer.
            let most =
                max_tokens.map_or(u64::MAX, |max| if is_exact && wanted < max { wanted } else { max / 2 });
            let tokens = wanted.min(most);
            if tokens < LEAST_TOKENS {
                return Plan { budget: None, lost: Some(at) };
            }
            let lost = (is_exact && tokens < wanted).then_some(at);
            Plan { budget: Some(Budget::Tokens(tokens)), lost }
        }
        _ => Plan { budget: None, lost: Some(at) },
    }
}

fn can_think(conversation: &Conversation) -> bool {
    let is_forced = matches!(
        conversation.tool_choice.as_ref().map(|choice| &choice.value),
        Some(ToolChoice::Required | ToolChoice::Function(_) | ToolChoice::Allowed { required: true, .. })
    );
    let is_begun = conversation.turns.last().is_some_and(|turn| turn.role == Role::Assistant);
    let since = conversation.turns.iter().rev().take_while(|turn| turn.role != Role::User);
    let mut calling =
        since.filter(|turn| turn.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_))));
    let is_proven = calling.all(|turn| {
        turn.parts
            .iter()
            .any(|part| matches!(&part.kind, PartKind::Thought(thought) if thought.signature.is_some()))
    });
    !is_forced && !is_begun && is_proven
}
