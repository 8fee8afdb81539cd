//! `Record`: the class of every JSON object in a response.
//!
//! A record shares the document with its parents and children, so reading a member makes only that value. A record is
//! read-only; `to_dict()` returns a copy to change. Each read of an array returns a new list. No schema has a class of its
//! own: the generated stubs describe the types.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyType};

use crate::document::{Document, Json, Node};
use crate::generated::conveniences::JOINED_TEXTS;
use crate::generated::known_fields::KNOWN_FIELDS;
use crate::response::{Metadata, ResponseInfo};
use crate::serialize;

/// Python's keywords. A member with such a name is also an attribute, with `_` after it.
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Attributes of the class, which take precedence over members of the same name, as do all names that begin
/// with `__`.
const CLASS_ATTRIBUTES: &[&str] = &[
    "keys",
    "values",
    "items",
    "get",
    "to_dict",
    "to_json",
    "model_dump",
    "model_dump_json",
    "from_json",
    "_page",
    "_response",
    "_request_id",
];

/// The Python form of a document: records for objects, lists for arrays.
pub(crate) fn to_python(py: Python<'_>, document: Document) -> PyResult<Bound<'_, PyAny>> {
    if document.root().is_object() {
        return Ok(Bound::new(py, Record::whole(document))?.into_any());
    }
    let document = Arc::new(document);
    value_of(py, &document, document.root())
}

/// The Python form of a whole response: like [`to_python`], with the metadata if it is a record.
pub(crate) fn response_to_python(
    py: Python<'_>,
    document: Document,
    metadata: Arc<Metadata>,
    iterable: Option<&'static str>,
) -> PyResult<Py<PyAny>> {
    if document.root().is_object() {
        let record = Record { metadata: Some(metadata), iterable, ..Record::whole(document) };
        return Ok(Py::new(py, record)?.into_any());
    }
    Ok(to_python(py, document)?.unbind())
}

/// Parses a document into plain dicts and lists.
pub(crate) fn parse_plain<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    to_plain(py, Document::parse_bytes(json).map_err(PyValueError::new_err)?.root())
}

/// The value as plain dicts and lists.
fn to_plain<'py>(py: Python<'py>, value: Node<'_>) -> PyResult<Bound<'py, PyAny>> {
    convert(py, value, &|object| {
        let dict = PyDict::new(py);
        for (name, member) in object.members() {
            dict.set_item(&*name, to_plain(py, member)?)?;
        }
        Ok(dict.into_any())
    })
}

/// A value of a document, with records for objects.
fn value_of<'py>(py: Python<'py>, document: &Arc<Document>, value: Node<'_>) -> PyResult<Bound<'py, PyAny>> {
    convert(py, value, &|object| {
        let record =
            Record { document: Arc::clone(document), place: object.place(), metadata: None, iterable: None };
        Ok(Bound::new(py, record)?.into_any())
    })
}

fn convert<'py>(
    py: Python<'py>,
    value: Node<'_>,
    object: &impl Fn(Node<'_>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value.json() {
        Json::Null => py.None().into_bound(py),
        Json::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Json::Int(number) => number.into_pyobject(py)?.into_any(),
        Json::Long(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Json::Float(number) => number.into_pyobject(py)?.into_any(),
        Json::Text(text) => PyString::new(py, &text).into_any(),
        Json::Array(elements) => {
            let elements = elements.map(|element| convert(py, element, object));
            PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Json::Object(_) => object(value)?,
    })
}

/// A JSON object with attribute and item access.
#[pyclass(frozen, mapping, module = "gatewright")]
pub(crate) struct Record {
    document: Arc<Document>,
    /// The position of the object in it.
    place: u32,
    metadata: Option<Arc<Metadata>>,
    /// The member whose elements iteration yields, if this is a page of a list.
    iterable: Option<&'static str>,
}

impl Record {
    /// The record of a document that is an object.
    fn whole(document: Document) -> Self {
        let place = document.root().place();
        Self { document: Arc::new(document), place, metadata: None, iterable: None }
    }

