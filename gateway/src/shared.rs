//! The configuration that gateways share in their store: which revision is in use here, and why another one isn't. Also the
//! operators' actions on its revisions.

mod copy;
mod revisions;

pub use self::revisions::{ConfigDocument, ConfigPush, ConfigPushed, ConfigRevision};

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gatewright_config::{Config, ModelConfig, SharedConfig, Sharing, UpstreamConfig, Watch};
use gatewright_store::StoredRevision;
use tokio::sync::Notify;

/// A gateway's view of the shared configuration.
pub(crate) struct Shared {
    /// What a document may refer to on this machine.
    pub(crate) sharing: Sharing,
    /// Where the last document in use is stored, for a start without the store.
    copy: Option<PathBuf>,
    state: Mutex<RevisionState>,
    /// Held while looking for another revision.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Signals that the one in use must be read again: its secrets may have changed.
    pub(crate) again: Notify,
}

#[derive(Default)]
struct RevisionState {
    in_use: Option<Arc<InUse>>,
    refused: Option<RejectedRevision>,
    /// The files with secrets of the revision in use.
    watch: Watch,
}

/// The revision in use.
pub(crate) struct InUse {
    pub(crate) revision: StoredRevision,
    pub(crate) document: String,
    pub(crate) upstreams: Vec<UpstreamConfig>,
    pub(crate) models: Vec<ModelConfig>,
}

/// A revision that this gateway can't use.
#[derive(Clone)]
pub(crate) struct RejectedRevision {
    pub(crate) revision: StoredRevision,
    pub(crate) why: String,
    pub(crate) at: Instant,
}

impl Shared {
    /// `None`: the gateway has its own configuration.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let sharing = config.shared_config.clone()?;
        // A store in the data folder exists whenever the folder does.
        let copy = config.data.as_deref().filter(|_| config.store.is_some()).map(copy::place_in);
        let (state, turn, again) = (Mutex::default(), tokio::sync::Mutex::default(), Notify::new());
        Some(Self { sharing, copy, state, turn, again })
    }

    fn state(&self) -> MutexGuard<'_, RevisionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_use(&self) -> Option<Arc<InUse>> {
        self.state().in_use.clone()
    }

    /// The number of the revision in use.
    pub(crate) fn number(&self) -> Option<u64> {
        self.state().in_use.as_ref().map(|in_use| in_use.revision.number)
    }

    pub(crate) fn refused(&self) -> Option<RejectedRevision> {
        self.state().refused.clone()
    }

    /// Whether a file with a secret of the revision in use has changed since the last call.
    pub(crate) fn files_have_changed(&self) -> bool {
        let watch = &mut self.state().watch;
        let changed = watch.has_changed();
        if changed {
            watch.look();
        }
        changed
    }

    /// Reads a document. Blocks. Errors: why this gateway can't use it.
    pub(crate) fn read(&self, revision: &StoredRevision, document: &str) -> Result<SharedConfig, String> {
        let name = format!("revision {}", revision.number);
        SharedConfig::read(document, &name, &self.sharing).map_err(|problems| problems.to_string())
    }

    /// Records that a revision is in use. Blocks.
    pub(crate) fn used(&self, revision: &StoredRevision, document: &str, read: SharedConfig) {
        let SharedConfig { upstreams, models, files, .. } = read;
        let in_use = InUse { revision: revision.clone(), document: document.to_owned(), upstreams, models };
        let mut state = self.state();
        state.in_use = Some(Arc::new(in_use));
        state.refused = None;
        state.watch.set(&files);
        drop(state);
        if let Some(place) = &self.copy
            && let Err(error) = copy::keep(place, revision, document)
        {
            tracing::warn!("{}: {error}: the gateway cannot start without the store", place.display());
        }
    }

    /// Records that a revision can't be used. Returns whether that is news.
    pub(crate) fn refuse(&self, revision: &StoredRevision, why: &str) -> bool {
        let mut state = self.state();
        let before = state.refused.as_ref();
        let known = before.is_some_and(|refused| refused.revision == *revision && refused.why == why);
        state.refused =
            Some(RejectedRevision { revision: revision.clone(), why: why.to_owned(), at: Instant::now() });
        !known
    }

    /// The copy of the last document in use. Blocks.
    pub(crate) fn stored_copy(&self) -> Option<(StoredRevision, String)> {
        self.copy.as_deref().and_then(copy::stored_copy)
    }
}

/// The name of a document in messages before it is a revision.
const DOCUMENT: &str = "document";

/// Validates a document that is to become a revision. `here`: a gateway here must be able to use it; otherwise its secrets
/// may be elsewhere. Blocks.
fn judge(document: &str, here: Option<&Sharing>) -> Result<SharedConfig, String> {
    let read = match here {
        Some(sharing) => SharedConfig::read(document, DOCUMENT, sharing),
        None => SharedConfig::check(document, DOCUMENT),
    };
    read.map_err(|problems| problems.to_string())
}
