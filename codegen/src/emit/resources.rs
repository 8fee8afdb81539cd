//! Emits the Rust facade: a struct per resource, a method per operation, thin over the transport.

mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;

use super::rust::{Signature, Signatures};
use super::{Input, client_file, comment, origin, shown_code};
use crate::model::{
    Api, File, Location, NonJsonBody, Operation, Parameter, Resource, Stream, TextForm, Type,
};
use crate::names;

pub(super) use self::reference::describe;

/// The root of another API: its resources on a client.
const ROOT: &str = "
/// The operations of this API, on a client.
#[derive(Debug, Clone, Copy)]
pub struct Resources<'c> {
    client: &'c Client,
}

impl<'c> Resources<'c> {
    /// This API on a client, which knows its address.
    pub fn new(client: &'c Client) -> Self {
        Self { client }
    }

";

/// `resources.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let (api, signatures) = (input.api, &input.progenitor()?.signatures);
    let mut code = format!(
        "//! The resources of the client and their methods. Each method passes the parts of the request and the type\n\
         //! of the answer to the transport, which does the rest.\n\n\
         use {}::{{operations, types}};\n{}",
        api.target.rust_api_module,
        imports(api),
    );
    let root = api.resources();
    if api.target.is_own_crate() {
        code.push_str("\nimpl Client {\n");
        accessors(&mut code, api, &root, "self");
    } else {
        // Another crate cannot add to the client itself.
        code.push_str(ROOT);
        accessors(&mut code, api, &root, "self.client");
    }
    code.push_str("}\n");
    for child in &root.children {
        resource(&mut code, api, signatures, child);
    }
    code.push_str(&chunks(api));
    Ok(vec![client_file(api, format!("{}/resources.rs", api.target.rust_client), &code)])
}

/// The items of streams that no other code tells the transport about: those of this crate that add up to a document are in
/// `conveniences.rs` and beside it.
fn plain_items(api: &Api) -> BTreeSet<&String> {
    let streams = api.operations.iter().filter_map(|operation| operation.stream.as_ref());
    let plain = streams.filter(|stream| !api.target.is_own_crate() || stream.final_document.is_none());
    plain
        .filter_map(|stream| match &stream.item {
            Type::Ref(item) => Some(item),
            _ => None,
        })
        .collect()
}

/// What these items are to the transport.
fn chunks(api: &Api) -> String {
    plain_items(api).into_iter().fold(String::new(), |mut code, item| {
        _ = write!(
            code,
            "\nimpl Chunk for types::{item} {{\n    type Whole = Self;\n}}\n\n\
             impl Varying for types::{item} {{\n    fn text_mut(&mut self) -> Option<&mut String> {{\n        None\n    }}\n}}\n"
        );
        code
    })
}

/// The headers that callers may set on a resource, by name: those that its operations may be called without.
fn headers<'api>(node: &Resource<'api>) -> BTreeMap<&'api str, &'api Parameter> {
    let all = node.operations.iter().flat_map(|operation| operation.optional_headers());
    all.map(|header| (header.name.as_str(), header)).collect()
}

/// What the code uses of the hand-written half.
fn imports(api: &Api) -> String {
    let bytes =
        api.operations.iter().any(|operation| matches!(operation.non_json, Some(NonJsonBody::Bytes(_))));
    let streams = api.operations.iter().any(|operation| operation.stream.is_some());
    let has_plain = !plain_items(api).is_empty();
    let used = [
        ("Bytes", bytes),
        ("Chunk", has_plain),
        ("Client", true),
        ("Error", true),
        ("EventStream", streams),
        ("Response", true),
        ("TypedCall", true),
        ("Varying", has_plain),
    ];
    let used = used.into_iter().filter(|(_, is_used)| *is_used);
    used.fold(String::new(), |mut code, (name, _)| {
        _ = writeln!(code, "use {};", api.target.rust_path(name));
        code
    })
}

fn type_name(resource: &Resource<'_>) -> String {
    names::pascal(&resource.path.join("_"))
}

/// Methods that lead to the resources below this one.
fn accessors(code: &mut String, api: &Api, parent: &Resource<'_>, client: &str) {
    for (index, child) in parent.children.iter().enumerate() {
        let name = names::rust(child.path.last().map(String::as_str).unwrap_or_default());
        let blank = if index == 0 && parent.path.is_empty() { "" } else { "\n" };
        let ty = type_name(child);
        let place = child.path.join(".");
        let headers = if headers(child).is_empty() { "" } else { ", headers: Vec::new()" };
        _ = write!(
            code,
            "{blank}    /// The operations of `{place}`.\n{}    pub fn {name}(&self) -> {ty}<'_> {{\n        {ty} {{ client: {client}{headers} }}\n    }}\n",
            way(api, child, "    /// "),
        );
    }
}

