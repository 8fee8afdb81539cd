//! The coding `deflate`: in the zlib format, as RFC 9110 (8.4.1.2) requires, or raw, as some servers send it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use http_body::Frame;

use super::super::body::{Body, BodyError};

/// Maximum size of a chunk, in bytes.
const MAX_PIECE_BYTES: usize = 16 * 1024;
/// Low bits of the first byte in the zlib format: the number of its only method. A raw stream could only begin like this
/// with a stored block, whose padding encoders fill with zeros.
const ZLIB_METHOD: u8 = 8;

/// A decoded body.
pub(super) struct DecodedBody {
    body: Body,
    /// Received data that waits to be decoded.
    coded: Bytes,
    /// `None` until the first byte arrives.
    inflate: Option<Decompress>,
    is_over: bool,
}

impl DecodedBody {
    pub(super) fn new(body: Body) -> Self {
        Self { body, coded: Bytes::new(), inflate: None, is_over: false }
    }

    /// The next chunk; empty if it needs more input.
    fn inflate(&mut self) -> Result<Vec<u8>, BodyError> {
        let first = self.coded.first().copied().unwrap_or_default();
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(first & 0x0f == ZLIB_METHOD));
        let (taken, written) = (inflate.total_in(), inflate.total_out());
        let mut piece = vec![0; MAX_PIECE_BYTES];
        let status = inflate.decompress(&self.coded, &mut piece, FlushDecompress::None)?;
        let taken = usize::try_from(inflate.total_in() - taken)?;
        piece.truncate(usize::try_from(inflate.total_out() - written)?);
        self.coded.advance(taken);
        self.is_over = status == Status::StreamEnd;
        if taken == 0 && piece.is_empty() && !self.is_over {
            return Err("the compressed body is corrupt".into());
        }
        Ok(piece)
    }
}

impl http_body::Body for DecodedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        while !this.is_over {
            if !this.coded.is_empty() {
                match this.inflate() {
                    Ok(piece) if piece.is_empty() => {}
                    Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                    Err(error) => {
                        this.is_over = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                continue;
            }
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => this.coded = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.is_over = true;
                    // An empty body is empty in any coding.
                    if this.inflate.is_some() {
                        return Poll::Ready(Some(Err("the compressed body is truncated".into())));
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    /// A body that arrives byte by byte.
    fn bytewise(coded: Vec<u8>) -> Body {
        let bytes = coded.into_iter().map(|byte| Ok::<_, std::io::Error>(Bytes::from(vec![byte])));
        Body::from_stream(stream::iter(bytes))
    }

    #[tokio::test]
    async fn deflate_is_read_with_and_without_zlib_framing() {
        let plain = br#"{"said":"hello"}"#.repeat(9_000);
        let mut framed = ZlibEncoder::new(Vec::new(), Compression::default());
        framed.write_all(&plain).expect("memory");
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(&plain).expect("memory");
        for coded in [framed.finish().expect("memory"), bare.finish().expect("memory")] {
            for body in [Body::from(coded.clone()), bytewise(coded)] {
                let read = DecodedBody::new(body).collect().await.expect("a body").to_bytes();
                assert!(read == plain, "{} bytes", read.len());
            }
        }
    }

    #[tokio::test]
    async fn damaged_or_truncated_deflate_is_an_error() {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&b"hello ".repeat(99)).expect("memory");
        let coded = encoder.finish().expect("memory");
        for body in [coded[..coded.len() / 2].to_vec(), vec![0xff; 99]] {
            assert!(DecodedBody::new(Body::from(body)).collect().await.is_err());
        }
        let nothing = DecodedBody::new(Body::empty()).collect().await.expect("nothing");
        assert!(nothing.to_bytes().is_empty());
    }
}
