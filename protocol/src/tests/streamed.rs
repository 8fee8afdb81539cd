//! A document instead of a stream: the stream made from it follows the grammar of its protocol and says the same.

use super::{PROTOCOLS, cases, deltas, events, response_context};
use crate::conversation::{Delta, PartKind, Usage};
use crate::grammar;

#[test]
fn document_returned_for_a_stream_is_equivalent() {
    for (protocol, folder) in PROTOCOLS {
        let mut tried = 0;
        for case in cases(folder, "answers") {
            let name = &case["name"];
            let answer = protocol.answer_in(case["answer"].clone()).expect("an answer");
            let written =
                protocol.streamed(case["answer"].clone(), response_context("m")).expect("an answer");
            tried += 1;
            // An unknown finish reason is unchanged.
            let faults = grammar::transcript(protocol, &written).faults;
            let faults: Vec<_> = faults.iter().filter(|fault| fault.rule != "the_end_is_known").collect();
            assert!(faults.is_empty(), "{folder}, {name}: {}", faults[0]);
            let (mut text, mut calls) = (String::new(), 0);
            for part in answer.choices.iter().flat_map(|choice| &choice.parts) {
                match &part.kind {
                    PartKind::Text(piece) => text.push_str(piece),
                    PartKind::Call(_) => calls += 1,
                    _ => {}
                }
            }
            let written = String::from_utf8(written).expect("text");
            let read = deltas(protocol, &events(&written))
                .unwrap_or_else(|error| panic!("{name}: {error}\n{written}"));
            let texts = read
                .iter()
                .filter_map(|delta| if let Delta::Text { text, .. } = delta { Some(&**text) } else { None });
            assert_eq!(texts.collect::<String>(), text, "{folder}, {name}");
            assert_eq!(
                read.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count(),
                calls,
                "{folder}, {name}"
            );
            let counted = |usage: Option<&Usage>| usage.map(|usage| (usage.input, usage.output));
            let reported = read.iter().rev().find_map(|delta| match delta {
                Delta::Usage(usage) => Some(usage),
                _ => None,
            });
            assert_eq!(counted(reported), counted(answer.usage.as_ref()), "{folder}, {name}");
        }
        assert!(tried > 2, "{folder}: {tried}");
    }
}
