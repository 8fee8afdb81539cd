//! How much a model thinks, in the messages protocol.

use serde_json::{Map, Value};

use crate::capabilities::Thinking;
use crate::conversation::{
    Conversation, JsonPointer, Located, Part, PartKind, Protocol, Reasoning, Role, ThinkingBudget, Thought,
    ToolChoice, Turn,
};
use crate::effort::{budget_of, effort_of};
use crate::members::{Members, RemainingFields, RequestWriter, object};
use crate::proof::{is_marked, of_maker};

/// Minimum thinking budget, in tokens.
const LEAST_TOKENS: u64 = 1024;
/// Thinking budget for models that need a number, if the client lets the model decide.
const ASSUMED_TOKENS: u64 = 8192;
/// Effort levels.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Takes the budget from a request.
pub(super) fn read(body: &mut Members, rest: &mut RemainingFields) -> Option<Located<ThinkingBudget>> {
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
            .map(|tokens| Located { value: ThinkingBudget::Tokens(tokens.value), at: tokens.at }),
        "disabled" => Some(Located::new(ThinkingBudget::Off, "/thinking")),
        _ => Some(Located::new(ThinkingBudget::Adaptive, "/thinking")),
    };
    rest.keep(thinking, &[]);
    budget
}

/// Writes the budget of a request of this protocol.
pub(super) fn write_back(
    budget: ThinkingBudget,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    writer.set(body, "thinking", words(budget), "/thinking");
}

/// Writes the budget of a request of another protocol.
pub(super) fn write_shown(
    budget: ThinkingBudget,
    reasoning: &Reasoning,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let mut words = words(budget);
    if budget == ThinkingBudget::Adaptive && shows_thoughts(reasoning) {
        words.insert("display".to_owned(), SUMMARIZED.into());
    }
    writer.set(body, "thinking", words, "/thinking");
}

/// Whether the client wants to see the thoughts of a model that decides itself how much it thinks. Newer ones omit them unless a request
/// asks for them.
pub(crate) fn shows_thoughts(reasoning: &Reasoning) -> bool {
    reasoning.summary.as_ref().is_none_or(|summary| summary.value != "none")
}

/// The display of thoughts that every model with adaptive thinking accepts.
pub(crate) const SUMMARIZED: &str = "summarized";

fn words(budget: ThinkingBudget) -> Map<String, Value> {
    match budget {
        ThinkingBudget::Off => object([("type", "disabled".into())]),
        ThinkingBudget::Adaptive => object([("type", "adaptive".into())]),
        ThinkingBudget::Tokens(tokens) => {
            object([("type", "enabled".into()), ("budget_tokens", tokens.into())])
        }
    }
}

/// The thinking settings for a request of another protocol.
#[derive(Default)]
pub(crate) struct ThinkingPlan<'a> {
    /// `None`: no thinking.
    pub(crate) budget: Option<ThinkingBudget>,
    /// The effort of a model that decides itself how much it thinks.
    pub(crate) effort: Option<&'static str>,
    /// Approximate number of thinking tokens.
    pub(crate) tokens: u64,
    /// The places of requested settings that aren't possible.
    pub(crate) lost: Vec<&'a JsonPointer>,
}

/// Decides how much the model thinks for a request of another protocol. Providers reject thinking with a forced call,
/// after a call whose thoughts are missing, before a prefilled answer, and with more tokens than the answer may have: the
/// conversation takes precedence over the requested thinking. `target`: a protocol whose models think this way.
pub(crate) fn plan(
    conversation: &Conversation,
    target: Protocol,
    max_tokens: Option<u64>,
    thinking: Thinking,
) -> ThinkingPlan<'_> {
    let Reasoning { effort, budget, .. } = &conversation.reasoning;
    let effort = effort.as_ref();
    let requested = effort.and_then(|effort| budget_of(&effort.value));
    let (requested, at, is_exact) = match (budget, effort) {
        (Some(budget), _) => (Some(budget.value), &budget.at, true),
        (None, Some(effort)) => (requested.map(of_tokens), &effort.at, false),
        (None, None) => return ThinkingPlan::default(),
    };
    // Next to a token budget, an effort level means something else.
    let other = effort.filter(|effort| budget.is_some() && thinking == Thinking::Budget && effort.at != *at);
    let mut plan = match requested {
        Some(ThinkingBudget::Off) => ThinkingPlan::default(),
        Some(requested) if can_think(conversation, target) => match thinking {
            Thinking::Budget => within(requested, max_tokens, at, is_exact),
            Thinking::Adaptive => adaptive(requested, effort.map(|effort| effort.value.as_str())),
        },
        _ => ThinkingPlan { lost: vec![at], ..ThinkingPlan::default() },
    };
    plan.lost.extend(other.map(|effort| &effort.at));
    plan
}

