//! The programs of bench/ that are measured.

use super::installs::Registry;

/// A program of bench/.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A program of bench/src/bin.
    Rust(&'static str),
    /// The one of bench/peers.
    AsyncOpenai,
    /// A script of bench/python.
    Python(&'static str),
    /// litellm_sdk.py, which has an environment of its own.
    LiteLlm,
    /// A script of bench/node.
    Node(&'static str),
    /// start.py, a process each time.
    PythonStart,
    /// start.mjs, a process each time.
    NodeStart,
    /// A validator of NDJSON, measured from outside.
    Lines(&'static str),
}

impl Program {
    /// What has to be installed for it.
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
