//! Python values to JSON bytes, in one pass and without `json.dumps`.
//!
//! Errors state the path of a value that JSON cannot represent: `messages[0].content: …`.

use std::fmt::Write as _;
use std::io::Write as _;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString, PyTuple};

use crate::document::{Json, Node};
use crate::not_given::NotGiven;
use crate::record::Record;

/// Maximum nesting of containers; guards against a list that contains itself.
const MAX_DEPTH: usize = 200;

/// Why a value cannot be sent.
enum Problem {
    /// A value without a JSON form.
    Type(String),
    /// A value of a type that JSON supports, but which itself can't be represented.
    Value(String),
    /// Python itself raised.
    Raised(PyErr),
}

/// A problem and the path to it, innermost step first.
struct Refusal {
    problem: Problem,
    path: Vec<Step>,
}

enum Step {
    Member(String),
    Element(usize),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, path: Vec::new() }
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Problem::Raised(error).into()
    }
}

impl Refusal {
    fn under(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    fn into_error(self) -> PyErr {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(name),
                Step::Member(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                Step::Element(index) => {
                    // Writing to a String cannot fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        let located = |message: String| if path.is_empty() { message } else { format!("{path}: {message}") };
        match self.problem {
            Problem::Type(message) => PyTypeError::new_err(located(message)),
            Problem::Value(message) => PyValueError::new_err(located(message)),
            Problem::Raised(error) => error,
        }
    }
}

/// JSON of one value.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut json = Vec::with_capacity(256);
    write_value(value, 0, &mut json).map_err(Refusal::into_error)?;
    Ok(json)
}

/// JSON of a request body: `members` without those not given.
pub(crate) fn request_body(members: &Bound<'_, PyDict>) -> PyResult<Vec<u8>> {
    let mut json = Vec::with_capacity(512);
    let mut separator = b'{';
    for (name, value) in members.iter() {
        if value.is_instance_of::<NotGiven>() {
            continue;
        }
        json.push(separator);
        separator = b',';
        write_member(&name, &value, 0, &mut json).map_err(Refusal::into_error)?;
    }
    if separator == b'{' {
        json.push(b'{');
    }
    json.push(b'}');
    Ok(json)
}

fn write_value(value: &Bound<'_, PyAny>, depth: usize, json: &mut Vec<u8>) -> Result<(), Refusal> {
    if depth > MAX_DEPTH {
        return Err(Problem::Value(format!("nested deeper than {MAX_DEPTH} levels")).into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        write_string(text_of(text)?, json);
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_pairs(dict.iter(), depth, json)?;
    } else if let Ok(list) = value.cast::<PyList>() {
        write_elements(list.iter(), depth, json)?;
    } else if value.is_none() {
        json.extend_from_slice(b"null");
    } else if let Ok(flag) = value.cast::<PyBool>() {
        json.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
    } else if let Ok(number) = value.cast::<PyInt>() {
        write_int(number, json)?;
    } else if let Ok(number) = value.cast::<PyFloat>() {
        write_float(number.value(), json)?;
    } else if let Ok(record) = value.cast::<Record>() {
        write_parsed(record.get().object(), json);
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        write_elements(tuple.iter(), depth, json)?;
    } else {
        write_other(value, depth, json)?;
    }
    Ok(())
}

/// The rarer containers: any other mapping or sequence that is not bytes.
fn write_other(value: &Bound<'_, PyAny>, depth: usize, json: &mut Vec<u8>) -> Result<(), Refusal> {
    let kind = value.get_type().name()?.to_string();
    if value.is_instance_of::<NotGiven>() {
        return Err(Problem::Type("NOT_GIVEN can only replace a whole argument".to_owned()).into());
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let mut pairs = Vec::new();
        for pair in mapping.items()?.iter() {
            pairs.push(pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?);
        }
        return write_pairs(pairs.into_iter(), depth, json);
    }
    if matches!(kind.as_str(), "bytes" | "bytearray" | "memoryview") {
        return Err(Problem::Type(format!("{kind} has no JSON form; encode it as text (base64)")).into());
    }
    if let Ok(sequence) = value.cast::<PySequence>() {
        return write_elements(sequence.to_list()?.iter(), depth, json);
    }
    Err(Problem::Type(format!("{kind} has no JSON form")).into())
}

fn write_pairs<'py>(
    pairs: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    depth: usize,
    json: &mut Vec<u8>,
) -> Result<(), Refusal> {
    json.push(b'{');
    for (index, (name, value)) in pairs.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write_member(&name, &value, depth, json)?;
    }
    json.push(b'}');
    Ok(())
}

fn write_member(
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    depth: usize,
    json: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let Ok(name) = name.cast::<PyString>() else {
        let kind = name.get_type().name()?.to_string();
        return Err(
            Problem::Type(format!("the names of a JSON object must be of type str, not {kind}")).into()
        );
    };
    let name = text_of(name)?;
    write_string(name, json);
    json.push(b':');
    write_value(value, depth + 1, json).map_err(|refusal| refusal.under(Step::Member(name.to_owned())))
}

fn write_elements<'py>(
    elements: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
    json: &mut Vec<u8>,
) -> Result<(), Refusal> {
    json.push(b'[');
    for (index, element) in elements.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write_value(&element, depth + 1, json).map_err(|refusal| refusal.under(Step::Element(index)))?;
    }
    json.push(b']');
    Ok(())
}

