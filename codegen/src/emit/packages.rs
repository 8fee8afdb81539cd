//! The packages around the clients of another specification: what makes its operations known to the engines, the clients'
//! classes, and the macros that generated Rust calls. Manifests are written once, for their authors to keep.

use anyhow::Result;
use serde_json::{Value, json};

use super::operations::rows;
use super::rust::released;
use super::{Input, client_file};
use crate::model::{Api, File};

/// The files that every run writes.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let own = |code: &str| {
        released(code).replace("use gatewright::types::", &format!("use {}::types::", api.target.rust_crate))
    };
    Ok(vec![
        python(api),
        node(api),
        rust(api, "api/open_enum.rs", &own(include_str!("../../../core/src/api/open_enum.rs"))),
        rust(api, "api/setters.rs", &own(include_str!("../../../core/src/api/setters.rs"))),
    ])
}

/// The root of the Rust crate, if it is not part of another program.
pub(super) fn crate_root(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let title = title(api);
    let root = format!(
        "//! {title}: its operations on a client.\n\nmod api;\npub mod operations;\npub mod resources;\npub mod types;\n"
    );
    let macros = "//! The macros that the types call.\n\n\
                  #![allow(unused, reason = \"not every specification has every kind of type\")]\n\n\
                  pub(crate) mod open_enum;\npub(crate) mod setters;\n";
    Ok(vec![rust(api, "lib.rs", &root), rust(api, "api.rs", macros)])
}

fn rust(api: &Api, name: &str, body: &str) -> File {
    client_file(api, format!("{}/{name}", api.target.rust_api), body)
}

/// Manifests, by path: each is written unless it is there.
pub(crate) fn manifests(api: &Api) -> Vec<(String, String)> {
    let (name, version) = (api.target.rust_crate, env!("CARGO_PKG_VERSION"));
    vec![
        (
            "rust/Cargo.toml".to_owned(),
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                 gatewright = \"{version}\"\nindexmap = {{ version = \"2\", features = [\"serde\"] }}\n\
                 serde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n"
            ),
        ),
        (
            "python/pyproject.toml".to_owned(),
            format!(
                "[build-system]\nrequires = [\"setuptools>=77\"]\nbuild-backend = \"setuptools.build_meta\"\n\n\
                 [project]\nname = \"{name}\"\nversion = \"0.1.0\"\nrequires-python = \">=3.10\"\n\
                 dependencies = [\"gatewright=={version}\"]\n\n[tool.setuptools]\npackages = [\"{name}\"]\n\n\
                 [tool.setuptools.package-data]\n{name} = [\"*.pyi\", \"py.typed\"]\n"
            ),
        ),
        (format!("python/{name}/py.typed"), String::new()),
        ("node/package.json".to_owned(), {
            let manifest = json!({
                "name": name,
                "version": "0.1.0",
                "main": "./dist/index.js",
                "types": "./dist/index.d.ts",
                "files": ["dist"],
                "scripts": {"prepare": "tsc"},
                "dependencies": {"gatewright": version},
                "devDependencies": {"@types/node": "^20", "typescript": "^5.9"},
            });
            pretty(&manifest)
        }),
        ("node/tsconfig.json".to_owned(), {
            let options = json!({"compilerOptions": {
                "target": "ES2022",
                "lib": ["ES2022", "ESNext.Disposable"],
                "module": "Node16",
                "moduleResolution": "Node16",
                "strict": true,
                "declaration": true,
                "rootDir": "src",
                "outDir": "dist",
            }});
            pretty(&options)
        }),
    ]
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON of JSON") + "\n"
}

fn title(api: &Api) -> &str {
    api.title.lines().next().unwrap_or_default().trim_end_matches('.')
}

/// `__init__.py`: importing the package makes its operations known.
fn python(api: &Api) -> File {
    let package = api.target.python_package;
    let title = title(api).replace('\\', "\\\\").replace('"', "'");
    let rows = json!(rows(api).to_string());
    let body = format!(
        "\"\"\"{title}: its operations on a client.\"\"\"\n\n\
         import gatewright\n\
         from gatewright import _engine\n\n\
         from {package} import resources, types\n\n\
         __all__ = [\"AsyncClient\", \"Client\", \"types\"]\n\n\
         _engine.register_operations({rows})\n\n\n\
         class Client(resources.Resources, gatewright.Client):\n    \"\"\"A client of {title}; options are those of `gatewright.Client`.\"\"\"\n\n\n\
         class AsyncClient(resources.AsyncResources, gatewright.AsyncClient):\n    \"\"\"The same for asyncio.\"\"\"\n"
    );
    client_file(api, format!("{}/__init__.py", api.target.python), &body)
}

/// `index.ts`, the same for Node.
fn node(api: &Api) -> File {
    let name = api.target.rust_crate;
    let module = |name| api.target.node_module(name);
    let rows = json!(rows(api).to_string());
    let title = title(api).replace("*/", "* /");
    let body = format!(
        "\n\
         import {{ Connection }} from \"{connection}\";\n\
         import {{ engine }} from \"{engine}\";\n\
         import {{ CallSite }} from \"{call_site}\";\n\
         import type {{ ClientOptions }} from \"{options}\";\n\
         import {{ ClientResources }} from \"./resources\";\n\n\
         export type * from \"./types\";\n\n\
         const refused = engine.registerOperations({rows});\n\
         if (refused !== null) throw new Error(refused);\n\n\
         /** A client of {title}; options are those of the client of `gatewright`. */\n\
         export class Client extends ClientResources {{\n\
         \x20 constructor(options: ClientOptions = {{}}) {{\n\
         \x20   super(Connection.open(options, {name:?}, new CallSite(Client)));\n\
         \x20 }}\n}}\n",
        connection = module("Connection"),
        engine = module("engine"),
        call_site = module("CallSite"),
        options = module("ClientOptions"),
    );
    client_file(api, format!("{}/index.ts", api.target.node), &body)
}
