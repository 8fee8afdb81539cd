//! Batches as JSON in which similar chunks are written once, followed by the values in which they differ: a front end
//! that builds objects parses the first and copies it.

use super::pattern::paths::paths;
use super::reading::ReadChunk;

/// Minimum number of chunks in a row: below this, parsing each is as fast as reading a row.
const LEAST_CHUNKS: usize = 3;

/// Maximum number of values in which the chunks of a row differ: their paths are searched in each object of
/// the first.
const MAX_VALUES: usize = 32;

/// Writes a batch as [`RawStream::next_rows`](super::RawStream::next_rows) delivers it. Chunks like the last one are
/// written as they arrived, all others as they are delivered.
pub(super) fn to_json(batch: &[ReadChunk]) -> String {
    let length: usize = batch.iter().map(|chunk| chunk.event.data.len() + 3).sum();
    let mut json = String::with_capacity(length + 2);
    json.push('[');
    for chunks in batch.chunk_by(are_alike) {
        let is_row = chunks.len() >= LEAST_CHUNKS && push_row(&mut json, chunks).is_some();
        if !is_row {
            for ReadChunk { event, like } in chunks {
                let mended = like.as_ref().and_then(|like| like.mended(&event.data));
                json.push('[');
                json.push_str(mended.as_deref().unwrap_or(&event.data));
                json.push_str("],");
            }
        }
    }
    json.truncate(json.len().max(2) - 1);
    json.push(']');
    json
}

fn are_alike(one: &ReadChunk, other: &ReadChunk) -> bool {
    match (&one.like, &other.like) {
        (Some(one), Some(other)) => one.is_like(other),
        _ => false,
    }
}

