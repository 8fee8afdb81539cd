//! Files that a caller gives to a call: a path, bytes, a file object, or a tuple of a name, a content and a media type.

use bytes::Bytes;
use gatewright::runtime::{FormMember, operation_by_id};
use gatewright::{FilePart, MAX_FORM_BYTES};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use crate::not_given::NotGiven;

/// How many bytes of a file object are read at a time: `read` reserves what it is called with.
const MAX_CHUNK_BYTES: usize = 1024 * 1024;

/// The files of a form, each with the name of its member.
type Files = Vec<(String, FilePart)>;

/// A file that has been read.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct ReadFile(FilePart);

/// Whether an operation takes files.
#[pyfunction]
pub(crate) fn takes_files(operation: &str) -> bool {
    operation_by_id(operation).is_some_and(|operation| operation.form.iter().any(|member| member.is_file))
}

/// A copy of a body whose files have been read. `asyncio` calls this in a thread, so that a slow file doesn't stop its loop.
#[pyfunction]
pub(crate) fn read_files<'py>(operation: &str, body: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let members = body.copy()?;
    let form = operation_by_id(operation).map_or(&[][..], |operation| operation.form);
    for FormMember { name, is_list, .. } in form.iter().filter(|member| member.is_file) {
        let Some(value) = given(body, name)? else { continue };
        let read = |value: &Bound<'py, PyAny>| Bound::new(value.py(), ReadFile(file(name, value)?));
        if *is_list {
            let files: Vec<_> = items(name, &value)?.iter().map(read).collect::<PyResult<_>>()?;
            members.set_item(name, PyList::new(body.py(), files)?)?;
        } else {
            members.set_item(name, read(&value)?)?;
        }
    }
    Ok(members)
}

/// A member of a body, unless it is omitted or None.
fn given<'py>(body: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = body.get_item(name)?;
    Ok(value.filter(|value| !value.is_none() && !value.is_instance_of::<NotGiven>()))
}

/// The other members of a body, and its files. The body keeps them: a call may be read again.
pub(crate) fn split_files<'py>(
    form: &[FormMember],
    body: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyDict>, Files)> {
    let members = body.copy()?;
    let mut files = Vec::new();
    for FormMember { name, is_list, .. } in form.iter().filter(|member| member.is_file) {
        if members.contains(name)? {
            members.del_item(name)?;
        }
        let Some(value) = given(body, name)? else { continue };
        if *is_list {
            for item in items(name, &value)? {
                files.push(((*name).to_owned(), file(name, &item)?));
            }
        } else {
            files.push(((*name).to_owned(), file(name, &value)?));
        }
    }
    Ok((members, files))
}

/// The items of a list of files. Errors: TypeError for a single one, which may be iterable, too.
fn items<'py>(member: &str, value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_single = is_bytes(value) || value.is_instance_of::<PyString>() || value.hasattr("read")?;
    if is_single {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{member}: must be a list of files, not {kind}")));
    }
    value.try_iter()?.collect()
}

fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
}

/// A file. Without a name of its own it has that of the member.
fn file(member: &str, value: &Bound<'_, PyAny>) -> PyResult<FilePart> {
    if let Ok(read) = value.cast::<ReadFile>() {
        return Ok(read.get().0.clone());
    }
    let Ok(tuple) = value.cast::<PyTuple>() else {
        let (name, content) = content(member, value)?;
        return Ok(FilePart::new(name.unwrap_or_else(|| member.to_owned()), content));
    };
    if !(2..=3).contains(&tuple.len()) {
        let message = format!("{member}: a tuple is (name, content) or (name, content, media_type)");
        return Err(PyTypeError::new_err(message));
    }
    let text = |index: usize, what: &str| -> PyResult<String> {
        let item = tuple.get_item(index)?;
        let kind = item.get_type().name()?;
        item.extract()
            .map_err(|_| PyTypeError::new_err(format!("{member}: {what} must be a str, not {kind}")))
    };
    let (_, content) = content(member, &tuple.get_item(1)?)?;
    let part = FilePart::new(text(0, "the name")?, content);
    if tuple.len() == 3 && !tuple.get_item(2)?.is_none() {
        return Ok(part.with_media_type(text(2, "the media type")?));
    }
    Ok(part)
}

/// The content of a file, and its name if it has one.
fn content(member: &str, value: &Bound<'_, PyAny>) -> PyResult<(Option<String>, Bytes)> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok((None, Bytes::copy_from_slice(bytes.as_bytes())));
    }
    if is_bytes(value) {
        let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
        return Ok((None, Bytes::copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes())));
    }
    if value.hasattr("__fspath__")? {
        let opened = value.py().import("io")?.call_method1("open", (value, "rb"))?;
        let content = read(member, &opened);
        opened.call_method0("close")?;
        return Ok((name_of(value)?, content?));
    }
    if value.hasattr("read")? {
        let name = value.getattr("name").ok().filter(PyAnyMethods::is_instance_of::<PyString>);
        let name = name.map(|name| name_of(&name)).transpose()?.flatten();
        return Ok((name, read(member, value)?));
    }
    let kind = value.get_type().name()?;
    // A text that came from elsewhere must not become the content of a local file.
    let way_out = if value.is_instance_of::<PyString>() {
        "for a path, pass pathlib.Path(…); for a content, its bytes"
    } else {
        "pass a path (pathlib.Path), bytes, a file object or (name, content)"
    };
    Err(PyTypeError::new_err(format!("{member}: {kind} is not a file; {way_out}")))
}

/// The last part of a path.
fn name_of(path: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let name: String =
        path.py().import("pathlib")?.call_method1("PurePath", (path,))?.getattr("name")?.extract()?;
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// The rest of a file object, as far as it can be sent.
fn read(member: &str, file: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let mut content: Vec<u8> = Vec::new();
    loop {
        let chunk = file.call_method1("read", (MAX_CHUNK_BYTES,))?;
        let Ok(bytes) = chunk.cast::<PyBytes>() else {
            let kind = chunk.get_type().name()?;
            let way_out = if chunk.is_instance_of::<PyString>() { "; open it in binary mode" } else { "" };
            return Err(PyTypeError::new_err(format!(
                "{member}: read() returned {kind}, not bytes{way_out}"
            )));
        };
        if bytes.as_bytes().is_empty() {
            return Ok(content.into());
        }
        content.extend_from_slice(bytes.as_bytes());
        if content.len() > MAX_FORM_BYTES {
            let message = format!("{member}: the file is longer than {MAX_FORM_BYTES} bytes, the maximum");
            return Err(PyValueError::new_err(message));
        }
    }
}
