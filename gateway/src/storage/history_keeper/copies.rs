//! The format of a stored copy: the memory it takes once parsed, the length of its response, the response, and the items,
//! sealed together.

use std::sync::Arc;

use bytes::Bytes;
use gatewright_store::{Copy, CopyChange, Sealer};
use gatewright_system::clock::unix_millis;

use crate::storage::history::{CopyNote, MAX_RESPONSE_BYTES, ResponseDocuments};

/// Two numbers.
const HEAD: usize = 16;

/// The memory a change takes until it is sealed, in bytes.
pub(super) fn memory_of(note: &CopyNote) -> usize {
    match note {
        CopyNote::Kept { documents, .. } => documents.size(),
        CopyNote::Removed { .. } => 0,
    }
}

/// The size of a change when written, in bytes.
pub(super) fn size(change: &CopyChange) -> usize {
    match change {
        CopyChange::Kept(copy) => copy.content.len(),
        CopyChange::Removed { .. } => 0,
    }
}

/// The context of a copy's seal: it opens only as this response of this API key.
fn place(owner: &str, id: &str) -> String {
    format!("copy {owner} {id}")
}

pub(super) async fn sealed(sealer: &Arc<Sealer>, note: CopyNote) -> CopyChange {
    match note {
        CopyNote::Kept { owner, id, stamp, documents } => {
            let content = sealer.seal_apart(place(&owner, &id), written(&documents)).await;
            CopyChange::Kept(Copy { owner, id, stamp, kept: unix_millis(), content })
        }
        CopyNote::Removed { owner, id } => CopyChange::Removed { owner, id },
    }
}

/// None if it was sealed with another pepper, or modified.
pub(super) async fn open(
    sealer: &Arc<Sealer>,
    owner: &str,
    id: &str,
    content: Vec<u8>,
) -> Option<ResponseDocuments> {
    read(sealer.open_apart(place(owner, id), content, HEAD + MAX_RESPONSE_BYTES).await.ok()?)
}

fn written(documents: &ResponseDocuments) -> Vec<u8> {
    let ResponseDocuments { response, items, tree } = documents;
    let mut text = Vec::with_capacity(HEAD + response.len() + items.len());
    text.extend_from_slice(&(*tree as u64).to_be_bytes());
    text.extend_from_slice(&(response.len() as u64).to_be_bytes());
    text.extend_from_slice(response);
    text.extend_from_slice(items);
    text
}

fn read(text: Vec<u8>) -> Option<ResponseDocuments> {
    let number = |at: usize| {
        let bytes = text.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_be_bytes(bytes)).ok()
    };
    let (tree, length) = (number(0)?, number(8)?);
    let mut response = Bytes::from(text).split_off(HEAD);
    (length <= response.len()).then(|| {
        let items = response.split_off(length);
        ResponseDocuments { response, items, tree }
    })
}
