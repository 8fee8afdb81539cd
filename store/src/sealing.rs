//! Client texts at rest: compressed, and sealed with a key derived from the pepper. The database alone reveals nothing of
//! them, and no text can be substituted for another.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use gatewright_system::random_bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Longer texts are processed in a separate thread, in bytes.
const LONG: usize = 64 * 1024;
/// Format version of sealed text: a byte for the version, a nonce, and the AES-256-GCM ciphertext of the
/// compressed text.
const FORM: u8 = 1;

/// Seals and opens texts. `Debug` hides its key.
pub struct Sealer(LessSafeKey);

/// Something that was not sealed for this place, or with another pepper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was sealed with another pepper, or was changed")]
pub struct UnsealError;

impl Sealer {
    /// Seals with this key.
    #[expect(clippy::missing_panics_doc, reason = "the key has the length")]
    pub fn new(key: [u8; 32]) -> Self {
        Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("a key of 32 bytes")))
    }

    /// `place`: the kind and the owner of the text. The text can only be opened with the same value.
    #[expect(
        clippy::missing_panics_doc,
        reason = "memory takes all, and no text is as long as the cipher's limit"
    )]
    pub fn seal(&self, place: &str, text: &[u8]) -> Vec<u8> {
        let random = random_bytes();
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&random[..NONCE_LEN]);
        let mut sealed = vec![FORM];
        sealed.extend_from_slice(&nonce);
        let mut packed = compressed(text).expect("memory takes all");
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(place), &mut packed);
        sealed.extend_from_slice(&packed);
        sealed.extend_from_slice(tag.expect("it is short").as_ref());
        sealed
    }

    /// The same, off the threads that serve requests if the text is long.
    pub async fn seal_apart(self: &Arc<Self>, place: String, text: Vec<u8>) -> Vec<u8> {
        let own = Arc::clone(self);
        apart(text.len(), move || own.seal(&place, &text)).await
    }

    /// Like [`open`](Self::open), off the threads that serve requests if the text is long.
    pub async fn open_apart(
        self: &Arc<Self>,
        place: String,
        sealed: Vec<u8>,
        most: usize,
    ) -> Result<Vec<u8>, UnsealError> {
        let own = Arc::clone(self);
        // The opened text is several times as long.
        apart(4 * sealed.len(), move || own.open(&place, &sealed, most)).await
    }

    /// `most`: maximum length of the text.
    pub fn open(&self, place: &str, sealed: &[u8], most: usize) -> Result<Vec<u8>, UnsealError> {
        let rest = sealed.strip_prefix(&[FORM]).ok_or(UnsealError)?;
        let (nonce, packed) = rest.split_at_checked(NONCE_LEN).ok_or(UnsealError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError)?;
        let mut packed = packed.to_vec();
        let packed = self.0.open_in_place(nonce, Aad::from(place), &mut packed).map_err(|_| UnsealError)?;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let mut text = Vec::new();
        DeflateDecoder::new(&*packed).take(most + 1).read_to_end(&mut text).map_err(|_| UnsealError)?;
        if text.len() as u64 > most {
            return Err(UnsealError);
        }
        text.shrink_to_fit();
        Ok(text)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sealer")
    }
}

async fn apart<T: Send + 'static>(length: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if length <= LONG {
        return work();
    }
    tokio::task::spawn_blocking(work).await.expect("the work does not panic, and the runtime goes on")
}

fn compressed(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_text_is_compressed_encrypted_and_bound_to_its_location() {
        let one = Sealer::new([7; 32]);
        let text = "a canary sings ".repeat(100);
        let sealed = one.seal("copy key resp_1", text.as_bytes());
        assert!(sealed.len() < text.len() / 4, "{}", sealed.len());
        assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
        assert_eq!(one.open("copy key resp_1", &sealed, text.len()).as_deref(), Ok(text.as_bytes()));
        assert_eq!(one.open("copy other resp_1", &sealed, text.len()), Err(UnsealError));
        assert_eq!(Sealer::new([8; 32]).open("copy key resp_1", &sealed, text.len()), Err(UnsealError));
        // The same text is sealed differently each time.
        assert_ne!(one.seal("copy key resp_1", text.as_bytes()), sealed);
        assert_eq!(one.open("x", &one.seal("x", b""), 0), Ok(Vec::new()));
    }

    #[test]
    fn modified_truncated_or_oversized_data_does_not_unseal() {
        let one = Sealer::new([7; 32]);
        let sealed = one.seal("x", &vec![b'a'; 100_000]);
        assert_eq!(one.open("x", &sealed, 99_999), Err(UnsealError));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(one.open("x", &changed, 100_000), Err(UnsealError), "{at}");
            assert_eq!(one.open("x", &sealed[..at], 100_000), Err(UnsealError), "{at}");
        }
    }
}
