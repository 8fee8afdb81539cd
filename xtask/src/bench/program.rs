//! The benchmarked programs of bench/.

use super::installs::Registry;

/// A program of bench/.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A program of bench/src/bin.
    Rust(&'static str),
    /// The program in bench/peers.
    AsyncOpenai,
    /// A script of bench/python.
    Python(&'static str),
    /// litellm_sdk.py, which has its own environment.
    LiteLlm,
    /// A script of bench/node.
    Node(&'static str),
    /// start.py, as a new process each time.
    PythonStart,
    /// start.mjs, as a new process each time.
    NodeStart,
    /// An NDJSON validator, measured from outside.
    Lines(&'static str),
}

impl Program {
    /// What must be installed for it.
    pub(super) fn registry(self) -> Option<Registry> {
        match self {
            Self::Rust(_) | Self::Lines("gatewright" | "gatewright on one core") => None,
            Self::AsyncOpenai => Some(Registry::Rust),
            Self::LiteLlm => Some(Registry::LiteLlm),
            Self::Python(_) | Self::PythonStart | Self::Lines("jsonschema-rs") => Some(Registry::Python),
            Self::Node(_) | Self::NodeStart | Self::Lines(_) => Some(Registry::Node),
        }
    }
}
