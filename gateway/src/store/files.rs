//! Generated files (4 rule 4): kept in memory until they expire, under random names with signed URLs (section 8). A
//! stored file stays for its hour: if there is no room, new work is refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use gatewright::{ErrorCode, catalog};
use ring::hmac;
use uuid::Uuid;

use crate::clock::unix_seconds;
use crate::random::random_bytes;
use crate::wire::ApiError;

/// Path prefix of files.
pub(crate) const PREFIX: &str = "/files/";
/// Lifetime of a file and its URL. The source states it only for images (8); videos get the same.
pub(crate) const LIFETIME: Duration = Duration::from_secs(catalog::IMAGE_URL_LIFETIME_S as u64);
/// The `retry-after` when unfinished work, not files, takes the room.
const SHORT_WAIT_S: u64 = 1;

/// Kind of a generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Png,
    Mp4,
    Webm,
}

impl Kind {
    /// The name of the format, also in the name of the file.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Mp4 => "mp4",
            Self::Webm => "webm",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Mp4 => "video/mp4",
            Self::Webm => "video/webm",
        }
    }
}

/// The files, and the key that signs their URLs.
pub(crate) struct Files {
    signing: hmac::Key,
    max_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    files: HashMap<String, File>,
    /// Ordered by expiry.
    order: VecDeque<String>,
    bytes: usize,
    /// Bytes reserved for work in progress.
    reserved: usize,
}

struct File {
    kind: Kind,
    contents: Bytes,
    /// Seconds since 1970.
    expiry: u64,
}

/// Room reserved for work in progress. Released when dropped.
pub(crate) struct Room {
    files: Arc<Files>,
    bytes: usize,
}

impl Files {
    /// `max_bytes`: maximum size of all files together.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes());
        Self { signing, max_bytes, kept: Mutex::default() }
    }

    /// Promises room for files of about `bytes`, before the work of making them. Errors: there is no room until files
    /// expire, with the seconds until then.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Room, ApiError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.make_room(bytes, self.max_bytes, unix_seconds())?;
        kept.reserved += bytes;
        Ok(Room { files: Arc::clone(self), bytes })
    }

    /// The signed path and query of a file, valid until it expires.
    pub(crate) fn address(&self, name: &str) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let expiry = kept.files.get(name).map_or(0, |file| file.expiry);
        drop(kept);
        let signature = hmac::sign(&self.signing, signed_text(name, expiry).as_bytes());
        format!("{PREFIX}{name}?exp={expiry}&sig={}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// The file of a signed URL, by its name and query. Errors: the signature is invalid, or the file has expired.
    pub(crate) fn open(&self, name: &str, query: &[(String, String)]) -> Result<(Kind, Bytes), ApiError> {
        let parameter = |wanted| query.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        let unsigned =
            || ApiError::new(&ErrorCode::INVALID_SIGNATURE, "the signature of this file URL is not valid");
        let expiry: u64 = parameter("exp").and_then(|value| value.parse().ok()).ok_or_else(unsigned)?;
        let signature = parameter("sig")
            .and_then(|value| BASE64_URL_SAFE_NO_PAD.decode(value).ok())
            .ok_or_else(unsigned)?;
        // The signature covers the name, so this rejects every name that was never issued, including dots and slashes.
        hmac::verify(&self.signing, signed_text(name, expiry).as_bytes(), &signature)
            .map_err(|_| unsigned())?;
        if expiry <= unix_seconds() {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the URL of this file has expired"));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = kept.files.get(name) else {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the file is no longer kept"));
        };
        Ok((file.kind, file.contents.clone()))
    }
}

impl Kept {
    /// Removes expired files. Errors: `bytes` more still do not fit.
    fn make_room(&mut self, bytes: usize, max_bytes: usize, now: u64) -> Result<(), ApiError> {
        while let Some(name) = self.order.front() {
            if self.files.get(name).is_some_and(|file| file.expiry > now) {
                break;
            }
            if let Some(file) = self.order.pop_front().and_then(|name| self.files.remove(&name)) {
                self.bytes -= file.contents.len();
            }
        }
        let taken = self.bytes.saturating_add(self.reserved).saturating_add(bytes);
        if taken <= max_bytes {
            return Ok(());
        }
        let full = format!(
            "{} of the {max_bytes} bytes for generated files are taken, and this needs about {bytes}",
            self.bytes + self.reserved
        );
        let error = |message| ApiError::new(&ErrorCode::FILE_STORAGE_FULL, message);
        if bytes > max_bytes {
            // Waiting does not help.
            return Err(error(full));
        }
        let mut missing = taken - max_bytes;
        let mut wait = SHORT_WAIT_S;
        for file in self.order.iter().filter_map(|name| self.files.get(name)) {
            if missing == 0 {
                break;
            }
            missing = missing.saturating_sub(file.contents.len());
            wait = file.expiry.saturating_sub(now).max(SHORT_WAIT_S);
        }
        Err(error(format!("{full}; files expire and make room in {wait} s")).retry_after(wait))
    }
}

impl Room {
    /// Whether so many bytes could ever be kept.
    pub(crate) fn can_hold(&self, bytes: usize) -> bool {
        bytes <= self.files.max_bytes
    }

