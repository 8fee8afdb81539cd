//! `Record`: the class of every JSON object in a response.
//!
//! A record shares the parsed document with its parents and children, so reading a member copies only that value. A
//! record is read-only; `to_dict()` returns a copy to change. Each read of an array returns a new list. No schema has a
//! class of its own: the generated stubs describe the types.

use std::borrow::Cow;
use std::sync::Arc;

use jiter::{JsonObject, JsonValue, PartialMode};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyType};

use crate::generated::conveniences::JOINED_TEXTS;
use crate::generated::known_fields::KNOWN_FIELDS;
use crate::response::{Metadata, ResponseInfo};
use crate::serialize;

/// A parsed JSON document that owns its text.
pub(crate) type Value = JsonValue<'static>;

/// Python's keywords. A member with such a name is also an attribute, with `_` after it.
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Attributes of the class, which come before members of the same name, as do all that begin with `__`.
const CLASS_ATTRIBUTES: &[&str] = &[
    "keys",
    "values",
    "items",
    "get",
    "to_dict",
    "to_json",
    "from_json",
    "_page",
    "_response",
    "_request_id",
];

/// Parses one JSON document. The error says where it is malformed. NaN and Infinity are allowed, because some providers
/// send them.
pub(crate) fn parse(json: &[u8]) -> Result<Value, String> {
    Value::parse_owned(json, true, PartialMode::Off).map_err(|error| error.description(json))
}

/// The Python form of a value: records for objects, lists for arrays.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    convert(py, value, &|members| Ok(Bound::new(py, Record::new(members.clone()))?.into_any()))
}

/// The Python form of a whole response: like [`to_python`], with the metadata if it is a record.
pub(crate) fn response_to_python(
    py: Python<'_>,
    value: Value,
    metadata: Arc<Metadata>,
    iterable: Option<&'static str>,
) -> PyResult<Py<PyAny>> {
    match value {
        JsonValue::Object(members) => {
            Ok(Py::new(py, Record { members, metadata: Some(metadata), iterable })?.into_any())
        }
        other => Ok(to_python(py, &other)?.unbind()),
    }
}

/// Parses a document into plain dicts and lists.
pub(crate) fn parse_plain<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    to_plain(py, &parse(json).map_err(PyValueError::new_err)?)
}

/// The value as plain dicts and lists.
fn to_plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    convert(py, value, &|members| {
        let dict = PyDict::new(py);
        for (name, member) in members.iter() {
            dict.set_item(name.as_ref(), to_plain(py, member)?)?;
        }
        Ok(dict.into_any())
    })
}

fn convert<'py>(
    py: Python<'py>,
    value: &Value,
    object: &dyn Fn(&JsonObject<'static>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        JsonValue::Null => py.None().into_bound(py),
        JsonValue::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        JsonValue::Int(number) => number.into_pyobject(py)?.into_any(),
        JsonValue::BigInt(number) => py.get_type::<PyInt>().call1((number.to_string(),))?,
        JsonValue::Float(number) => number.into_pyobject(py)?.into_any(),
        JsonValue::Str(text) => PyString::new(py, text).into_any(),
        JsonValue::Array(values) => {
            let values = values.iter().map(|value| convert(py, value, object));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        JsonValue::Object(members) => object(members)?,
    })
}

/// A JSON object with attribute and item access.
#[pyclass(frozen, mapping, module = "gatewright")]
pub(crate) struct Record {
    members: JsonObject<'static>,
    metadata: Option<Arc<Metadata>>,
    /// The member whose elements iteration yields, if this is a page of a list.
    iterable: Option<&'static str>,
}

impl Record {
    fn new(members: JsonObject<'static>) -> Self {
        Self { members, metadata: None, iterable: None }
    }

    /// The members, for the serializer.
    pub(crate) fn members(&self) -> &JsonObject<'static> {
        &self.members
    }

    /// The last member with this name: a repeated name overrides, as in every common parser.
    fn find(&self, name: &str) -> Option<&Value> {
        self.members.iter().rev().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A text that the specification derives from the members: `output_text` of a response.
    fn joined_text(&self, name: &str) -> Option<String> {
        let (_, path, kind, member) = JOINED_TEXTS.iter().find(|text| text.0 == name)?;
        let (first, rest) = path.split_first()?;
        let JsonValue::Array(parts) = self.find(first)? else { return None };
        let mut parts: Vec<&Value> = parts.iter().collect();
        for step in rest {
            parts = parts
                .into_iter()
                .filter_map(|part| member_of(part, step))
                .filter_map(
                    |inner| if let JsonValue::Array(inner) = inner { Some(inner.iter()) } else { None },
                )
                .flatten()
                .collect();
        }
        let is_text = |value: &Value, wanted: &str| matches!(value, JsonValue::Str(text) if text == wanted);
        let mut joined = String::new();
        for part in
            parts.into_iter().filter(|part| member_of(part, "type").is_some_and(|ty| is_text(ty, kind)))
        {
            if let Some(JsonValue::Str(text)) = member_of(part, member) {
                joined.push_str(text);
            }
        }
        Some(joined)
    }

    /// A member, or what stands for one that is missing.
    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(value) = self.find(name) {
            return to_python(py, value);
        }
        if let Some(text) = self.joined_text(name) {
            return Ok(PyString::new(py, &text).into_any());
        }
        // A declared member that the server omitted is None, even if it is required: scripts expect this of
        // `choice.message.tool_calls` and `choice.finish_reason`.
        if KNOWN_FIELDS.binary_search(&name).is_ok() {
            return Ok(py.None().into_bound(py));
        }
        if let Some(keyword) = name.strip_suffix('_').filter(|stem| KEYWORDS.contains(stem)) {
            return self.attribute(py, keyword);
        }
        Err(PyAttributeError::new_err(format!("no member {name:?}; there are: {}", self.names())))
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|(name, _)| name.as_ref()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// One level as a dict, whose views are `keys`, `values`, `items` and iteration.
    fn shallow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.members.iter() {
            dict.set_item(name.as_ref(), to_python(py, value)?)?;
        }
        Ok(dict)
    }
}

