//! Files and batches that providers have for API keys: what is known of each, sealed in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright_store::{
    DurableStore, ObjectKind, ObjectLease, ObjectPage, ProviderObject, Sealer, StoreError, StoredFile,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::store_unavailable;
use crate::wire::ApiError;

/// Maximum size of what is known of an object, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 64 * 1024;
/// Maximum number of batches taken over at once.
const MAX_RESUMED: usize = 16;

/// See the module.
pub(crate) struct ProviderObjects {
    store: Arc<dyn DurableStore>,
    sealer: Arc<Sealer>,
    /// The batches that this process runs itself, by their ids.
    running: Mutex<HashMap<String, CancellationToken>>,
}

/// What is known of a file or a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ObjectRecord {
    /// As its provider describes it.
    pub(crate) document: Value,
    /// Name of the upstream that has it.
    pub(crate) upstream: String,
    /// The mark of the upstream key that it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<i64>,
    /// The requests in the file, or of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<BatchRequests>,
    /// The content of a file that the simulator has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<StoredFile>,
}

/// The requests of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchRequests {
    /// The id of their model.
    pub(crate) model: String,
    /// The path of their operation.
    pub(crate) endpoint: String,
    pub(crate) count: u64,
    /// Estimated tokens of all of them.
    pub(crate) input: u64,
    /// Maximum number of tokens that all answers may have.
    pub(crate) output: u64,
}

/// A batch that this process runs, until this is dropped.
pub(crate) struct RunningBatch {
    objects: Arc<ProviderObjects>,
    id: String,
    pub(crate) cancelled: CancellationToken,
}

impl ObjectRecord {
    /// Its id.
    pub(crate) fn id(&self) -> &str {
        self.document["id"].as_str().unwrap_or_default()
    }
}

impl ProviderObjects {
    pub(crate) fn new(store: Arc<dyn DurableStore>, sealer: Sealer) -> Arc<Self> {
        Arc::new(Self { store, sealer: Arc::new(sealer), running: Mutex::default() })
    }

    /// An object of an API key. Errors: the store doesn't answer.
    pub(crate) async fn find(
        &self,
        owner: &str,
        kind: ObjectKind,
        id: &str,
    ) -> Result<Option<ObjectRecord>, ApiError> {
        let found = self.store.object(owner, kind, id).await.map_err(|error| store_unavailable(&error))?;
        Ok(found.and_then(|object| self.opened(&object)))
    }

    /// A page of the objects of an API key. `None`: it has no object where the page starts. Errors: the store doesn't answer.
    pub(crate) async fn list(
        &self,
        owner: &str,
        page: ObjectPage<'_>,
    ) -> Result<Option<Vec<ObjectRecord>>, ApiError> {
        let listed = self.store.objects(owner, page).await.map_err(|error| store_unavailable(&error))?;
        Ok(listed.map(|objects| objects.iter().filter_map(|object| self.opened(object)).collect()))
    }

    /// Adds an object; one that is already known stays as it is. `expires`: after this time it is removed. `follows`: it is a batch in
    /// progress, and no other process follows it for this long. `percent`: the share of all objects that one API key may have.
    ///
    /// Errors: there are too many; the store doesn't answer.
    pub(crate) async fn add(
        &self,
        owner: &Arc<str>,
        kind: ObjectKind,
        record: &ObjectRecord,
        expires: Option<Duration>,
        follows: Option<Duration>,
        percent: u8,
    ) -> Result<ObjectLease, ApiError> {
        let id = record.id().to_owned();
        let purpose = record.document["purpose"].as_str().unwrap_or_default().to_owned();
        let content = self.sealed(owner, record);
        let object = ProviderObject { owner: Arc::clone(owner), id: id.clone(), kind, purpose, content };
        let added = self.store.add_object(&object, expires, follows, percent).await;
        if added.map_err(|error| store_unavailable(&error))? {
            return Ok(ObjectLease { owner: Arc::clone(owner), id, number: 1 });
        }
        let message = "there are too many files and batches; delete files that are no longer needed";
        Err(ApiError::new(&ErrorCode::RATE_LIMIT_EXCEEDED, message))
    }

    /// Removes an object of an API key. Errors: the store doesn't answer.
    pub(crate) async fn remove(&self, owner: &str, kind: ObjectKind, id: &str) -> Result<(), ApiError> {
        let removed = self.store.remove_object(owner, kind, id).await;
        removed.map(|_| ()).map_err(|error| store_unavailable(&error))
    }

    /// Records what is known of a batch in progress. `follows`: no other process follows it for this long; `None`: it has ended. False,
    /// and nothing changes, if another process follows it, or if it has ended.
    pub(crate) async fn update(
        &self,
        lease: &ObjectLease,
        record: &ObjectRecord,
        follows: Option<Duration>,
    ) -> Result<bool, StoreError> {
        self.store.update_batch(lease, &self.sealed(&lease.owner, record), follows).await
    }

    /// Takes over batches that no process follows any more, for this long.
    pub(crate) async fn resume(&self, follows: Duration) -> Vec<(ObjectRecord, ObjectLease)> {
        match self.store.resume_batches(follows, MAX_RESUMED).await {
            Ok(resumed) => {
                let opened = |(object, lease)| Some((self.opened(&object)?, lease));
                resumed.into_iter().filter_map(opened).collect()
            }
            Err(error) => {
                tracing::warn!("{error}: cannot take over batches of other gateways");
                Vec::new()
            }
        }
    }

    /// Removes objects that have expired.
    pub(crate) async fn forget(&self) {
        if let Err(error) = self.store.forget_objects().await {
            tracing::warn!("{error}: expired files are still listed");
        }
    }

    /// Notes that this process runs a batch.
    pub(crate) fn run(self: &Arc<Self>, id: &str) -> RunningBatch {
        let cancelled = CancellationToken::new();
        self.running().insert(id.to_owned(), cancelled.clone());
        RunningBatch { objects: Arc::clone(self), id: id.to_owned(), cancelled }
    }

    /// Cancels a batch that this process runs. Returns whether it runs it.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.running().get(id).inspect(|token| token.cancel()).is_some()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sealed(&self, owner: &str, record: &ObjectRecord) -> Vec<u8> {
        self.sealer.seal(&place(owner, record.id()), &serde_json::to_vec(record).expect("plain values"))
    }

    /// `None`: it was sealed with another pepper, or by a newer gateway.
    fn opened(&self, object: &ProviderObject) -> Option<ObjectRecord> {
        let ProviderObject { owner, id, content, .. } = object;
        let text = self.sealer.open(&place(owner, id), content, 2 * MAX_RECORD_BYTES);
        let record = text.ok().and_then(|text| serde_json::from_slice(&text).ok());
        if record.is_none() {
            tracing::error!(id, "a stored file or batch cannot be read");
        }
        record
    }
}

/// Where a record is sealed for.
fn place(owner: &str, id: &str) -> String {
    format!("object {owner} {id}")
}

impl Drop for RunningBatch {
    fn drop(&mut self) {
        self.objects.running().remove(&self.id);
    }
}
