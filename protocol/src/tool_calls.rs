//! Tool call ids and tool names in the forms a protocol accepts. Valid ones are unchanged; others are replaced by a name
//! derived only from the original, so it is the same in each turn and prompt caches still match.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use ring::digest::{Context, SHA256};

use crate::codec::{CallIdRule, ToolNameRule};
use crate::conversation::{Conversation, PartKind, Protocol, ToolChoice, ToolKind};

/// Separates a namespace from the name of a tool in it. No protocol accepts it in a name, so the pair can't be confused
/// with a plain name.
pub(super) const NAMESPACE_SEPARATOR: char = '\u{1f}';
/// Number of digest bytes in a generated id.
const ID_DIGEST_BYTES: usize = 12;
/// Number of digest bytes at the end of a name.
const NAME_DIGEST_BYTES: usize = 4;

/// Whether a protocol accepts this call id.
fn is_call_id(id: &str, rule: CallIdRule) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match rule {
        CallIdRule::Any => true,
        CallIdRule::Chars(max) => !id.is_empty() && id.chars().count() <= max,
        CallIdRule::Plain(max) => !id.is_empty() && id.len() <= max && id.bytes().all(is_plain),
        CallIdRule::Alphanumeric(length) => {
            id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    }
}

fn is_name_byte(byte: u8, rule: &ToolNameRule) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || rule.further.contains(&byte)
}

/// Whether a protocol accepts this tool name.
fn is_tool_name(name: &str, rule: &ToolNameRule) -> bool {
    let begins = |first: u8| !rule.begins_with_letter || first.is_ascii_alphabetic() || first == b'_';
    name.bytes().next().is_some_and(begins)
        && name.len() <= rule.max
        && name.bytes().all(|byte| is_name_byte(byte, rule))
}

fn digest(text: &str, number: u64, bytes: usize) -> String {
    let mut context = Context::new(&SHA256);
    context.update(&number.to_be_bytes());
    context.update(text.as_bytes());
    context.finish().as_ref().iter().take(bytes).fold(String::with_capacity(2 * bytes), |mut hex, byte| {
        _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Gives calls unique ids that a protocol accepts. The first call with an id keeps it.
#[derive(Debug, Clone)]
pub(super) struct CallIds {
    rule: CallIdRule,
    used: HashSet<String>,
    /// How many ids were generated for an original.
    made: HashMap<String, u64>,
}

impl CallIds {
    pub(super) fn new(rule: CallIdRule) -> Self {
        Self { rule, used: HashSet::new(), made: HashMap::new() }
    }

    /// An id in place of another one, which a call already has or the protocol rejects.
    fn make(&self, id: &str, number: u64) -> String {
        match self.rule {
            CallIdRule::Alphanumeric(length) => {
                let mut made = digest(id, number, length.div_ceil(2));
                made.truncate(length);
                made
            }
            _ => format!("call_{}", digest(id, number, ID_DIGEST_BYTES)),
        }
    }

    /// The id of the next call.
    pub(super) fn next(&mut self, id: &str) -> String {
        // There, calls without ids are matched by order.
        if id.is_empty() && self.rule == CallIdRule::Any {
            return String::new();
        }
        if is_call_id(id, self.rule) && self.used.insert(id.to_owned()) {
            return id.to_owned();
        }
        let mut number = self.made.get(id).copied().unwrap_or_default();
        loop {
            let made = self.make(id, number);
            number += 1;
            if self.used.insert(made.clone()) {
                self.made.insert(id.to_owned(), number);
                return made;
            }
        }
    }
}

/// A conversation's tool names as a protocol accepts them.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolNames {
    /// Names that are written differently.
    written: HashMap<String, String>,
}

impl ToolNames {
    /// Covers all tools that are declared, chosen or called.
    pub(super) fn new(conversation: &Conversation, protocol: Protocol) -> Self {
        let rule = &protocol.codec().rules().tool_names;
        let mut foreign: Vec<&str> = Vec::new();
        let mut taken: HashSet<String> = HashSet::new();
        for name in names(conversation) {
            if !is_tool_name(name, rule) {
                foreign.push(name);
            } else if !taken.contains(name) {
                taken.insert(name.to_owned());
            }
        }
        let mut written: HashMap<String, String> = HashMap::new();
        for name in foreign {
            if !written.contains_key(name) {
                let made = made_name(name, rule, &taken);
                taken.insert(made.clone());
                written.insert(name.to_owned(), made);
            }
        }
        Self { written }
    }

    /// A name as the target gets it.
    pub(super) fn written<'a>(&'a self, name: &'a str) -> &'a str {
        self.written.get(name).map_or(name, String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }
}

/// The tool names in a conversation.
fn names(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let declared = conversation.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name.as_str()),
        ToolKind::Other(_) => None,
    });
    let chosen: &[String] = match conversation.tool_choice.as_ref().map(|choice| &choice.value) {
        Some(ToolChoice::Function(name) | ToolChoice::Custom(name)) => std::slice::from_ref(name),
        Some(ToolChoice::Allowed { names, .. }) => names,
        _ => &[],
    };
    let called = conversation.turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(call.name.as_str()),
        PartKind::Result(result) => result.name.as_deref(),
        _ => None,
    });
    declared.chain(chosen.iter().map(String::as_str)).chain(called)
}