/// The example of a resource: how a client leads to it. prefix: of the lines of the comment.
fn way(api: &Api, node: &Resource<'_>, prefix: &str) -> String {
    let (start, client) = if api.target.is_own_crate() {
        ("client".to_owned(), String::new())
    } else {
        let name = api.target.rust_crate;
        ("api".to_owned(), format!("let api = {name}::resources::Resources::new(&client);\n"))
    };
    let mut code = format!(
        "use gatewright::Client;\n\nlet client = Client::builder().api_key(\"my-key\").build()?;\n{client}"
    );
    let mut holder = start;
    for part in &node.path {
        let part = names::rust(part);
        _ = writeln!(code, "let {part} = {holder}.{part}();");
        holder = part;
    }
    _ = write!(code, "# _ = {holder};\n# Ok::<(), gatewright::Error>(())\n");
    shown_code(&code, prefix)
}

fn resource(code: &mut String, api: &Api, signatures: &Signatures, node: &Resource<'_>) {
    let ty = type_name(node);
    let place = node.path.join(".");
    let headers = headers(node);
    let (copy, field) =
        if headers.is_empty() { (", Copy", "") } else { ("", "    headers: Vec<(&'static str, String)>,\n") };
    _ = write!(
        code,
        "\n/// The operations of `{place}`.\n{}#[derive(Debug, Clone{copy})]\npub struct {ty}<'c> {{\n    pub(crate) client: &'c Client,\n{field}}}\n\nimpl {ty}<'_> {{\n",
        way(api, node, "/// "),
    );
    let mut methods: Vec<String> = headers.values().map(|header| setter(header)).collect();
    let mut stream_name = Some("stream".to_owned());
    for operation in &node.operations {
        if operation.response.is_some() || operation.non_json.is_some() {
            methods.push(method(api, signatures, operation));
        }
        if let Some(form) = &operation.text_form {
            methods.push(as_text(api, signatures, operation, form));
        }
        if let Some(stream) = &operation.stream {
            let name = if operation.always_streams() {
                names::rust(&operation.name)
            } else {
                // The first to stream is plainly `stream`; a second needs its own name before it.
                stream_name.take().unwrap_or_else(|| format!("{}_stream", operation.name))
            };
            methods.push(streaming(api, signatures, operation, stream, &name));
        }
    }
    code.push_str(&methods.join("\n"));
    if methods.is_empty() {
        // Only a way to the places below it: no blank line before the first accessor.
        let mut below = String::new();
        accessors(&mut below, api, node, "self.client");
        code.push_str(below.trim_start_matches('\n'));
    } else {
        accessors(code, api, node, "self.client");
    }
    code.push_str("}\n");
    for child in &node.children {
        resource(code, api, signatures, child);
    }
}

/// The setter of an optional header.
fn setter(header: &Parameter) -> String {
    let name = names::rust(&header.name);
    let text =
        format!("Sends the header `{}` with the calls that accept it. {}", header.name, header.description);
    format!(
        "{}    #[must_use]\n    pub fn with_{}(mut self, {name}: impl ::std::fmt::Display) -> Self {{\n\
         \x20       self.headers.push(({:?}, {name}.to_string()));\n        self\n    }}\n",
        comment(&escaped(&text), "    /// "),
        names::snake(&header.name),
        header.name,
    )
}

/// The method for the answer that comes whole.
fn method(api: &Api, signatures: &Signatures, operation: &Operation) -> String {
    let function = &signatures[&operation.id];
    let (answer, read) = match &operation.non_json {
        Some(NonJsonBody::Text(_)) => ("String", "text"),
        Some(NonJsonBody::Bytes(_)) => ("Bytes", "bytes"),
        Some(NonJsonBody::Nothing) => ("()", "nothing"),
        None => (function.answer.as_str(), "value"),
    };
    let result = format!("Response<{answer}>");
    let documentation = documentation(operation, "") + &example(api, signatures, operation, None);
    let (name, row) = (names::rust(&operation.name), names::constant(&operation.id));
    body(api, function, (operation, &row), documentation, &name, &result, read)
}

