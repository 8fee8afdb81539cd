//! Where a body ends: at its length, after its last chunk, or with the connection.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode, Version};

use crate::error::Error;

/// Maximum number of bytes in a chunked body that carry no data: chunk extensions and trailers.
const MAX_IGNORED: u32 = 16 * 1024;
/// Maximum number of digits of a chunk size.
const MAX_DIGITS: u8 = 15;

/// The part of a body that is still to come.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks, each of which states its size.
    Chunked(Chunks),
    /// Everything until the server closes the connection.
    Close,
    /// Nothing.
    Done,
}

/// The state of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    /// Bytes ignored so far.
    ignored: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    Size {
        size: u64,
        digits: u8,
    },
    /// In white space after the size.
    Blank {
        size: u64,
    },
    /// After the semicolon: extensions until the end of the line.
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the beginning of a trailer line.
    Trailers,
    Trailer,
    TrailerLf,
    LastLf,
}

/// How a response body is framed, and whether the connection can be reused afterwards.
pub(super) fn of_answer(
    request_method: &Method,
    version: Version,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(Framing, bool), Error> {
    let lasts = lasts(version, headers);
    if *request_method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    {
        return Ok((Framing::Done, lasts));
    }
    let length = length(headers)?;
    if headers.contains_key(TRANSFER_ENCODING) {
        if !is_chunked_alone(headers) || version == Version::HTTP_10 {
            return Err(Error::Invalid("the body has a transfer encoding that was not requested"));
        }
        // A Content-Length next to chunked encoding may be an attempt at response smuggling.
        return Ok((Framing::Chunked(Chunks::new()), lasts && length.is_none()));
    }
    Ok(match length {
        Some(0) => (Framing::Done, lasts),
        Some(length) => (Framing::Length(length), lasts),
        None => (Framing::Close, false),
    })
}

/// How a request body is framed, and whether the client may send further requests after it. Rejects framing that
/// two readers could interpret differently (RFC 9112, 6.3).
pub fn of_request(version: Version, headers: &HeaderMap) -> Result<(Framing, bool), Error> {
    let lasts = lasts(version, headers);
    let length = length(headers)?;
    if headers.contains_key(TRANSFER_ENCODING) {
        if !is_chunked_alone(headers) || length.is_some() || version == Version::HTTP_10 {
            return Err(Error::Invalid("the length of the body is given in two ways, or in an unknown one"));
        }
        return Ok((Framing::Chunked(Chunks::new()), lasts));
    }
    Ok(match length {
        None | Some(0) => (Framing::Done, lasts),
        Some(length) => (Framing::Length(length), lasts),
    })
}

/// Whether chunked is the body's only transfer coding.
fn is_chunked_alone(headers: &HeaderMap) -> bool {
    let mut codings = tokens(headers, &TRANSFER_ENCODING);
    codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) && codings.next().is_none()
}

fn lasts(version: Version, headers: &HeaderMap) -> bool {
    let has = |option: &[u8]| tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case(option));
    if version == Version::HTTP_11 { !has(b"close") } else { has(b"keep-alive") && !has(b"close") }
}

fn length(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let invalid = Error::Invalid("its content-length is not a number, or is repeated");
    let mut lengths = tokens(headers, &CONTENT_LENGTH);
    let Some(first) = lengths.next() else {
        return if headers.contains_key(CONTENT_LENGTH) { Err(invalid) } else { Ok(None) };
    };
    // The parser would accept a sign as part of a number.
    let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(first).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
    match length {
        Some(length) if lengths.all(|other| other == first) => Ok(Some(length)),
        _ => Err(invalid),
    }
}

/// The list members of all headers with this name.
fn tokens<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