fn made_name(name: &str, rule: &ToolNameRule, taken: &HashSet<String>) -> String {
    // Tools of a namespace are named the way agents name the tools of their servers.
    if name.contains(NAMESPACE_SEPARATOR) {
        let joined = name.replace(NAMESPACE_SEPARATOR, "__");
        if is_tool_name(&joined, rule) && !taken.contains(&joined) {
            return joined;
        }
    }
    let most = rule.max - 2 * NAME_DIGEST_BYTES - 1;
    let mut clean = String::with_capacity(most);
    for letter in name.chars().take(most) {
        let is_taken_over = u8::try_from(letter).is_ok_and(|byte| is_name_byte(byte, rule));
        let first = clean.is_empty() && rule.begins_with_letter && !letter.is_ascii_alphabetic();
        if first && letter != '_' {
            clean.push('_');
        }
        if clean.len() < most {
            clean.push(if is_taken_over { letter } else { '_' });
        }
    }
    if clean.is_empty() {
        clean.push_str("tool");
    }
    let mut number = 0;
    loop {
        let made = format!("{clean}_{}", digest(name, number, NAME_DIGEST_BYTES));
        if !taken.contains(&made) {
            return made;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOLS: [Protocol; 5] =
        [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Native, Protocol::Converse];

    #[test]
    fn generated_names_and_ids_are_valid_and_unique() {
        let originals = [
            "1x",
            "-x",
            "ns.tool:x",
            "ns_tool_x",
            "a b",
            "ä",
            "",
            "x\u{1f}y",
            &"n".repeat(65),
            &"n".repeat(200),
        ];
        for protocol in PROTOCOLS {
            let rules = protocol.codec().rules();
            let mut taken = HashSet::new();
            let mut ids = CallIds::new(rules.call_ids);
            for original in originals {
                let made = made_name(original, &rules.tool_names, &taken);
                assert!(
                    is_tool_name(&made, &rules.tool_names),
                    "{protocol:?}: {original:?} becomes {made:?}"
                );
                assert_eq!(made, made_name(original, &rules.tool_names, &taken));
                assert!(taken.insert(made));
                let id = ids.next(original);
                assert!(is_call_id(&id, rules.call_ids), "{protocol:?}: {original:?} becomes {id:?}");
            }
        }
    }

    #[test]
    fn first_call_keeps_its_id_and_duplicates_get_stable_ones() {
        let ids = || {
            let mut ids = CallIds::new(CallIdRule::Chars(40));
            ["x", "y", "x", "x"].map(|id| ids.next(id))
        };
        let [first, other, second, third] = ids();
        assert_eq!([first.as_str(), other.as_str()], ["x", "y"]);
        assert!(second != first && second != third && third != first);
        assert_eq!(ids(), [first, other, second, third]);
    }

    #[test]
    fn ids_of_an_exact_length_are_stable_unique_and_kept_if_they_have_it() {
        let rule = CallIdRule::Alphanumeric(9);
        let ids = || {
            let mut ids = CallIds::new(rule);
            ["call_1", "D681PevKs", "call_1", "", "call_12345678901234567890"].map(|id| ids.next(id))
        };
        let made = ids();
        assert!(made.iter().all(|id| is_call_id(id, rule)), "{made:?}");
        assert_eq!((made[1].as_str(), made.iter().collect::<HashSet<_>>().len()), ("D681PevKs", made.len()));
        assert_eq!(ids(), made);
    }
}
