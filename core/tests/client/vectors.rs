//! Reads the vectors under tests/vectors; tests/vectors/README.md describes their format.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A file of vectors.
#[derive(Debug, Deserialize)]
pub(crate) struct Vectors<T> {
    pub(crate) cases: Vec<T>,
}

/// Bytes in the notation of the vectors.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Packet {
    Text(String),
    Hex(String),
}

impl Packet {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Hex(hex) => {
                let digits = hex.as_bytes().chunks(2);
                digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
            }
        }
    }
}

pub(crate) fn read<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let vectors: Vectors<T> =
        serde_json::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!vectors.cases.is_empty(), "{name} holds no case");
    vectors.cases
}

pub(crate) fn text(name: &str) -> String {
    let path = format!("{}/../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
