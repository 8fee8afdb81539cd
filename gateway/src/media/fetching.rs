//! Fetches the file of a finished video into the files of the gateway: no byte of it is taken without room for it.

use axum::body::Body;
use gatewright::redact::Redactor;
use http_body_util::BodyExt as _;

use crate::app::App;
use crate::protocols::Finished;
use crate::relay::{Content, Fault, Remote};
use crate::store::{Kind, LIFETIME, Room};
use crate::wire::ApiError;

/// The beginning of a file that tells its format.
const BEGINNING: usize = 12;

/// Why a file is not here.
#[derive(Debug)]
pub(super) enum Unfetched {
    /// It never will be.
    Never(String),
    /// There is no room now.
    NoRoom(ApiError),
    Failed(Fault),
}

/// Fetches a file whole. Gives its format and name. `room`: reserved for it, also if it has to be fetched again.
pub(super) async fn fetch(
    app: &App,
    remote: &Remote,
    finished: &Finished,
    room: &mut Option<Room>,
) -> Result<(Kind, String), Unfetched> {
    let opened = remote.open(&app.routes.load_full(), &app.fetcher, finished).await;
    let content = opened.map_err(Unfetched::Failed)?;
    let mut reserved = match room.take() {
        Some(reserved) => reserved,
        None => app.files.reserve(0).map_err(Unfetched::NoRoom)?,
    };
    match read(content, &mut reserved, &remote.provider.endpoint.redactor).await {
        Ok((kind, file)) => {
            let names = reserved.keep(kind, vec![file], LIFETIME).map_err(Unfetched::NoRoom)?;
            Ok((kind, names.into_iter().next().unwrap_or_default()))
        }
        Err(unfetched) => {
            *room = Some(reserved);
            Err(unfetched)
        }
    }
}

/// Reads a file to its end, as far as there is room for it.
async fn read(content: Content, room: &mut Room, redactor: &Redactor) -> Result<(Kind, Vec<u8>), Unfetched> {
    let broken = |why: &str| Unfetched::Failed(Fault::broken(why, redactor));
    let Content { length, mut body, idle_timeout } = content;
    let mut file = Vec::new();
    if let Some(length) = length {
        claim(room, length)?;
        file.reserve_exact(length);
    }
    let mut kind = None;
    loop {
        let packet = match tokio::time::timeout(idle_timeout, next_packet(&mut body)).await {
            Err(_) => return Err(Unfetched::Failed(Fault::silent(idle_timeout, redactor))),
            Ok(Err(_)) => return Err(broken("broke off")),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(packet))) => packet,
        };
        claim(room, file.len() + packet.len())?;
        file.extend_from_slice(&packet);
        if kind.is_none() && file.len() >= BEGINNING {
            kind = Some(kind_of(&file).ok_or_else(|| broken("is no video"))?);
        }
    }
    // Without a length, it has taken more than it holds.
    file.shrink_to_fit();
    Ok((kind.ok_or_else(|| broken("is no video"))?, file))
}

async fn next_packet(body: &mut Body) -> Result<Option<bytes::Bytes>, axum::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(packet) = frame?.into_data() {
            return Ok(Some(packet));
        }
    }
    Ok(None)
}

/// Takes room for so many bytes in all.
fn claim(room: &mut Room, bytes: usize) -> Result<(), Unfetched> {
    if !room.can_hold(bytes) {
        let message = format!("the video has {bytes} bytes or more, and the gateway keeps no file so large");
        return Err(Unfetched::Never(message));
    }
    room.grow(bytes).map_err(Unfetched::NoRoom)
}

/// The format of a file: what a provider says of it is not believed, since the gateway serves it as its own.
fn kind_of(file: &[u8]) -> Option<Kind> {
    if file.get(4..8) == Some(b"ftyp") {
        return Some(Kind::Mp4);
    }
    file.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]).then_some(Kind::Webm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_beginning() {
        assert_eq!(kind_of(b"\0\0\0\x20ftypisom"), Some(Kind::Mp4));
        assert_eq!(kind_of(b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f"), Some(Kind::Webm));
        for other in [&b""[..], b"<html><body>", b"{\"error\":{}}", b"ftypisomftyp"] {
            assert_eq!(kind_of(other), None);
        }
    }
}
