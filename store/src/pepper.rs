//! The pepper: without it, it can't be determined which secrets the digests in the store belong to.

use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright_system::disk::private_file;
use gatewright_system::{crash, random_bytes};
use ring::hmac;
use uuid::Uuid;

use crate::Digest;

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 256;
/// The text whose digest identifies a pepper. No key has this form.
const CHECK: &[u8] = b"the pepper of this store";

/// The key of the digests of API keys: 256 random bits. `Debug` hides it.
#[derive(Clone)]
pub struct Pepper(hmac::Key);

/// A text that is not a pepper. Does not quote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a pepper must be 32 random bytes in base64")]
pub struct InvalidPepper;

impl Pepper {
    /// Reads 32 bytes in base64, the format of the file `pepper` in a data folder.
    ///
    /// Errors: it is something else.
    pub fn new(text: &str) -> Result<Self, InvalidPepper> {
        // The decoder's error would quote part of the text.
        let bytes = BASE64_STANDARD.decode(text.trim_end()).ok().filter(|bytes| bytes.len() == 32);
        bytes.map(|bytes| Self::of(&bytes)).ok_or(InvalidPepper)
    }

    /// A new one.
    pub fn random() -> Self {
        Self::of(&random_bytes())
    }

    fn of(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Reads the pepper from a file. If there is none, creates it with access for its owner only. Also returns
    /// whether it did. Errors: the file can't be read or written; it has no pepper.
    pub fn in_file(file: &Path) -> io::Result<(Self, bool)> {
        match read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(file)?;
                Ok((read(file)?, true))
            }
            other => Ok((other?, false)),
        }
    }

    /// The digest of a secret.
    pub fn digest(&self, secret: &[u8]) -> Digest {
        let tag = hmac::sign(&self.0, secret);
        let mut digest = [0; 32];
        digest.copy_from_slice(tag.as_ref());
        Digest(digest)
    }

    /// Whether a digest belongs to a secret, in constant time.
    pub fn verify(&self, secret: &[u8], digest: Digest) -> bool {
        hmac::verify(&self.0, secret, &digest.0).is_ok()
    }

    /// A secret with this name, for another purpose. Gateways with the same pepper have the same secret, and the text it is
    /// derived from never has the form of a key.
    pub fn derived(&self, name: &str) -> [u8; 32] {
        self.digest(format!("the {name} of this store").as_bytes()).0
    }

    /// Identifies a pepper.
    pub fn check(&self) -> Digest {
        self.digest(CHECK)
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a pepper")
    }
}

fn read(file: &Path) -> io::Result<Pepper> {
    let mut text = String::new();
    fs::File::open(file)?.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Pepper::new(&text).map_err(io::Error::other)
}

/// Writes a new pepper, unless another process was faster: then its pepper stays.
fn create(file: &Path) -> io::Result<()> {
    let new = file.with_file_name(format!(".pepper-{}", Uuid::new_v4().simple()));
    let written = private_file().write(true).create_new(true).open(&new).and_then(|mut out| {
        crash::point();
        out.write_all(format!("{}\n", BASE64_STANDARD.encode(random_bytes())).as_bytes())?;
        crash::point();
        out.sync_all()
    });
    crash::point();
    // Unlike renaming, this does not replace a file.
    let linked = written.and_then(|()| fs::hard_link(&new, file));
    crash::point();
    _ = fs::remove_file(&new);
    crash::point();
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pepper_is_persistent_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pepper");
        let (pepper, is_new) = Pepper::in_file(&file).expect("a new pepper");
        let (again, is_again_new) = Pepper::in_file(&file).expect("the same pepper");
        assert!(is_new && !is_again_new);
        let digest = pepper.digest(b"secret");
        assert!(again.verify(b"secret", digest) && !again.verify(b"secret ", digest));
        assert_eq!(pepper.check(), again.check());
        assert_ne!(Pepper::random().check(), again.check());
        assert_eq!(pepper.derived("one"), again.derived("one"));
        assert!(![again.derived("other"), Pepper::random().derived("one")].contains(&pepper.derived("one")));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = fs::metadata(&file).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn concurrently_created_pepper_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pepper");
        let (first, _) = Pepper::in_file(&file).expect("a new pepper");
        create(&file).expect("no failure");
        assert_eq!(Pepper::in_file(&file).expect("the first").0.check(), first.check());
    }

    #[test]
    fn error_does_not_quote_a_broken_pepper_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pepper");
        fs::write(&file, "c2hvcnQ=").expect("written");
        let error = Pepper::in_file(&file).expect_err("too short").to_string();
        assert!(!error.contains("c2hvcnQ"), "{error}");
    }
}
