//! Random requests with every kind of part, including fields of the wrong type, null and unknown ones.

pub(super) mod answers;
mod native;
mod responses;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(super) use self::native::native;
pub(super) use self::responses::responses;

/// A text that occurs only once, so it can be found again.
pub(super) fn mark() -> BoxedStrategy<Value> {
    (0..1_000_000_000_000_u64).prop_map(|number| format!("q{number:012}").into()).boxed()
}

/// One of these values.
pub(super) fn one_of(values: &[Value]) -> BoxedStrategy<Value> {
    prop::sample::select(values.to_vec()).boxed()
}

/// Any of these strategies.
pub(super) fn any_of(strategies: Vec<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
    prop::strategy::Union::new(strategies).boxed()
}

/// A list.
pub(super) fn list(item: BoxedStrategy<Value>, sizes: std::ops::Range<usize>) -> BoxedStrategy<Value> {
    vec(item, sizes).prop_map(Value::from).boxed()
}

/// An object: `always` has the fields that are always present, `maybe` those that may be missing, null or odd.
pub(super) fn object(
    always: Vec<(&'static str, BoxedStrategy<Value>)>,
    maybe: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let member = |name: &'static str, value: BoxedStrategy<Value>| {
        value.prop_map(move |value| Some((name.to_owned(), value))).boxed()
    };
    let mut members: Vec<BoxedStrategy<Option<(String, Value)>>> =
        always.into_iter().map(|(name, value)| member(name, value)).collect();
    for (name, value) in maybe {
        let odd =
            one_of(&[json!(null), json!([]), json!({}), json!(false), json!("odd"), json!({ "odd": [1] })]);
        let strategy = prop_oneof![6 => Just(None), 4 => member(name, value), 1 => member(name, odd)];
        members.push(strategy.boxed());
    }
    let unknown = mark().prop_map(|mark| Some(("a/member of ~ tomorrow".to_owned(), mark)));
    members.push(prop_oneof![9 => Just(None), 1 => unknown].boxed());
    members.prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

/// An object whose fields are all known and present.
pub(super) fn exactly(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<&str>, Vec<_>) = members.into_iter().unzip();
    let object = move |values: Vec<Value>| {
        names.iter().map(|name| (*name).to_owned()).zip(values).collect::<Map<_, _>>().into()
    };
    values.prop_map(object).boxed()
}

/// An unknown kind.
pub(super) fn tomorrow() -> BoxedStrategy<Value> {
    exactly(vec![("type", word("kind_of_tomorrow")), ("text", mark())])
}

pub(super) fn word(word: &'static str) -> BoxedStrategy<Value> {
    Just(Value::from(word)).boxed()
}

pub(super) fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

pub(super) fn number() -> BoxedStrategy<Value> {
    one_of(&[json!(0), json!(1), json!(0.25), json!(1.0), json!(7)])
}

pub(super) fn count() -> BoxedStrategy<Value> {
    (1_u64..100_000).prop_map(Value::from).boxed()
}