impl Framing {
    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }

    /// Consumes the part of `input` that belongs to the body. Returns the number of bytes consumed and the data among
    /// them, possibly empty.
    pub fn decode(&mut self, input: &[u8]) -> Result<(usize, Bytes), Error> {
        match self {
            Self::Done => Ok((0, Bytes::new())),
            Self::Close => Ok((input.len(), Bytes::copy_from_slice(input))),
            Self::Length(left) => {
                let taken = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                if *left == 0 {
                    *self = Self::Done;
                }
                Ok((taken, Bytes::copy_from_slice(&input[..taken])))
            }
            Self::Chunked(chunks) => {
                let mut data = BytesMut::new();
                let (taken, is_done) = chunks.decode(input, &mut data)?;
                if is_done {
                    *self = Self::Done;
                }
                Ok((taken, data.freeze()))
            }
        }
    }

    /// What the end of the connection means for the body.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self {
            Self::Done => Ok(()),
            Self::Close => {
                *self = Self::Done;
                Ok(())
            }
            Self::Length(_) | Self::Chunked(_) => Err(Error::Incomplete),
        }
    }
}

impl Chunks {
    fn new() -> Self {
        Self { at: At::Size { size: 0, digits: 0 }, ignored: 0 }
    }

    /// Returns the number of bytes that belong to the body, and whether the body ends with them.
    fn decode(&mut self, input: &[u8], data: &mut BytesMut) -> Result<(usize, bool), Error> {
        let mut taken = 0;
        while let Some(&byte) = input.get(taken) {
            if let At::Data { left } = &mut self.at {
                let rest = &input[taken..];
                let length = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                if data.is_empty() {
                    // One allocation for all chunks of a packet.
                    data.reserve(rest.len());
                }
                data.put_slice(&rest[..length]);
                taken += length;
                *left -= length as u64;
                if *left == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            taken += 1;
            if self.step(byte)? {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    /// Reads a byte that is not data. Returns whether it is the last byte of the body.
    fn step(&mut self, byte: u8) -> Result<bool, Error> {
        self.at = match (&self.at, byte) {
            (At::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if *digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                At::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (At::Size { size, digits: 1.. } | At::Blank { size } | At::Extension { size }, b'\r') => {
                At::SizeLf { size: *size }
            }
            (At::Size { size, digits: 1.. } | At::Blank { size }, b';') => At::Extension { size: *size },
            // Only white space is allowed before an extension (RFC 9112, 7.1.1).
            (At::Size { size, digits: 1.. } | At::Blank { size }, b' ' | b'\t') => {
                let size = *size;
                self.ignore()?;
                At::Blank { size }
            }
            // Some readers take a bare line feed as the end of a line, others don't.
            (At::Extension { size }, 1..) if byte != b'\n' => {
                let size = *size;
                self.ignore()?;
                At::Extension { size }
            }
            (At::SizeLf { size: 0 } | At::TrailerLf, b'\n') => At::Trailers,
            (At::SizeLf { size }, b'\n') => At::Data { left: *size },
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size { size: 0, digits: 0 },
            (At::Trailers, b'\r') => At::LastLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::Trailers | At::Trailer, 1..) if byte != b'\n' => {
                self.ignore()?;
                At::Trailer
            }
            (At::LastLf, b'\n') => return Ok(true),
            _ => return Err(Error::Invalid("a chunk of the body is not valid")),
        };
        Ok(false)
    }

    fn ignore(&mut self) -> Result<(), Error> {
        self.ignored += 1;
        if self.ignored > MAX_IGNORED {
            return Err(Error::Invalid("the body's chunk extensions or trailers are too long"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &str) -> Result<Bytes, Error> {
        Framing::Chunked(Chunks::new()).decode(body.as_bytes()).map(|(_, data)| data)
    }

    #[test]
    fn only_white_space_or_an_extension_may_follow_the_chunk_size() {
        for body in ["3\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "3 ;a=b\r\nabc\r\n0;\r\n\r\n"] {
            assert_eq!(decoded(body).expect(body), "abc");
        }
        for body in ["3 4\r\nabc", "3 x\r\nabc", "3\tGET\r\nabc", "3x\r\nabc"] {
            assert!(decoded(body).is_err(), "{body:?}");
        }
    }
}
