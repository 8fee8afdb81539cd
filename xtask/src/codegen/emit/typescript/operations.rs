//! `operations.ts`: how the members of a call's parameters travel, for each operation.

use std::fmt::Write as _;

use super::quoted;
use crate::codegen::model::{Api, Location, Operation, Parameter, StreamMode};

const TYPE: &str = r"/** How the parameters of one operation travel, and whether its answer is a stream. */
export interface Operation {
  /** `operationId` in the specification. */
  readonly id: string;
  /** The method as a caller writes it: `chat.completions.create`. */
  readonly name: string;
  /** Parameters filled into the path, in path order. */
  readonly path: readonly string[];
  /** Parameters sent in the query. */
  readonly query: readonly string[];
  /** Parameters sent as headers. */
  readonly headers: readonly string[];
  /** Whether the remaining parameters are sent as a JSON body. */
  readonly body: boolean;
  /** Whether the answer is a stream: never, always, or when this member of the body is `true`. */
  readonly stream: boolean | string;
}
";

pub(super) fn emit(api: &Api) -> String {
    let mut out = TYPE.to_owned();
    out.push_str("\n/** Every operation by its id. */\nexport const operations = {\n");
    for operation in &api.operations {
        out.push_str(&entry(operation));
    }
    out.push_str("} as const satisfies Record<string, Operation>;\n");
    out
}

fn entry(operation: &Operation) -> String {
    let stream = match operation.stream.as_ref().map(|stream| &stream.mode) {
        None => "false".to_owned(),
        Some(StreamMode::Always) => "true".to_owned(),
        Some(StreamMode::Parameter(name)) => quoted(name),
    };
    let of =
        |location| names(operation.free_parameters().filter(move |parameter| parameter.location == location));
    let mut out = String::new();
    let _ = writeln!(out, "  {}: {{", operation.id);
    let _ = writeln!(out, "    id: {},", quoted(&operation.id));
    let _ = writeln!(out, "    name: {},", quoted(&super::resources::call_path(operation)));
    let _ = writeln!(out, "    path: [{}],", names(operation.path_parameters()));
    let _ = writeln!(out, "    query: [{}],", of(Location::Query));
    let _ = writeln!(out, "    headers: [{}],", of(Location::Header));
    let _ = writeln!(out, "    body: {},", operation.request.is_some());
    let _ = writeln!(out, "    stream: {stream},");
    out.push_str("  },\n");
    out
}

fn names<'api>(parameters: impl Iterator<Item = &'api Parameter>) -> String {
    let names: Vec<String> = parameters.map(|parameter| quoted(&parameter.name)).collect();
    names.join(", ")
}
