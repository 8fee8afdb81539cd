//! Binary event streams (`application/vnd.amazon.eventstream`). A message has a prelude (its length, the length of its
//! headers, and a checksum of both), headers, a payload, and a checksum of all of it.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::bounds::gathering::capacity_with;

/// Maximum size of a message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum size of the headers of a message, in bytes: that of the format.
const MAX_HEADERS_BYTES: usize = 128 * 1024;
/// Maximum number of headers of a message.
const MAX_HEADERS: usize = 64;
/// Maximum size of an error message of the stream, in bytes. The rest is cut.
const MAX_ERROR_BYTES: usize = 4096;

const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// Why the bytes are not an event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EventStreamError {
    #[error("a checksum of the event stream is wrong")]
    Checksum,
    #[error("a message of the event stream is longer than {MAX_MESSAGE_BYTES} bytes")]
    MessageTooLong,
    #[error("the headers of a message of the event stream are longer than {MAX_HEADERS_BYTES} bytes")]
    HeadersTooLong,
    #[error("a message of the event stream has more than {MAX_HEADERS} headers")]
    TooManyHeaders,
    #[error("a message of the event stream states lengths that contradict each other")]
    Length,
    #[error("a header of a message of the event stream is malformed")]
    Header,
    #[error("a header of a message of the event stream has the unknown type {0}")]
    HeaderType(u8),
    #[error("a message of the event stream says twice what it is")]
    Duplicate,
    #[error("a message of the event stream does not say what it is")]
    NoType,
    #[error("the event stream ends within a message")]
    Truncated,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// An event, by its name.
    Event { name: String, payload: Bytes },
    /// An error that the service documents, by its name. It ends the stream.
    Exception { name: String, payload: Bytes },
    /// Another error. It ends the stream.
    Error { code: String, message: String },
}

/// Decodes an event stream from pieces of any size. After an error, it has no further messages.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    failed: Option<EventStreamError>,
}

impl Decoder {
    /// Takes the next bytes. All messages have to be taken before the next call, so that the buffer holds less than one
    /// message and these bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next message that has arrived whole.
    pub(crate) fn next_message(&mut self) -> Result<Option<Message>, EventStreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.decode().inspect_err(|error| {
            self.failed = Some(*error);
            self.buffer = BytesMut::new();
        })
    }

    /// The memory of what has been received of an incomplete message, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// The same at most with further bytes.
    pub(crate) fn memory_with(&self, bytes: &[u8]) -> usize {
        capacity_with(&self.buffer, bytes.len())
    }

    /// Says whether the stream may end here.
    pub(crate) fn finish(&self) -> Result<(), EventStreamError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.buffer.is_empty() => Ok(()),
            None => Err(EventStreamError::Truncated),
        }
    }

    fn decode(&mut self) -> Result<Option<Message>, EventStreamError> {
        let Some(prelude) = self.buffer.first_chunk::<PRELUDE_BYTES>() else { return Ok(None) };
        let (mut lengths, checksum) = prelude.split_at(PRELUDE_BYTES - CHECKSUM_BYTES);
        // A length is used only once its checksum is right.
        if crc32fast::hash(lengths).to_be_bytes() != *checksum {
            return Err(EventStreamError::Checksum);
        }
        let (length, headers_length) = (lengths.get_u32() as usize, lengths.get_u32() as usize);
        if length > MAX_MESSAGE_BYTES {
            return Err(EventStreamError::MessageTooLong);
        }
        if headers_length > MAX_HEADERS_BYTES {
            return Err(EventStreamError::HeadersTooLong);
        }
        if length < PRELUDE_BYTES + headers_length + CHECKSUM_BYTES {
            return Err(EventStreamError::Length);
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let mut message = if self.buffer.len() == length {
            // The memory of a long message is released with it.
            std::mem::take(&mut self.buffer).freeze()
        } else {
            self.buffer.split_to(length).freeze()
        };
        let checksum = message.split_off(length - CHECKSUM_BYTES);
        if crc32fast::hash(&message).to_be_bytes() != *checksum {
            return Err(EventStreamError::Checksum);
        }
        let payload = message.split_off(PRELUDE_BYTES + headers_length);
        Headers::read(&message[PRELUDE_BYTES..])?.into_message(payload).map(Some)
    }
}

/// The headers that say what a message is.
#[derive(Default)]
struct Headers<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> Headers<'a> {
    fn read(mut bytes: &'a [u8]) -> Result<Self, EventStreamError> {
        let mut headers = Self::default();
        let mut count = 0;
        while !bytes.is_empty() {
            count += 1;
            if count > MAX_HEADERS {
                return Err(EventStreamError::TooManyHeaders);
            }
            let [name_length] = *array(&mut bytes)?;
            let name = part(&mut bytes, usize::from(name_length))?;
            let text = value(&mut bytes)?;
            let known = match name {
                b":message-type" => &mut headers.message_type,
                b":event-type" => &mut headers.event_type,
                b":exception-type" => &mut headers.exception_type,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_message,
                [] => return Err(EventStreamError::Header),
                _ => continue,
            };
            let text = text.and_then(|text| str::from_utf8(text).ok()).ok_or(EventStreamError::Header)?;
            if known.replace(text).is_some() {
                return Err(EventStreamError::Duplicate);
            }
        }
        Ok(headers)
    }

    fn into_message(self, payload: Bytes) -> Result<Message, EventStreamError> {
        let named = |name: Option<&str>| name.map(str::to_owned).ok_or(EventStreamError::NoType);
        match self.message_type {
            Some("event") => Ok(Message::Event { name: named(self.event_type)?, payload }),
            Some("exception") => Ok(Message::Exception { name: named(self.exception_type)?, payload }),
            Some("error") => {
                let message = self.error_message.unwrap_or_default();
                let message = message[..message.floor_char_boundary(MAX_ERROR_BYTES)].to_owned();
                Ok(Message::Error { code: named(self.error_code)?, message })
            }
            _ => Err(EventStreamError::NoType),
        }
    }
}

/// Skips the value of a header. Returns it if it is a text.
fn value<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, EventStreamError> {
    let [kind] = *array(bytes)?;
    let length = match kind {
        // True and false.
        0 | 1 => 0,
        // Integers of one, two, four and eight bytes.
        2 => 1,
        3 => 2,
        4 => 4,
        // A time has eight bytes, too.
        5 | 8 => 8,
        // Bytes and a text state their length.
        6 | 7 => usize::from(u16::from_be_bytes(*array(bytes)?)),
        // A UUID.
        9 => 16,
        unknown => return Err(EventStreamError::HeaderType(unknown)),
    };
    let value = part(bytes, length)?;
    Ok((kind == 7).then_some(value))
}

fn array<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], EventStreamError> {
    let (array, rest) = bytes.split_first_chunk().ok_or(EventStreamError::Header)?;
    *bytes = rest;
    Ok(array)
}

fn part<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], EventStreamError> {
    let (part, rest) = bytes.split_at_checked(length).ok_or(EventStreamError::Header)?;
    *bytes = rest;
    Ok(part)
}

/// A message with texts as headers.
#[cfg(test)]
pub(crate) fn encode(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let length = |of: usize| u32::try_from(of).expect("a short message").to_be_bytes();
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).expect("a short name"));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&u16::try_from(value.len()).expect("a short value").to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let whole = PRELUDE_BYTES + encoded.len() + payload.len() + CHECKSUM_BYTES;
    let mut bytes = [length(whole), length(encoded.len())].concat();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(&encoded);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests;