fn cache() -> (&'static str, BoxedStrategy<Value>) {
    ("cache_control", one_of(&[json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" })]))
}

fn call_id() -> BoxedStrategy<Value> {
    one_of(&[json!("call_1"), json!("call_2"), json!("call_3")])
}

fn schema() -> BoxedStrategy<Value> {
    exactly(vec![("type", word("object")), ("title", mark())])
}

/// A request of the chat protocol.
pub(super) fn chat() -> BoxedStrategy<Value> {
    let texts = any_of(vec![mark(), list(mark(), 0..6)]);
    object(
        vec![("model", word("m")), ("messages", list(chat_message(), 1..6))],
        vec![
            ("temperature", number()),
            ("top_p", number()),
            ("frequency_penalty", number()),
            ("presence_penalty", number()),
            ("seed", number()),
            ("max_tokens", count()),
            ("max_completion_tokens", count()),
            ("stop", texts),
            ("n", count()),
            ("logprobs", flag()),
            ("top_logprobs", one_of(&[json!(0), json!(5)])),
            ("user", mark()),
            ("metadata", exactly(vec![("a", mark())])),
            ("service_tier", any_of(vec![word("auto"), word("default"), mark()])),
            ("reasoning_effort", any_of(vec![word("none"), word("low"), word("xhigh"), mark()])),
            ("parallel_tool_calls", flag()),
            ("stream", flag()),
            ("stream_options", exactly(vec![("include_usage", flag())])),
            ("store", flag()),
            ("tools", list(chat_tool(), 1..4)),
            ("tool_choice", chat_choice()),
            ("response_format", chat_format()),
        ],
    )
}

fn chat_message() -> BoxedStrategy<Value> {
    let content = || any_of(vec![mark(), word(""), list(chat_part(), 0..4)]);
    let speaker = any_of(vec![word("system"), word("developer"), word("user")]);
    let instruction =
        object(vec![("role", speaker), ("content", content())], vec![("name", mark()), cache()]);
    let result = object(
        vec![("role", word("tool")), ("tool_call_id", call_id()), ("content", content())],
        vec![("name", word("tool"))],
    );
    let answer = object(
        vec![("role", word("assistant"))],
        vec![
            ("content", content()),
            ("refusal", mark()),
            ("reasoning_content", mark()),
            ("reasoning_details", list(chat_detail(), 1..5)),
            ("tool_calls", list(chat_call(), 1..4)),
        ],
    );
    any_of(vec![instruction, result, answer])
}

fn chat_part() -> BoxedStrategy<Value> {
    let text = object(vec![("type", word("text")), ("text", mark())], vec![cache()]);
    let url = one_of(&[json!("https://a.example/i.png"), json!("data:image/png;base64,AA==")]);
    let detail = any_of(vec![word("auto"), mark()]);
    let image = object(
        vec![
            ("type", word("image_url")),
            ("image_url", object(vec![("url", url)], vec![("detail", detail)])),
        ],
        vec![cache()],
    );
    let sound = exactly(vec![("data", word("AA==")), ("format", one_of(&[json!("wav"), json!("mp3")]))]);
    let audio = object(vec![("type", word("input_audio")), ("input_audio", sound)], vec![]);
    let data = one_of(&[
        json!("data:application/pdf;base64,AA=="),
        json!("data:text/plain;base64,YQ=="),
        json!("odd"),
    ]);
    let file = object(vec![], vec![("file_data", data), ("file_id", mark()), ("filename", mark())]);
    let file = object(vec![("type", word("file")), ("file", file)], vec![cache()]);
    let refusal = object(vec![("type", word("refusal")), ("refusal", mark())], vec![]);
    any_of(vec![text, image, audio, file, refusal, tomorrow(), word("no object")])
}

fn chat_detail() -> BoxedStrategy<Value> {
    let ids = || any_of(vec![call_id(), word("r1")]);
    let detail = |kind: &'static str, members: Vec<(&'static str, BoxedStrategy<Value>)>| {
        let own = vec![("id", ids()), ("index", count()), ("format", mark())];
        object(vec![("type", word(kind))], members.into_iter().chain(own).collect())
    };
    any_of(vec![
        detail("reasoning.text", vec![("text", mark()), ("signature", mark())]),
        detail("reasoning.summary", vec![("summary", mark())]),
        detail("reasoning.encrypted", vec![("data", mark())]),
        tomorrow(),
    ])
}

fn chat_call() -> BoxedStrategy<Value> {
    let arguments = any_of(vec![mark(), word("{\"a\": 1.5}"), word("")]);
    let function = object(vec![("name", word("tool")), ("arguments", arguments)], vec![]);
    let custom = object(vec![("name", word("free")), ("input", mark())], vec![]);
    any_of(vec![
        object(vec![("id", call_id()), ("type", word("function")), ("function", function)], vec![]),
        object(vec![("id", call_id()), ("type", word("custom")), ("custom", custom)], vec![]),
        tomorrow(),
    ])
}

fn chat_tool() -> BoxedStrategy<Value> {
    let function = object(
        vec![("name", word("tool"))],
        vec![("description", mark()), ("parameters", schema()), ("strict", flag())],
    );
    let grammar = exactly(vec![("syntax", word("regex")), ("definition", mark())]);
    let format = any_of(vec![
        exactly(vec![("type", word("grammar")), ("grammar", grammar)]),
        exactly(vec![("type", word("text"))]),
        tomorrow(),
    ]);
    let custom = object(vec![("name", word("free"))], vec![("description", mark()), ("format", format)]);
    any_of(vec![
        object(vec![("type", word("function")), ("function", function)], vec![cache()]),
        object(vec![("type", word("custom")), ("custom", custom)], vec![cache()]),
        tomorrow(),
    ])
}

fn chat_choice() -> BoxedStrategy<Value> {
    let named = |kind: &'static str, name: &'static str| {
        exactly(vec![("type", word(kind)), (kind, exactly(vec![("name", word(name))]))])
    };
    let some = exactly(vec![
        ("mode", one_of(&[json!("auto"), json!("required")])),
        ("tools", list(any_of(vec![named("function", "tool"), named("custom", "free")]), 1..3)),
    ]);
    any_of(vec![
        one_of(&[json!("auto"), json!("none"), json!("required"), json!("odd")]),
        named("function", "tool"),
        named("custom", "free"),
        exactly(vec![("type", word("allowed_tools")), ("allowed_tools", some)]),
        tomorrow(),
    ])
}

fn chat_format() -> BoxedStrategy<Value> {
    let json_schema = object(
        vec![("name", word("form"))],
        vec![("schema", schema()), ("description", mark()), ("strict", flag())],
    );
    any_of(vec![
        object(vec![("type", word("text"))], vec![]),
        object(vec![("type", word("json_object"))], vec![]),
        object(vec![("type", word("json_schema")), ("json_schema", json_schema)], vec![]),
        tomorrow(),
    ])
}

/// A request of the messages protocol.
pub(super) fn messages() -> BoxedStrategy<Value> {
    let thinking = any_of(vec![
        object(vec![("type", word("enabled")), ("budget_tokens", count())], vec![("display", mark())]),
        object(vec![("type", one_of(&[json!("disabled"), json!("adaptive"), json!("odd")]))], vec![]),
    ]);
    let format = || {
        any_of(vec![object(vec![("type", word("json_schema")), ("schema", schema())], vec![]), tomorrow()])
    };
    let effort = any_of(vec![word("low"), word("max"), mark()]);
    let choice = any_of(vec![
        object(
            vec![("type", one_of(&[json!("auto"), json!("any"), json!("none")]))],
            vec![("disable_parallel_tool_use", flag())],
        ),
        object(
            vec![("type", word("tool")), ("name", word("tool"))],
            vec![("disable_parallel_tool_use", flag())],
        ),
        tomorrow(),
    ]);
    object(
        vec![("model", word("m")), ("max_tokens", count()), ("messages", list(message(), 1..6))],
        vec![
            ("system", any_of(vec![mark(), list(block(), 0..3)])),
            ("stop_sequences", list(mark(), 0..6)),
            ("temperature", number()),
            ("top_p", number()),
            ("top_k", number()),
            ("stream", flag()),
            ("metadata", object(vec![], vec![("user_id", mark())])),
            ("service_tier", any_of(vec![word("auto"), word("standard_only"), mark()])),
            ("thinking", thinking),
            ("output_config", object(vec![], vec![("effort", effort), ("format", format())])),
            ("output_format", format()),
            ("tools", list(tool(), 1..4)),
            ("tool_choice", choice),
        ],
    )
}

fn message() -> BoxedStrategy<Value> {
    let role = one_of(&[json!("user"), json!("assistant"), json!("user"), json!("system")]);
    let content = any_of(vec![mark(), word(""), list(block(), 0..5)]);
    object(vec![("role", role), ("content", content)], vec![])
}

fn block() -> BoxedStrategy<Value> {
    let source = || {
        any_of(vec![
            one_of(&[
                json!({ "type": "base64", "media_type": "image/png", "data": "AA==" }),
                json!({ "type": "base64", "media_type": "text/plain", "data": "YQ==" }),
                json!({ "type": "text", "media_type": "text/plain", "data": "some text" }),
                json!({ "type": "content", "content": "x" }),
            ]),
            object(vec![("type", word("url")), ("url", mark())], vec![]),
            object(vec![("type", word("file")), ("file_id", mark())], vec![]),
        ])
    };
    let content = any_of(vec![mark(), word(""), list(any_of(vec![text_block(), tomorrow()]), 0..3)]);
    any_of(vec![
        text_block(),
        object(vec![("type", word("image")), ("source", source())], vec![cache()]),
        object(vec![("type", word("document")), ("source", source())], vec![cache(), ("title", mark())]),
        object(
            vec![("type", word("tool_use")), ("id", call_id()), ("name", word("tool")), ("input", schema())],
            vec![cache()],
        ),
        object(
            vec![("type", word("tool_result")), ("tool_use_id", call_id())],
            vec![("content", content), ("is_error", flag()), cache()],
        ),
        object(
            vec![
                ("type", word("thinking")),
                ("thinking", any_of(vec![mark(), word("")])),
                ("signature", any_of(vec![mark(), word("")])),
            ],
            vec![],
        ),
        object(vec![("type", word("redacted_thinking")), ("data", mark())], vec![]),
        tomorrow(),
    ])
}

fn text_block() -> BoxedStrategy<Value> {
    object(vec![("type", word("text")), ("text", mark())], vec![cache()])
}

fn tool() -> BoxedStrategy<Value> {
    let function = object(
        vec![("name", word("tool")), ("input_schema", schema())],
        vec![("type", word("custom")), ("description", mark()), ("strict", flag()), cache()],
    );
    any_of(vec![function, tomorrow()])
}
