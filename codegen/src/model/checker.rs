//! The validator that is generated from a JSON Schema: it reads the bytes of a document once; see `lower/checker.rs`.

use indexmap::IndexMap;

/// The checker of a schema.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// The objects by name, each after those in it; the last is the document.
    pub objects: IndexMap<String, ObjectNode>,
    /// Arrays by name.
    pub lists: IndexMap<String, ListNode>,
    /// Enums by name.
    pub enums: IndexMap<String, EnumNode>,
    /// Enums whose values a deployment chooses: name and place in the schema.
    pub configured: IndexMap<String, String>,
}

/// The checkers of the schemas of the public test suite, as one.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    pub checker: Checker,
    pub cases: Vec<SuiteCase>,
    /// Why the other groups have no checker.
    pub refused: Vec<String>,
}

/// A schema of the suite.
#[derive(Debug)]
pub(crate) struct SuiteCase {
    /// The name of its object.
    pub name: String,
    pub file: String,
    /// The place of its group in the file.
    pub group: usize,
    /// The type that it was given; empty if it is as the suite has it.
    pub kind: &'static str,
}

/// An object without other members than these.
#[derive(Debug)]
pub(crate) struct ObjectNode {
    /// Place in the schema.
    pub pointer: String,
    pub members: IndexMap<String, ValueNode>,
    /// Names of the members that are required.
    pub required: Vec<String>,
    /// What conditions ask of members.
    pub tests: Vec<Test>,
    pub conditions: Vec<Condition>,
}

#[derive(Debug)]
pub(crate) struct ListNode {
    pub pointer: String,
    pub item: ValueNode,
    pub min_items: u64,
    pub unique: bool,
}

#[derive(Debug)]
pub(crate) struct EnumNode {
    pub pointer: String,
    pub values: Vec<String>,
}

/// A value, or null if it is nullable.
#[derive(Debug)]
pub(crate) struct ValueNode {
    pub nullable: bool,
    pub node: Node,
}

#[derive(Debug)]
pub(crate) enum Node {
    Boolean,
    Integer {
        least: Option<i64>,
        most: Option<i64>,
    },
    Text {
        least: u64,
        most: Option<u64>,
        format: Option<Format>,
        /// The beginning: characters from the first to the second, repeated if the third says so.
        pattern: Vec<(u8, u8, bool)>,
    },
    /// Name of the enum.
    Enum(String),
    Configured(String),
    List(String),
    Object(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Uri,
}

/// Whether a member, if it is there, is like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub member: String,
    pub is: Is,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Is {
    /// The value of an enum with this index.
    EnumValue(usize),
    Integer(i64),
    AtLeast(i64),
    AtMost(i64),
    /// An object that passes the test with this index.
    Passing(usize),
}

/// What an object has to fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The member is there.
    Has(String),
    /// The test with this index passes.
    Passes(usize),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    /// The second, if the first holds.
    If(Box<(Condition, Condition)>),
}
