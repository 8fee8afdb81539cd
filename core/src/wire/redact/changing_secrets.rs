//! Secrets that are replaced while redactors know them.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::{KnownSecret, REDACTED, Redactor};

/// Secrets that are replaced while redactors know them, such as keys that hold for an hour. Clones are the same secrets.
///
/// ```
/// use gatewright::redact::{ChangingSecrets, Redactor};
///
/// let changing = ChangingSecrets::default();
/// let redactor = Redactor::default().also_knowing(Some(changing.clone()));
/// changing.set(["key-of-this-hour"]);
/// assert_eq!(redactor.redact("key-of-this-hour"), "[redacted]");
/// ```
#[derive(Clone, Default)]
pub struct ChangingSecrets(pub(super) Arc<RwLock<Vec<KnownSecret>>>);

impl ChangingSecrets {
    /// Replaces the secrets.
    ///
    /// ```
    /// use gatewright::redact::{ChangingSecrets, Redactor};
    ///
    /// let changing = ChangingSecrets::default();
    /// changing.set(["first-secret"]);
    /// changing.set(["second-secret"]);
    /// let redactor = Redactor::default().also_knowing(Some(changing));
    /// assert_eq!(redactor.redact("first-secret, second-secret"), "first-secret, [redacted]");
    /// ```
    pub fn set<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Redactor::new(secrets).secrets;
    }
}

/// Shows none of the secrets.
impl fmt::Debug for ChangingSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