fn of_tokens(tokens: u64) -> ThinkingBudget {
    if tokens == 0 { ThinkingBudget::Off } else { ThinkingBudget::Tokens(tokens) }
}

/// A budget that leaves room for the answer.
fn within(
    requested: ThinkingBudget,
    max_tokens: Option<u64>,
    at: &JsonPointer,
    is_exact: bool,
) -> ThinkingPlan<'_> {
    let (tokens, is_exact) = match requested {
        ThinkingBudget::Tokens(tokens) => (tokens, is_exact),
        // "Let the model decide", for a model that needs a number.
        ThinkingBudget::Adaptive => (ASSUMED_TOKENS, false),
        ThinkingBudget::Off => return ThinkingPlan::default(),
    };
    let requested = tokens.max(LEAST_TOKENS);
    // Half of the tokens are left for the answer.
    let most =
        max_tokens.map_or(u64::MAX, |max| if is_exact && requested < max { requested } else { max / 2 });
    let tokens = requested.min(most);
    if tokens < LEAST_TOKENS {
        return ThinkingPlan { lost: vec![at], ..ThinkingPlan::default() };
    }
    let lost = if is_exact && tokens < requested { vec![at] } else { Vec::new() };
    ThinkingPlan { budget: Some(ThinkingBudget::Tokens(tokens)), tokens, lost, ..ThinkingPlan::default() }
}

/// An effort, for a model without budgets.
fn adaptive(requested: ThinkingBudget, effort: Option<&str>) -> ThinkingPlan<'static> {
    let tokens = match requested {
        ThinkingBudget::Tokens(tokens) => Some(tokens),
        ThinkingBudget::Off | ThinkingBudget::Adaptive => None,
    };
    let word = effort.or(tokens.map(effort_of));
    let effort = word.and_then(|word| match word {
        "minimal" | "low" => Some("low"),
        known => EFFORTS.into_iter().find(|word| *word == known),
    });
    let tokens = tokens.or_else(|| effort.and_then(budget_of)).unwrap_or_default();
    ThinkingPlan { budget: Some(ThinkingBudget::Adaptive), effort, tokens, lost: Vec::new() }
}

fn can_think(conversation: &Conversation, target: Protocol) -> bool {
    let is_forced = matches!(
        conversation.tool_choice.as_ref().map(|choice| &choice.value),
        Some(ToolChoice::Required | ToolChoice::Function(_) | ToolChoice::Allowed { required: true, .. })
    );
    // Instructions move to the head of the request, wherever they were, and blank texts are left out.
    let is_blank = |part: &Part| matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty());
    let mut turns = conversation.turns.iter().rev();
    let last = turns.find(|turn| {
        !matches!(turn.role, Role::System | Role::Developer) && !turn.parts.iter().all(is_blank)
    });
    let is_prefilled = last.is_some_and(|turn| turn.role == Role::Assistant);
    let mut calling = turns_of_the_last_calls(&conversation.turns)
        .filter(|turn| turn.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_))));
    let is_proven = calling.all(|turn| {
        turn.parts.iter().any(|part| match &part.kind {
            PartKind::Thought(Thought { signature: Some(proof), summary, .. }) => {
                of_maker(proof, conversation.source, target).is_some() && (!summary || is_marked(proof))
            }
            _ => false,
        })
    });
    !is_forced && !is_prefilled && is_proven
}

/// The turns since the user last spoke, if they end with tool results. User text after results shares a turn with them.
fn turns_of_the_last_calls(turns: &[Turn]) -> impl Iterator<Item = &Turn> {
    let spoken = turns.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |last| last + 1);
    let is_result = |part: &Part| matches!(part.kind, PartKind::Result(_));
    let has_results = turns[spoken..].iter().any(|turn| turn.parts.iter().any(is_result));
    let turns = if has_results { &turns[..spoken] } else { &[] };
    turns.iter().rev().take_while(|turn| turn.role != Role::User)
}
