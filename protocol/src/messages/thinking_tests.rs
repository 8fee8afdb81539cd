//! How much thinking is requested.

use serde_json::{Value, json};

use crate::Defaults;
use crate::capabilities::Thinking;
use crate::conversation::Protocol;

/// What a request of another protocol turns into: its thinking, its output configuration, its limit, and what is lost.
fn translated(source: Protocol, request: Value, thinking: Thinking) -> (Value, Value, Value, Vec<String>) {
    let conversation = source.request_in(request, "m", false).expect("a request");
    let defaults = Defaults { max_tokens: 1000, thinking, ..Defaults::default() };
    let mut outgoing = Protocol::Messages.request_out(&conversation, defaults);
    let mut take = |name: &str| outgoing.body[name].take();
    let (thinking, config, limit) = (take("thinking"), take("output_config"), take("max_tokens"));
    (thinking, config, limit, outgoing.dropped.into_iter().map(Into::into).collect())
}

fn by_effort(effort: &str, thinking: Thinking) -> (Value, Value, Value, Vec<String>) {
    let messages = json!([{ "role": "user", "content": "x" }]);
    translated(Protocol::Chat, json!({ "messages": messages, "reasoning_effort": effort }), thinking)
}

#[test]
fn effort_becomes_a_budget_or_stays_an_effort_by_model() {
    let budget = json!({ "type": "enabled", "budget_tokens": 8192 });
    let (none, adaptive) = (Vec::<String>::new(), json!({ "type": "adaptive", "display": "summarized" }));
    assert_eq!(
        by_effort("medium", Thinking::Budget),
        (budget, Value::Null, json!(1000 + 8192), none.clone())
    );
    for (effort, word, tokens) in [
        ("minimal", "low", 512),
        ("medium", "medium", 8192),
        ("high", "high", 24_576),
        ("xhigh", "xhigh", 32_768),
    ] {
        let config = json!({ "effort": word });
        let expected = (adaptive.clone(), config, json!(1000 + tokens), none.clone());
        assert_eq!(by_effort(effort, Thinking::Adaptive), expected, "{effort}");
    }
}

#[test]
fn adaptive_model_ignores_effort_none_and_reports_unknown_effort() {
    let nothing = || (Value::Null, Value::Null, json!(1000));
    let (thinking, config, limit, lost) = by_effort("none", Thinking::Adaptive);
    assert_eq!((thinking, config, limit), nothing());
    assert!(lost.is_empty(), "{lost:?}");
    let (thinking, config, limit, lost) = by_effort("a word of tomorrow", Thinking::Adaptive);
    assert_eq!((thinking, config, limit), nothing());
    assert_eq!(lost, ["/reasoning_effort"]);
}

#[test]
fn token_budget_becomes_an_effort_for_adaptive_models() {
    let request_with = |config: Value| {
        let contents = json!([{ "parts": [{ "text": "x" }] }]);
        json!({ "contents": contents, "generationConfig": { "thinkingConfig": config } })
    };
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    for (budget, config) in [(9000, json!({ "effort": "medium" })), (-1, Value::Null)] {
        let request = request_with(json!({ "thinkingBudget": budget }));
        let (thinking, written, _, lost) = translated(Protocol::Native, request, Thinking::Adaptive);
        assert_eq!((thinking, written), (adaptive.clone(), config), "{budget}");
        assert!(lost.is_empty(), "{lost:?}");
    }
    // Budget and effort level differ only for a model that takes one of them.
    let both = request_with(json!({ "thinkingBudget": 9000, "thinkingLevel": "high" }));
    let (thinking, _, _, lost) = translated(Protocol::Native, both.clone(), Thinking::Budget);
    assert_eq!(thinking["budget_tokens"], 9000);
    assert_eq!(lost, ["/generationConfig/thinkingConfig/thinkingLevel"]);
    let (_, config, _, lost) = translated(Protocol::Native, both, Thinking::Adaptive);
    assert_eq!((config, lost.len()), (json!({ "effort": "high" }), 0));
}

#[test]
fn thoughts_of_an_adaptive_model_are_shown_unless_the_client_wants_none() {
    for (summary, display) in [("auto", json!("summarized")), ("none", Value::Null)] {
        let request = json!({ "input": "x", "reasoning": { "effort": "high", "summary": summary } });
        let (thinking, ..) = translated(Protocol::Responses, request, Thinking::Adaptive);
        assert_eq!((&thinking["type"], &thinking["display"]), (&json!("adaptive"), &display), "{summary}");
    }
}

#[test]
fn forced_tool_call_takes_precedence_over_thinking() {
    let request = json!({
        "messages": [{ "role": "user", "content": "x" }], "reasoning_effort": "high", "tool_choice": "required",
        "tools": [{ "type": "function", "function": { "name": "f" } }],
    });
    for way in [Thinking::Budget, Thinking::Adaptive] {
        let (thinking, config, _, lost) = translated(Protocol::Chat, request.clone(), way);
        assert_eq!((thinking, config), (Value::Null, Value::Null), "{way:?}");
        assert_eq!(lost, ["/reasoning_effort"], "{way:?}");
    }
}

#[test]
fn prefilled_answer_takes_precedence_over_thinking() {
    let user = json!({ "role": "user", "content": "x" });
    let started = json!({ "role": "assistant", "content": "y" });
    let blank = json!({ "role": "user", "content": " " });
    for instructions in
        [json!({ "role": "system", "content": "z" }), json!({ "role": "developer", "content": "z" })]
    {
        for messages in [
            vec![user.clone(), started.clone()],
            vec![user.clone(), started.clone(), instructions.clone(), blank.clone()],
        ] {
            let request = json!({ "messages": messages, "reasoning_effort": "high" });
            for way in [Thinking::Budget, Thinking::Adaptive] {
                let (thinking, _, _, lost) = translated(Protocol::Chat, request.clone(), way);
                assert_eq!(thinking, Value::Null, "{way:?}: {request}");
                assert!(lost.contains(&"/reasoning_effort".to_owned()), "{way:?}: {lost:?}");
            }
        }
    }
}