/// The last member of an object with this name.
fn member_of<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let JsonValue::Object(members) = value else { return None };
    members.iter().rev().find_map(|(key, value)| (key == name).then_some(value))
}

#[pymethods]
impl Record {
    #[new]
    fn from_mapping(members: &Bound<'_, PyAny>) -> PyResult<Self> {
        match parse(&serialize::to_json(members)?).map_err(PyValueError::new_err)? {
            JsonValue::Object(members) => Ok(Self::new(members)),
            _ => Err(PyTypeError::new_err("Record() takes a mapping")),
        }
    }

    /// Reads a JSON object.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        let value = match json.cast::<PyString>() {
            Ok(text) => parse(text.to_str()?.as_bytes()),
            Err(_) => parse(json.cast::<PyBytes>()?.as_bytes()),
        };
        match value.map_err(PyValueError::new_err)? {
            JsonValue::Object(members) => Ok(Self::new(members)),
            _ => Err(PyValueError::new_err("the JSON document is not an object")),
        }
    }

    /// Members first, then what the class has: asking the class first would raise and drop an error for each member.
    fn __getattribute__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = name.to_str()?;
        if CLASS_ATTRIBUTES.contains(&text) || text.starts_with("__") {
            static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let generic = GENERIC.get_or_try_init(slf.py(), || {
                slf.py().get_type::<PyAny>().getattr("__getattribute__").map(Bound::unbind)
            })?;
            return match generic.bind(slf.py()).call1((slf, name)) {
                Err(missing) if missing.is_instance_of::<PyAttributeError>(slf.py()) => {
                    slf.get().attribute(slf.py(), text)
                }
                found => found,
            };
        }
        slf.get().attribute(slf.py(), text)
    }

    /// Asked only after the above has failed; raises its error, which pyo3 has dropped.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.attribute(py, name)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match name
            .cast::<PyString>()
            .ok()
            .map(|name| name.to_str())
            .transpose()?
            .and_then(|name| self.find(name))
        {
            Some(value) => to_python(py, value),
            None => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.find(name.to_str()?).is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> usize {
        self.members.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(elements @ JsonValue::Array(_)) = self.iterable.and_then(|name| self.find(name)) {
            return Ok(to_python(py, elements)?.try_iter()?.into_any());
        }
        Ok(self.shallow(py)?.try_iter()?.into_any())
    }

    /// Names of the members, in the order of the response.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shallow(py)?.call_method0("keys")
    }

    /// Values of the members, in the order of the response.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shallow(py)?.call_method0("values")
    }

    /// Names and values of the members, in the order of the response.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shallow(py)?.call_method0("items")
    }

    /// The member with this name, or `default`.
    #[pyo3(signature = (name, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.find(name) {
            Some(value) => to_python(py, value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// A copy as plain dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_plain(py, &JsonValue::Object(self.members.clone()))
    }

    /// The record as compact JSON text.
    fn to_json(&self) -> String {
        let mut json = Vec::new();
        serialize::write_members(&self.members, &mut json);
        String::from_utf8(json).expect("the writer copies only valid UTF-8")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Record({})", self.to_dict(py)?.repr()?))
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let names = slf.get_type().call_method1("__dir__", (slf.get_type(),));
        let names = names.or_else(|_| slf.py().get_type::<PyAny>().call_method1("__dir__", (slf,)))?;
        names.call_method1("extend", (slf.get().keys(slf.py())?,))?;
        Ok(names)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let equal = if let Ok(other) = other.cast::<Record>() {
            Arc::ptr_eq(&self.members, &other.get().members)
                || self.to_dict(py)?.eq(other.get().to_dict(py)?)?
        } else if other.is_instance_of::<PyDict>() {
            self.to_dict(py)?.eq(other)?
        } else {
            return Ok(py.NotImplemented());
        };
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    /// Pickles as its JSON, without the response's metadata.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let json = slf.get().to_json();
        let (restore, arguments) = match slf.get().iterable {
            Some(iterable) => ("_page", (json, iterable).into_pyobject(slf.py())?.into_any()),
            None => ("from_json", (json,).into_pyobject(slf.py())?.into_any()),
        };
        Ok((slf.get_type().getattr(restore)?, arguments))
    }

    /// Restores a page of a list.
    #[classmethod]
    fn _page(class: &Bound<'_, PyType>, json: &Bound<'_, PyAny>, iterable: &str) -> PyResult<Self> {
        let page = Self::from_json(class, json)?;
        let mut known = gatewright::operations::ALL.iter().filter_map(|operation| operation.iterable);
        let iterable = known.find(|member| *member == iterable);
        Ok(Self { iterable, ..page })
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Status, headers, request id and attempts of the response; None on an inner record.
    #[getter]
    fn _response(&self) -> Option<ResponseInfo> {
        self.metadata.clone().map(ResponseInfo::new)
    }

    /// The request id of the response; None on an inner record.
    #[getter]
    fn _request_id(&self) -> Option<Cow<'_, str>> {
        self.metadata.as_ref()?.request_id.as_deref().map(Cow::Borrowed)
    }
}
