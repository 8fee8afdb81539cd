//! What is left to do for a task, as the store keeps it: enough for another process to go on.

use serde::{Deserialize, Serialize};

use super::wanted::Wanted;
use crate::relay::RemoteRecord;

/// Raised with each change that a gateway of the version before cannot read, here or in what is inside.
pub(super) const VERSION: u32 = 1;

/// See the module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Errand {
    /// The first ones had none.
    #[serde(default)]
    pub(super) version: u32,
    pub(super) wanted: Wanted,
    /// Scheme, host and port of the file URL.
    pub(super) public: String,
    /// Who is told when the task has ended.
    pub(super) webhook: Option<String>,
    /// By the clock of the store, in milliseconds since 1970.
    pub(super) deadline: u64,
    pub(super) maker: Maker,
}

/// Who makes the video.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Maker {
    Simulator { prompt: String },
    Upstream(RemoteRecord),
}

/// What another process has left.
#[derive(Debug)]
pub(super) enum Left {
    Errand(Errand),
    /// It is for a newer gateway.
    Newer,
    /// Nobody can go on with it.
    Unreadable(serde_json::Error),
}

/// What says who may read an errand.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    version: u32,
    deadline: u64,
}

impl Left {
    /// `now`: by the clock of the store, in milliseconds since 1970. After its deadline, nobody goes on with an errand.
    pub(super) fn read(errand: &str, now: u64) -> Self {
        let outline = serde_json::from_str(errand);
        if outline.is_ok_and(|Outline { version, deadline }| version > VERSION && now < deadline) {
            return Self::Newer;
        }
        serde_json::from_str(errand).map_or_else(Self::Unreadable, Self::Errand)
    }
}

/// Who is to be told of a task, also where the rest of the errand cannot be read.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Receiver {
    pub(super) public: String,
    pub(super) webhook: String,
}

impl Receiver {
    /// None if there is nobody, or it cannot be read.
    pub(super) fn of(errand: &str) -> Option<Self> {
        serde_json::from_str(errand).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errand_of_a_newer_gateway_is_left_to_it_until_its_deadline() {
        let wanted = Wanted { duration_s: 1, size: (2, 3) };
        let maker = Maker::Simulator { prompt: "a cat".to_owned() };
        let (public, webhook) = ("https://x".to_owned(), None);
        let errand = Errand { version: VERSION, wanted, public, webhook, deadline: 100, maker };
        let mut errand = serde_json::to_value(errand).expect("plain values");
        let read = |errand: &serde_json::Value, now| Left::read(&errand.to_string(), now);
        assert!(
            matches!(read(&errand, 99), Left::Errand(_)) && matches!(read(&errand, 100), Left::Errand(_))
        );
        // As it was before there were versions.
        errand.as_object_mut().expect("an object").remove("version");
        assert!(matches!(read(&errand, 99), Left::Errand(_)));
        errand["maker"] = serde_json::json!({"unknown": 1});
        assert!(matches!(read(&errand, 99), Left::Unreadable(_)));
        errand["version"] = (VERSION + 1).into();
        assert!(matches!(read(&errand, 99), Left::Newer));
        assert!(matches!(read(&errand, 100), Left::Unreadable(_)));
        assert!(matches!(Left::read("{", 0), Left::Unreadable(_)));
    }

    #[test]
    fn who_is_to_be_told_is_known_though_the_rest_cannot_be_read() {
        let errand = r#"{"public":"https://x","webhook":"https://y","maker":{"unknown":1}}"#;
        assert!(serde_json::from_str::<Errand>(errand).is_err());
        let (public, webhook) = ("https://x".to_owned(), "https://y".to_owned());
        assert_eq!(Receiver::of(errand), Some(Receiver { public, webhook }));
        for nobody in ["", "{", r#"{"public":"https://x","webhook":null}"#] {
            assert_eq!(Receiver::of(nobody), None, "{nobody}");
        }
    }
}
