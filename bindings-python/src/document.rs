//! A JSON document as an index over its text: the kind and position of each value. A value is only read on demand, so
//! a document costs two allocations, however many members it has.

mod indexing;

use std::borrow::Cow;

use jiter::{Jiter, JsonValue, NumberAny};

/// A parsed JSON document that owns its text.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    /// The values in document order; those in an array or object follow it, and the name of a member precedes its
    /// value.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: Kind,
    /// Where its text begins; for a string, after the quote.
    start: u32,
    /// Where its text ends; for an array or object, the entry after its last one.
    end: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    False,
    True,
    Number,
    /// A string without escapes.
    Plain,
    /// A string with escapes.
    Escaped,
    Array,
    Object,
}

/// A value of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'d> {
    document: &'d Document,
    at: u32,
}

/// A value, by its kind.
#[derive(Debug)]
pub(crate) enum Json<'d> {
    Null,
    Bool(bool),
    Int(i64),
    /// The digits of a larger integer.
    Long(&'d str),
    Float(f64),
    Text(Cow<'d, str>),
    Array(Elements<'d>),
    Object(Members<'d>),
}

impl Document {
    /// Parses one JSON document. NaN and Infinity are allowed, as by Python's `json`. Errors: where it is malformed.
    pub(crate) fn parse(text: String) -> Result<Self, String> {
        Self::indexed(text, true)
    }

    /// The same for bytes, which must be valid UTF-8 if they are a JSON document.
    pub(crate) fn parse_bytes(json: &[u8]) -> Result<Self, String> {
        Self::parse(text_of(json)?)
    }

    /// The same for the body of a response, without NaN and Infinity: the core repairs it then.
    pub(crate) fn parse_body(json: &[u8]) -> Result<Self, String> {
        Self::indexed(text_of(json)?, false)
    }

    fn indexed(text: String, allows_nan: bool) -> Result<Self, String> {
        let length = u32::try_from(text.len());
        length.map_err(|_| "it is longer than 4 GiB".to_owned())?;
        let entries = indexing::entries(&text, allows_nan)?;
        Ok(Self { text, entries })
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.node(0)
    }

    /// The value at a [`Node::place`].
    pub(crate) fn node(&self, place: u32) -> Node<'_> {
        Node { document: self, at: place }
    }

    fn entry(&self, at: u32) -> Entry {
        self.entries[at as usize]
    }

    fn text(&self, entry: Entry) -> &str {
        &self.text[entry.start as usize..entry.end as usize]
    }

    fn string(&self, entry: Entry) -> Cow<'_, str> {
        if entry.kind == Kind::Plain {
            return Cow::Borrowed(self.text(entry));
        }
        let quoted = &self.text[entry.start as usize - 1..=entry.end as usize];
        let mut jiter = Jiter::new(quoted.as_bytes());
        Cow::Owned(jiter.next_str().expect("its escapes have been read").to_owned())
    }

    /// The entry after a value.
    fn behind(&self, at: u32) -> u32 {
        let entry = self.entry(at);
        if matches!(entry.kind, Kind::Array | Kind::Object) { entry.end } else { at + 1 }
    }
}

impl<'d> Node<'d> {
    /// Its position in its document, for [`Document::node`].
    pub(crate) fn place(self) -> u32 {
        self.at
    }

    pub(crate) fn json(self) -> Json<'d> {
        let entry = self.document.entry(self.at);
        match entry.kind {
            Kind::Null => Json::Null,
            Kind::False => Json::Bool(false),
            Kind::True => Json::Bool(true),
            Kind::Number => number(self.document.text(entry)),
            Kind::Plain | Kind::Escaped => Json::Text(self.document.string(entry)),
            Kind::Array => Json::Array(self.elements()),
            Kind::Object => Json::Object(self.members()),
        }
    }

    pub(crate) fn is_object(self) -> bool {
        self.document.entry(self.at).kind == Kind::Object
    }

    pub(crate) fn is_array(self) -> bool {
        self.document.entry(self.at).kind == Kind::Array
    }

    /// The members of an object in order; none for anything else.
    pub(crate) fn members(self) -> Members<'d> {
        let entry = self.document.entry(self.at);
        let end = if entry.kind == Kind::Object { entry.end } else { self.at };
        Members { document: self.document, at: self.at + 1, end }
    }

    /// The last member of an object with this name: a repeated name overrides, as in every common parser.
    pub(crate) fn member(self, name: &str) -> Option<Node<'d>> {
        let mut found = None;
        let mut members = self.members();
        while let Some((entry, value)) = members.step() {
            let is_it = match entry.kind {
                Kind::Plain => self.document.text(entry) == name,
                _ => self.document.string(entry) == name,
            };
            if is_it {
                found = Some(value);
            }
        }
        found
    }

    /// The elements of an array; none for anything else.
    pub(crate) fn elements(self) -> Elements<'d> {
        let entry = self.document.entry(self.at);
        let end = if entry.kind == Kind::Array { entry.end } else { self.at };
        Elements { document: self.document, at: self.at + 1, end }
    }

    /// The text of a string.
    pub(crate) fn text(self) -> Option<Cow<'d, str>> {
        let entry = self.document.entry(self.at);
        matches!(entry.kind, Kind::Plain | Kind::Escaped).then(|| self.document.string(entry))
    }
}

/// Bytes that may be a JSON document as text. Errors: they are not UTF-8; where they are malformed, if they are.
fn text_of(json: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(json);
    text.map(str::to_owned).map_err(|error| match JsonValue::parse(json, true) {
        Ok(_) => error.to_string(),
        Err(malformed) => malformed.description(json),
    })
}

fn number(text: &str) -> Json<'_> {
    if let Ok(number) = text.parse() {
        return Json::Int(number);
    }
    match NumberAny::from_bytes(text.as_bytes(), true) {
        Ok(NumberAny::Float(number)) => Json::Float(number),
        // Other malformed numbers have been rejected before.
        Ok(NumberAny::Int(_)) | Err(_) => Json::Long(text),
    }
}

/// The elements of an array.
#[derive(Debug, Clone)]
pub(crate) struct Elements<'d> {
    document: &'d Document,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Elements<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        let node = (self.at < self.end).then(|| self.document.node(self.at))?;
        self.at = self.document.behind(self.at);
        Some(node)
    }
}

/// The members of an object.
#[derive(Debug, Clone)]
pub(crate) struct Members<'d> {
    document: &'d Document,
    at: u32,
    end: u32,
}

impl<'d> Members<'d> {
    fn step(&mut self) -> Option<(Entry, Node<'d>)> {
        if self.at >= self.end {
            return None;
        }
        let value = self.at + 1;
        let name = self.document.entry(self.at);
        self.at = self.document.behind(value);
        Some((name, self.document.node(value)))
    }
}

impl<'d> Iterator for Members<'d> {
    type Item = (Cow<'d, str>, Node<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        let document = self.document;
        self.step().map(|(name, value)| (document.string(name), value))
    }
}
