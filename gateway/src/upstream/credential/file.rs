//! Files with keys and credentials, which other programs may rewrite.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::no_key::{MAX_KEY_BYTES, NoKey, key_in};

/// The key in a file.
pub(super) async fn key(path: &Path) -> Result<String, NoKey> {
    let bytes = read(path, MAX_KEY_BYTES).await.map_err(|why| NoKey::File(why.to_string()))?;
    key_in(bytes).ok_or_else(|| {
        let shown = path.display();
        NoKey::File(format!(
            "the file {shown} has no key: it must be one line of visible ASCII of at most {MAX_KEY_BYTES} bytes"
        ))
    })
}

/// The contents of a file. Errors: name the file.
pub(super) async fn read(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let owned = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        File::open(owned)?.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > max_bytes {
            return Err(io::Error::other(format!("it is larger than {max_bytes} bytes")));
        }
        Ok(bytes)
    });
    let read = reading.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)));
    read.map_err(|error| {
        io::Error::new(error.kind(), format!("the file {} cannot be read: {error}", path.display()))
    })
}