    /// Reserves more, to so many bytes in all. Errors: there is no room until files expire.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let Some(more) = bytes.checked_sub(self.bytes) else { return Ok(()) };
        let mut kept = self.files.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.make_room(more, self.files.max_bytes, unix_seconds())?;
        kept.reserved += more;
        drop(kept);
        self.bytes = bytes;
        Ok(())
    }

    /// Keeps files for `lifetime` from now and gives them names: all of them, or none. Errors: they are larger than the
    /// reservation, and there is no room for the rest.
    pub(crate) fn keep(
        mut self,
        kind: Kind,
        contents: Vec<Vec<u8>>,
        lifetime: Duration,
    ) -> Result<Vec<String>, ApiError> {
        let files = Arc::clone(&self.files);
        let bytes = contents.iter().map(Vec::len).sum();
        let mut guard = files.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        let now = unix_seconds();
        // Gives the reservation back: nobody else can take it before the files are there.
        kept.reserved -= std::mem::take(&mut self.bytes);
        kept.make_room(bytes, files.max_bytes, now)?;
        kept.bytes += bytes;
        let mut names = Vec::with_capacity(contents.len());
        for contents in contents {
            let name = format!("{}.{}", Uuid::new_v4().simple(), kind.extension());
            let file = File { kind, contents: contents.into(), expiry: now + lifetime.as_secs() };
            kept.files.insert(name.clone(), file);
            kept.order.push_back(name.clone());
            names.push(name);
        }
        Ok(names)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.files.kept.lock().unwrap_or_else(PoisonError::into_inner).reserved -= self.bytes;
    }
}

fn signed_text(name: &str, expiry: u64) -> String {
    format!("{name}\n{expiry}")
}

#[cfg(test)]
mod tests {
    use gatewright::operations::ErrorStyle;

    use super::*;

    fn query(address: &str) -> (String, Vec<(String, String)>) {
        let url = url::Url::parse(&format!("http://gateway{address}")).expect("an address");
        (url.path().trim_start_matches(PREFIX).to_owned(), url.query_pairs().into_owned().collect())
    }

    const MINUTE: Duration = Duration::from_mins(1);

    fn status(files: &Files, address: &str) -> u16 {
        let (path, parameters) = query(address);
        match files.open(&path, &parameters) {
            Ok(_) => 200,
            Err(error) => error.into_response(ErrorStyle::Standard).status().as_u16(),
        }
    }

    fn keep(files: &Arc<Files>, sizes: &[usize], lifetime: Duration) -> Result<Vec<String>, ApiError> {
        let contents = sizes.iter().map(|size| vec![0; *size]).collect();
        files.reserve(0).and_then(|room| room.keep(Kind::Png, contents, lifetime))
    }

    #[test]
    fn an_address_past_its_hour_is_gone() {
        // Section 8.
        let files = Arc::new(Files::new(1000));
        let names = keep(&files, &[3], Duration::ZERO).expect("room");
        assert_eq!(status(&files, &files.address(&names[0])), 410);
    }

    #[test]
    fn no_file_gives_way_before_its_hour_and_the_refusal_says_when_there_is_room() {
        // Section 8: a URL is valid for its hour.
        let files = Arc::new(Files::new(10));
        let names = keep(&files, &[4, 4], MINUTE).expect("room");
        let refused = keep(&files, &[3], MINUTE).expect_err("no room").into_response(ErrorStyle::Standard);
        assert_eq!(refused.status(), 503);
        let wait: u64 = refused.headers()["retry-after"].to_str().expect("ASCII").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        for name in &names {
            assert_eq!(status(&files, &files.address(name)), 200);
        }
        let refused = keep(&files, &[11], MINUTE).expect_err("never").into_response(ErrorStyle::Standard);
        assert_eq!(refused.headers().get("retry-after"), None, "no wait helps");
    }

    #[test]
    fn what_has_expired_makes_room() {
        let files = Arc::new(Files::new(10));
        keep(&files, &[4, 4], Duration::ZERO).expect("room");
        keep(&files, &[8], MINUTE).expect("room again");
        let kept = files.kept.lock().expect("no panic");
        assert_eq!((kept.files.len(), kept.order.len(), kept.bytes), (1, 1, 8));
    }

    #[test]
    fn a_reservation_grows_as_far_as_there_is_room() {
        let files = Arc::new(Files::new(10));
        let mut room = files.reserve(0).expect("room");
        assert!(room.can_hold(10) && !room.can_hold(11));
        room.grow(8).expect("room");
        room.grow(3).expect("it has more already");
        let other = files.reserve(2).expect("the rest");
        assert!(room.grow(9).is_err());
        drop(other);
        room.grow(9).expect("room again");
        drop(room);
        assert_eq!(files.kept.lock().expect("no panic").reserved, 0);
    }

    #[test]
    fn files_of_one_answer_are_kept_all_or_none() {
        let files = Arc::new(Files::new(10));
        assert!(keep(&files, &[6, 6], MINUTE).is_err());
        assert_eq!(files.kept.lock().expect("no panic").bytes, 0);
    }

    #[test]
    fn work_in_progress_holds_its_room_until_it_ends() {
        let files = Arc::new(Files::new(10));
        let room = files.reserve(8).expect("room");
        assert!(files.reserve(3).is_err());
        drop(room);
        let names = files.reserve(8).expect("given back").keep(Kind::Mp4, vec![vec![0; 2]], MINUTE);
        assert_eq!(names.expect("room").len(), 1);
        assert!(files.reserve(8).is_ok(), "what was promised and not used is free");
    }
}