    /// Errors (ValueError): it is not a JSON object.
    fn parse(document: Result<Document, String>) -> PyResult<Self> {
        let document = document.map_err(PyValueError::new_err)?;
        if !document.root().is_object() {
            return Err(PyValueError::new_err("the JSON document is not an object"));
        }
        Ok(Self::whole(document))
    }

    /// The object, for the serializer.
    pub(crate) fn object(&self) -> Node<'_> {
        self.document.node(self.place)
    }

    fn value<'py>(&self, py: Python<'py>, value: Node<'_>) -> PyResult<Bound<'py, PyAny>> {
        value_of(py, &self.document, value)
    }

    /// A text that the specification derives from the members: `output_text` of a response.
    fn joined_text(&self, name: &str) -> Option<String> {
        let (_, path, kind, member) = JOINED_TEXTS.iter().find(|text| text.0 == name)?;
        let (first, rest) = path.split_first()?;
        let list = self.object().member(first).filter(|list| list.is_array())?;
        let mut parts: Vec<Node<'_>> = list.elements().collect();
        for step in rest {
            let inner = parts.into_iter().filter_map(|part| part.member(step));
            parts = inner.flat_map(Node::elements).collect();
        }
        let is_text =
            |part: &Node<'_>| part.member("type").and_then(Node::text).is_some_and(|found| found == *kind);
        let texts = parts.iter().filter(|part| is_text(part)).filter_map(|part| part.member(member)?.text());
        Some(texts.collect())
    }

    /// A member, or the substitute for a missing one.
    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(value) = self.object().member(name) {
            return self.value(py, value);
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
        let names: Vec<_> = self.object().members().map(|(name, _)| name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// One level as a dict, whose views are `keys`, `values`, `items` and iteration.
    fn shallow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.object().members() {
            dict.set_item(&*name, self.value(py, value)?)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl Record {
    #[new]
    fn from_mapping(members: &Bound<'_, PyAny>) -> PyResult<Self> {
        let document = Document::parse_bytes(&serialize::to_json(members)?).map_err(PyValueError::new_err)?;
        if !document.root().is_object() {
            return Err(PyTypeError::new_err("Record() takes a mapping"));
        }
        Ok(Self::whole(document))
    }

    /// Reads a JSON object.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::parse(match json.cast::<PyString>() {
            Ok(text) => Document::parse(text.to_str()?.to_owned()),
            Err(_) => Document::parse_bytes(json.cast::<PyBytes>()?.as_bytes()),
        })
    }

    /// Members take precedence over class attributes: asking the class first would raise and drop an error for each
    /// member.
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

    /// Called only after the above has failed; raises its error, which pyo3 has dropped.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.attribute(py, name)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match name
            .cast::<PyString>()
            .ok()
            .map(|name| name.to_str())
            .transpose()?
            .and_then(|name| self.object().member(name))
        {
            Some(value) => self.value(py, value),
            None => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.object().member(name.to_str()?).is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> usize {
        self.object().members().count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let elements = self.iterable.and_then(|name| self.object().member(name));
        if let Some(elements) = elements.filter(|elements| elements.is_array()) {
            return Ok(self.value(py, elements)?.try_iter()?.into_any());
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
        match self.object().member(name) {
            Some(value) => self.value(py, value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// A copy as plain dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_plain(py, self.object())
    }

    /// The record as compact JSON text.
    fn to_json(&self) -> String {
        let mut json = Vec::new();
        serialize::write_parsed(self.object(), &mut json);
        String::from_utf8(json).expect("the writer copies only valid UTF-8")
    }

    /// A copy as plain dicts and lists, with the options of pydantic's models.
    #[pyo3(signature = (**options))]
    fn model_dump<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gatewright._dump")?.getattr("model_dump")?.call((slf,), options)
    }

    /// The record as JSON text, with the options of pydantic's models.
    #[pyo3(signature = (**options))]
    fn model_dump_json<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gatewright._dump")?.getattr("model_dump_json")?.call((slf,), options)
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
            let other_record = other.get();
            (Arc::ptr_eq(&self.document, &other_record.document) && self.place == other_record.place)
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
