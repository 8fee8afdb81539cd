//! Reads the text of a document once and records where its values are. `jiter` reports malformed text.

use jiter::{Jiter, NumberAny, Peek};

use super::{Entry, Kind};

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 200;
/// A number with at most this many digits always fits into a 64-bit integer or a float; longer ones are parsed
/// to make sure.
const PLAIN_NUMBER: usize = 18;
/// Bytes of text per entry of the initial capacity, and the maximum initial capacity.
const BYTES_AN_ENTRY: usize = 8;
const FIRST_ENTRIES: usize = 1024;

/// The values of a document that is at most 4 GiB long. Errors: where it is malformed.
pub(super) fn entries(text: &str, allows_nan: bool) -> Result<Vec<Entry>, String> {
    let room = (text.len() / BYTES_AN_ENTRY + 4).min(FIRST_ENTRIES);
    let jiter = Jiter::new(text.as_bytes());
    let mut indexing = Indexing {
        text: text.as_bytes(),
        jiter: if allows_nan { jiter.with_allow_inf_nan() } else { jiter },
        entries: Vec::with_capacity(room),
    };
    indexing.document()?;
    Ok(indexing.entries)
}

/// Reads a text once and records its values.
struct Indexing<'t> {
    text: &'t [u8],
    jiter: Jiter<'t>,
    entries: Vec<Entry>,
}

impl Indexing<'_> {
    fn document(&mut self) -> Result<(), String> {
        let read = self.jiter.peek().map_err(Malformed::from).and_then(|peek| self.value(peek, 0));
        let read = read.and_then(|()| Ok(self.jiter.finish()?));
        read.map_err(|malformed| match malformed {
            Malformed::Json(error) => error.description(&self.jiter),
            Malformed::Deep => format!("recursion limit exceeded at {}", self.jiter.current_position()),
            Malformed::Number(error) => error.description(self.text),
        })
    }

    fn value(&mut self, peek: Peek, depth: usize) -> Result<(), Malformed> {
        let start = self.jiter.current_index();
        let kind = match peek {
            Peek::String => {
                let string = self.jiter.known_bytes()?;
                let kind = kind_of(string);
                let end = start + 1 + string.len();
                self.note(kind, start + 1, end);
                return Ok(());
            }
            Peek::Object => return self.object(depth + 1),
            Peek::Array => return self.array(depth + 1),
            Peek::Null => {
                self.jiter.known_null()?;
                Kind::Null
            }
            Peek::True | Peek::False => {
                if self.jiter.known_bool(peek)? {
                    Kind::True
                } else {
                    Kind::False
                }
            }
            _ => {
                let length = self.jiter.known_number_bytes(peek)?.len();
                if length > PLAIN_NUMBER {
                    let number = &self.text[start..start + length];
                    NumberAny::from_bytes(number, true).map_err(|error| {
                        Malformed::Number(jiter::JsonError { index: start + error.index, ..error })
                    })?;
                }
                Kind::Number
            }
        };
        let end = self.jiter.current_index();
        self.note(kind, start, end);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), Malformed> {
        let own = self.begin(Kind::Array, depth)?;
        let mut next = self.jiter.known_array()?;
        while let Some(peek) = next {
            self.value(peek, depth)?;
            next = self.jiter.array_step()?;
        }
        self.end(own);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), Malformed> {
        let own = self.begin(Kind::Object, depth)?;
        let mut name = self.jiter.next_object_bytes()?.map(|name| place(self.text, name));
        while let Some((kind, start, end)) = name {
            self.note(kind, start, end);
            let peek = self.jiter.peek()?;
            self.value(peek, depth)?;
            name = self.jiter.next_key_bytes()?.map(|name| place(self.text, name));
        }
        self.end(own);
        Ok(())
    }

    fn begin(&mut self, kind: Kind, depth: usize) -> Result<usize, Malformed> {
        if depth > MAX_DEPTH {
            return Err(Malformed::Deep);
        }
        let own = self.entries.len();
        self.note(kind, self.jiter.current_index(), 0);
        Ok(own)
    }

    fn end(&mut self, own: usize) {
        self.entries[own].end = short(self.entries.len());
    }

    fn note(&mut self, kind: Kind, start: usize, end: usize) {
        self.entries.push(Entry { kind, start: short(start), end: short(end) });
    }
}

/// Why a text is not a document.
enum Malformed {
    Json(jiter::JiterError),
    Number(jiter::JsonError),
    Deep,
}

impl From<jiter::JiterError> for Malformed {
    fn from(error: jiter::JiterError) -> Self {
        Self::Json(error)
    }
}

/// The kind of the inside of a string, and its position in the text.
fn place(text: &[u8], string: &[u8]) -> (Kind, usize, usize) {
    let start = string.as_ptr().addr() - text.as_ptr().addr();
    (kind_of(string), start, start + string.len())
}

fn kind_of(string: &[u8]) -> Kind {
    if memchr::memchr(b'\\', string).is_some() { Kind::Escaped } else { Kind::Plain }
}

/// A position in a text of at most 4 GiB, in which each value takes at least a byte.
fn short(place: usize) -> u32 {
    u32::try_from(place).expect("the length of the text was checked")
}