fn text_of<'a>(text: &'a Bound<'_, PyString>) -> Result<&'a str, Refusal> {
    text.to_str().map_err(|_| {
        Problem::Value("the text contains a lone surrogate, which UTF-8 cannot encode".to_owned()).into()
    })
}

fn write_int(number: &Bound<'_, PyInt>, json: &mut Vec<u8>) -> Result<(), Refusal> {
    if let Ok(number) = number.extract::<i64>() {
        write_display(number, json);
    } else {
        // int.__repr__ rather than str(): an IntEnum's text is its name.
        let digits = number.py().get_type::<PyInt>().call_method1("__repr__", (number,))?;
        json.extend_from_slice(digits.cast::<PyString>().map_err(PyErr::from)?.to_str()?.as_bytes());
    }
    Ok(())
}

fn write_float(number: f64, json: &mut Vec<u8>) -> Result<(), Refusal> {
    if !number.is_finite() {
        return Err(Problem::Value(format!("JSON cannot represent {number}")).into());
    }
    write_finite(number, json);
    Ok(())
}

/// Writes parsed JSON back, with the members in their original order.
pub(crate) fn write_parsed(value: Node<'_>, json: &mut Vec<u8>) {
    match value.json() {
        Json::Null => json.extend_from_slice(b"null"),
        Json::Bool(true) => json.extend_from_slice(b"true"),
        Json::Bool(false) => json.extend_from_slice(b"false"),
        Json::Int(number) => write_display(number, json),
        Json::Long(digits) => json.extend_from_slice(digits.as_bytes()),
        Json::Float(number) if number.is_nan() => json.extend_from_slice(b"NaN"),
        Json::Float(number) if number.is_infinite() => {
            json.extend_from_slice(if number > 0.0 { b"Infinity" } else { b"-Infinity" });
        }
        Json::Float(number) => write_finite(number, json),
        Json::Text(text) => write_string(&text, json),
        Json::Array(elements) => {
            json.push(b'[');
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    json.push(b',');
                }
                write_parsed(element, json);
            }
            json.push(b']');
        }
        Json::Object(members) => {
            json.push(b'{');
            for (index, (name, member)) in members.enumerate() {
                if index > 0 {
                    json.push(b',');
                }
                write_string(&name, json);
                json.push(b':');
                write_parsed(member, json);
            }
            json.push(b'}');
        }
    }
}

fn write_string(text: &str, json: &mut Vec<u8>) {
    serde_json::to_writer(json, text).expect("writing text to memory cannot fail");
}

fn write_finite(number: f64, json: &mut Vec<u8>) {
    serde_json::to_writer(json, &number).expect("writing a number to memory cannot fail");
}

fn write_display(value: impl std::fmt::Display, json: &mut Vec<u8>) {
    write!(json, "{value}").expect("writing a number to memory cannot fail");
}
