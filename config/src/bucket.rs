//! The bucket for generated files.

use gatewright::ApiKey;

/// Maximum length of a bucket's name, and of the path in it.
const MAX_NAME_CHARS: usize = 63;
const MAX_PREFIX_CHARS: usize = 512;

/// A bucket on S3 or a compatible service, which holds generated files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Name of the bucket and the path in it, such as `s3://bucket/prefix`.
    pub url: String,
    /// Default: `us-east-1`.
    pub region: String,
    /// Scheme, host and port of the service. Default: AWS's endpoint for the region.
    pub endpoint: Option<String>,
    /// The id of the access key.
    pub access_key: ApiKey,
    /// The secret of the access key.
    pub secret_key: ApiKey,
}

impl Bucket {
    /// An AWS bucket in the default region.
    pub fn new(url: impl Into<String>, access_key: ApiKey, secret_key: ApiKey) -> Self {
        Self { url: url.into(), region: "us-east-1".to_owned(), endpoint: None, access_key, secret_key }
    }

    /// The bucket's name and the path in it, which may be empty. `None`: the URL has another format.
    pub fn place(&self) -> Option<(&str, &str)> {
        place_of(&self.url)
    }
}

/// See [`Bucket::place`].
pub(crate) fn place_of(url: &str) -> Option<(&str, &str)> {
    let place = url.strip_prefix("s3://")?;
    let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
    let prefix = prefix.trim_end_matches('/');
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let is_segment = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !matches!(text, "" | "." | "..") && text.bytes().all(is_plain)
    };
    let is_bucket = (3..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_name);
    let is_path = prefix.is_empty() || prefix.split('/').all(is_segment);
    (is_bucket && is_path && prefix.len() <= MAX_PREFIX_CHARS).then_some((name, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_url_names_a_bucket_and_a_prefix() {
        let key = || ApiKey::new("canary").expect("a key");
        let place = |url: &str| {
            let bucket = Bucket::new(url, key(), key());
            assert!(!format!("{bucket:?}").contains("canary"));
            bucket.place().map(|(name, prefix)| (name.to_owned(), prefix.to_owned()))
        };
        let named = |name: &str, prefix: &str| Some((name.to_owned(), prefix.to_owned()));
        assert_eq!(place("s3://my.files"), named("my.files", ""));
        assert_eq!(place("s3://my-files/a/b_c/"), named("my-files", "a/b_c"));
        for other in [
            "",
            "s3://",
            "s3://ab",
            "https://my-files",
            "s3://my-files/../x",
            "s3://my-files//x",
            "s3://my-files/?x",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