/// The method for the answer that is text because a member of the body asks for it.
fn as_text(api: &Api, signatures: &Signatures, operation: &Operation, form: &TextForm) -> String {
    let values: Vec<String> = form.values.iter().map(|value| format!("`{value}`")).collect();
    let note = format!(
        " The answer is text: `{}` of the body is {}. Errors: InvalidRequest if it is something else.",
        form.parameter,
        values.join(" or ")
    );
    let (name, row) = (format!("{}_text", operation.name), names::constant(&operation.id) + "_AS_TEXT");
    let function = &signatures[&operation.id];
    let example = reference::example_as_text(api, signatures, operation, (form, &name));
    let documentation = documentation(operation, &note) + &documented(api, &example);
    body(api, function, (operation, &row), documentation, &name, "Response<String>", "text")
}

/// The method for the streamed form. The transport turns the body's switch, if there is one.
fn streaming(
    api: &Api,
    signatures: &Signatures,
    operation: &Operation,
    stream: &Stream,
    name: &str,
) -> String {
    let generated =
        if operation.always_streams() { operation.id.clone() } else { format!("{}_stream", operation.id) };
    let function = &signatures[&generated];
    let item = match &stream.item {
        Type::Ref(item) => format!("types::{item}"),
        _ => "::serde_json::Value".to_owned(),
    };
    let documentation = documentation(operation, " The answer is streamed.")
        + &example(api, signatures, operation, Some(name));
    let row = names::constant(&operation.id);
    body(api, function, (operation, &row), documentation, name, &format!("EventStream<{item}>"), "stream")
}

/// A method: what the request is made of, and what the answer is read as. row: the constant of the operation.
fn body(
    api: &Api,
    function: &Signature,
    (operation, row): (&Operation, &str),
    documentation: String,
    name: &str,
    result: &str,
    read: &str,
) -> String {
    let mut code = documentation;
    if operation.deprecated {
        code.push_str("    #[deprecated = \"the specification marks it as deprecated\"]\n");
    }
    _ = write!(
        code,
        "    pub async fn {name}(&self{}) -> Result<{result}, Error> {{\n\
         \x20       TypedCall::new(self.client, &operations::{}){}.{read}().await\n    }}\n",
        function.parameters(),
        row,
        given(api, operation),
    );
    code
}

/// The calls that hand over the arguments.
fn given(api: &Api, operation: &Operation) -> String {
    let given = |way: &str, parameter: &Parameter| {
        format!(".{way}({:?}, &{})", parameter.name, names::rust(&parameter.name))
    };
    let mut code: String = operation.path_parameters().map(|parameter| given("path", parameter)).collect();
    let arguments = operation.free_parameters().filter(|p| p.required || p.location != Location::Header);
    code.extend(arguments.map(|parameter| {
        given(if parameter.location == Location::Header { "header" } else { "query" }, parameter)
    }));
    if operation.optional_headers().next().is_some() {
        code.push_str(".headers(&self.headers)");
    }
    if operation.request.is_some() {
        code.push_str(".body(body)");
    }
    let files = api.request_fields(operation).iter().filter(|field| field.ty.is_file());
    code.extend(files.map(|field| format!(".files({:?}, &body.{})", field.name, names::rust(&field.name))));
    code
}

fn documentation(operation: &Operation, note: &str) -> String {
    let text = format!("{}.{note}\n\n{}", operation.summary, operation.description);
    let mut code = comment(&escaped(&text), "    /// ");
    for parameter in operation.path_parameters().chain(operation.free_parameters()) {
        let name = match parameter.location {
            Location::Header if !parameter.required => format!("with_{}", names::snake(&parameter.name)),
            _ => names::rust(&parameter.name),
        };
        let text = format!("{name}: {}", parameter.description);
        code.push_str("    ///\n");
        code.push_str(&comment(&escaped(&text), "    /// "));
    }
    code.push_str("    ///\n");
    code.push_str(&comment(&origin(&operation.source), "    /// "));
    code
}

/// The example of an operation as a documentation test, which compiles. Another crate calls its client otherwise.
fn example(api: &Api, signatures: &Signatures, operation: &Operation, streaming: Option<&str>) -> String {
    documented(api, &reference::example(api, signatures, operation, streaming))
}

/// A program with a client at hand as a documentation test.
fn documented(api: &Api, example: &str) -> String {
    if example.is_empty() || !api.target.is_own_crate() {
        return String::new();
    }
    let before = "```no_run\n# async fn example(client: gatewright::Client) -> Result<(), Box<dyn std::error::Error>> {\n";
    let text = format!("\n{before}{example}# Ok(())\n# }}\n```\n");
    text.lines().map(|line| format!("    /// {line}").trim_end().to_owned() + "\n").collect()
}

/// Text of the specification as Markdown: to rustdoc, brackets such as those of `[DONE]` are a link.
fn escaped(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]")
}