/// Appends a row of similar chunks. None if the positions of their values are unknown; nothing is appended then.
fn push_row(json: &mut String, chunks: &[ReadChunk]) -> Option<()> {
    let ReadChunk { event, like } = chunks.first()?;
    let parts = like.as_ref()?.parts();
    if parts.len() > MAX_VALUES {
        return None;
    }
    let mut first = String::with_capacity(event.data.len());
    let mut starts = Vec::with_capacity(parts.len());
    let mut before = parts.iter();
    like.as_ref()?.each_value(&event.data, |value| {
        first.extend(before.next().copied());
        starts.push(first.len());
        first.push_str(value);
    })?;
    first.extend(before.copied());
    let paths = paths(&first, &starts)?;
    let known = json.len();
    json.push('[');
    json.push_str(&serde_json::to_string(&parts).ok()?);
    json.push(',');
    json.push_str(&serde_json::to_string(&paths).ok()?);
    for ReadChunk { event, like } in chunks {
        let all = like.as_ref().and_then(|like| {
            like.each_value(&event.data, |value| {
                json.push(',');
                json.push_str(value);
            })
        });
        if all.is_none() {
            json.truncate(known);
            return None;
        }
    }
    json.push_str("],");
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::api::operation::Operation;
    use crate::api::operations::{CREATE_CHAT_COMPLETION, CREATE_RESPONSE, STREAM_GENERATE_CONTENT};
    use crate::stream::pattern::Patterns;
    use crate::wire::sse::StreamEvent;

    /// Chunks as a reader compares them.
    fn batch(operation: &Operation, documents: &[String]) -> Vec<ReadChunk> {
        let mut patterns = Patterns::new(operation);
        let chunk = |data: &String| {
            let event = StreamEvent { data: data.clone(), ..StreamEvent::default() };
            let like = patterns.like(&event);
            if like.is_none() {
                patterns.learn(&event);
            }
            ReadChunk { event, like }
        };
        documents.iter().map(chunk).collect()
    }

    /// The number of rows, and the documents that they represent.
    fn read(json: &str) -> (usize, Vec<String>) {
        let rows: Vec<Vec<Value>> = serde_json::from_str(json).expect("rows");
        let documents = rows.iter().flat_map(|row| match row.as_slice() {
            [event] => vec![event.to_string()],
            [parts, paths, values @ ..] => {
                let parts: Vec<&str> = parts
                    .as_array()
                    .expect("parts")
                    .iter()
                    .map(|part| part.as_str().expect("text"))
                    .collect();
                let paths = paths.as_array().expect("paths");
                let events = values.chunks(paths.len()).map(|values| {
                    let values = values.iter().map(ToString::to_string).chain([String::new()]);
                    let text: String = parts
                        .iter()
                        .zip(values)
                        .flat_map(|(part, value)| [(*part).to_owned(), value])
                        .collect();
                    let event: Value = serde_json::from_str(&text).expect("JSON");
                    event.to_string()
                });
                events.collect()
            }
            [] => panic!("a row is not empty"),
        });
        (rows.len(), documents.collect())
    }

    fn assert_rows(operation: &Operation, documents: &[String], rows: usize) {
        let json = to_json(&batch(operation, documents));
        let plain = |document: &String| {
            let value: Value = serde_json::from_str(document).expect("JSON");
            value.to_string()
        };
        assert_eq!(read(&json), (rows, documents.iter().map(plain).collect()), "{json}");
    }

    fn chat(text: &str, more: &str) -> String {
        format!(
            r#"{{"id":"c","object":"o","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":{text}}}}}]{more}}}"#
        )
    }

    #[test]
    fn similar_chunks_form_one_row() {
        let texts = [r#""a""#, r#""b""#, r#""\n\u00e9\"""#, r#""""#, r#""é🙂""#];
        let documents: Vec<String> = texts.iter().map(|text| chat(text, "")).collect();
        assert_rows(&CREATE_CHAT_COMPLETION, &documents, 2);
        let mut ended = documents.clone();
        ended.push(r#"{"id":"c","object":"o","created":1,"model":"m","choices":[]}"#.to_owned());
        ended.extend(documents);
        assert_rows(&CREATE_CHAT_COMPLETION, &ended, 5);
    }

    #[test]
    fn too_few_chunks_form_no_row() {
        let documents: Vec<String> = (0..3).map(|_| chat(r#""a""#, "")).collect();
        assert_rows(&CREATE_CHAT_COMPLETION, &documents, 3);
        assert_rows(&CREATE_CHAT_COMPLETION, &[], 0);
    }

    #[test]
    fn row_lists_each_differing_value_with_its_path() {
        let documents: Vec<String> = (0..9)
            .map(|number| chat(r#""a""#, &format!(r#","obfuscation":"{}""#, "x".repeat(number + 1))))
            .collect();
        assert_rows(&CREATE_CHAT_COMPLETION, &documents, 2);
        let delta = |number| {
            format!(
                r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"i","output_index":0,"content_index":0,"delta":"d{number}","logprobs":[]}}"#
            )
        };
        assert_rows(&CREATE_RESPONSE, &(98..104).map(delta).collect::<Vec<_>>(), 2);
        let native = |number| {
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"t{number}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":4,"candidatesTokenCount":{number},"totalTokenCount":{number}}}}}"#
            )
        };
        let documents: Vec<String> = (8..13).map(native).collect();
        assert_rows(&STREAM_GENERATE_CONTENT, &documents, 2);
        let json = to_json(&batch(&STREAM_GENERATE_CONTENT, &documents));
        assert!(json.contains(r#"["candidates",0,"content","parts",0,"text"]"#), "{json}");
    }

    #[test]
    fn chunks_differing_in_many_or_deep_values_form_no_row() {
        let native = |usage: &str| -> Vec<String> {
            let chunk = |number: usize| {
                let usage = usage.replace('#', &number.to_string());
                format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"text":"t"}}]}}}}],"usageMetadata":{usage}}}"#
                )
            };
            (1..6).map(chunk).collect()
        };
        let many = (0..40).map(|number| format!(r#""m{number}":#"#)).collect::<Vec<_>>().join(",");
        assert_rows(&STREAM_GENERATE_CONTENT, &native(&format!("{{{many}}}")), 5);
        assert_rows(
            &STREAM_GENERATE_CONTENT,
            &native(&format!("{}#{}", r#"{"a":"#.repeat(30), "}".repeat(30))),
            5,
        );
        let long = format!(r#"{{"{}":#}}"#, "n".repeat(100));
        assert_rows(&STREAM_GENERATE_CONTENT, &native(&long), 5);
        assert_rows(&STREAM_GENERATE_CONTENT, &native(r#"{"a":{"b":#}}"#), 2);
    }

    #[test]
    fn row_of_repaired_chunks_is_repaired() {
        // Required members are missing.
        let documents: Vec<String> =
            (0..5).map(|n| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{n}"}}}}]}}"#)).collect();
        let batch = batch(&CREATE_CHAT_COMPLETION, &documents);
        let (rows, events) = read(&to_json(&batch));
        let delivered = batch.iter().map(|ReadChunk { event, like }| {
            let mended = like.as_ref().and_then(|like| like.mended(&event.data));
            let value: Value = serde_json::from_str(mended.as_deref().unwrap_or(&event.data)).expect("JSON");
            value.to_string()
        });
        assert_eq!((rows, events), (2, delivered.collect()));
    }
}
