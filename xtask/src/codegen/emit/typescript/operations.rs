//! `operations.ts`: how the members of a call's parameters travel, for each operation.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::quoted;
use crate::codegen::model::{Api, Kind, Location, Object, Operation, Parameter, StreamMode, Type};

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
  /** Member of the result that one gets the items of by iterating over the result. */
  readonly iterable?: string;
  /** A member that the result has beside those that arrived. */
  readonly text?: JoinedText;
}

/** A member that is not on the wire: the texts of all parts of one kind, joined. */
export interface JoinedText {
  /** Name of the member. */
  readonly name: string;
  /** Arrays on the way to the parts, outermost first. */
  readonly path: readonly string[];
  /** `type` of the parts that count. */
  readonly type: string;
  /** Member of a part that holds its text. */
  readonly member: string;
  /** Members of the operation's events that hold such a document. */
  readonly events: readonly string[];
}
";

pub(super) fn emit(api: &Api) -> String {
    let mut out = TYPE.to_owned();
    out.push_str("\n/** Every operation by its id. */\nexport const operations = {\n");
    for operation in &api.operations {
        out.push_str(&entry(api, operation));
    }
    out.push_str("} as const satisfies Record<string, Operation>;\n");
    out
}

fn entry(api: &Api, operation: &Operation) -> String {
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
    let result = whole(operation).and_then(|ty| object(api, ty));
    if let Some(iterable) = result.and_then(|object| object.iterable.as_ref()) {
        let _ = writeln!(out, "    iterable: {},", quoted(iterable));
    }
    if let Some(text) = result.and_then(|object| object.text.as_ref()) {
        let path: Vec<String> = text.path.iter().map(|step| quoted(step)).collect();
        let _ = writeln!(
            out,
            "    text: {{ name: {}, path: [{}], type: {}, member: {}, events: [{}] }},",
            quoted(&text.name),
            path.join(", "),
            quoted(&text.kind),
            quoted(&text.member),
            holders(api, operation).into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    out.push_str("  },\n");
    out
}

/// The type of the whole document that the operation gives, at once or when its stream has ended.
fn whole(operation: &Operation) -> Option<&Type> {
    let last = || operation.stream.as_ref()?.last.as_ref().map(|last| &last.ty);
    operation.response.as_ref().or_else(last)
}

/// Members of the operation's events whose type is that of the whole document.
fn holders(api: &Api, operation: &Operation) -> BTreeSet<String> {
    let (Some(document), Some(stream)) = (whole(operation), &operation.stream) else {
        return BTreeSet::new();
    };
    let schema = match &stream.item {
        Type::Ref(name) => api.schemas.get(name).map(|schema| &schema.kind),
        _ => None,
    };
    let variants = match schema {
        Some(Kind::Union(union)) => union.variants.as_slice(),
        _ => std::slice::from_ref(&stream.item),
    };
    let fields = variants.iter().filter_map(|variant| object(api, variant)).flat_map(|event| &event.fields);
    fields.filter(|field| field.ty == *document).map(|field| quoted(&field.name)).collect()
}

fn object<'api>(api: &'api Api, ty: &Type) -> Option<&'api Object> {
    let Type::Ref(name) = ty else { return None };
    match &api.schemas.get(name)?.kind {
        Kind::Object(object) => Some(object),
        _ => None,
    }
}

fn names<'api>(parameters: impl Iterator<Item = &'api Parameter>) -> String {
    let names: Vec<String> = parameters.map(|parameter| quoted(&parameter.name)).collect();
    names.join(", ")
}
