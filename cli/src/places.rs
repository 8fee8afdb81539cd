//! File arguments: `-` means standard input or output, and no command overwrites a file that it reads.

use std::io::{self, Write as _};
use std::path::Path;

use gatewright::whole_file::{same_place, write_file};

use crate::exit::Failure;

/// Whether an argument means standard input or output.
pub(crate) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Errors: the output is one of the input files, which would be lost.
pub(crate) fn keep(inputs: &[(&str, Option<&Path>)], out: Option<&Path>) -> Result<(), Failure> {
    let Some(out) = out.filter(|out| !is_stdin(out)) else { return Ok(()) };
    let replaced = |file: &Path| !is_stdin(file) && same_place(file, out);
    match inputs.iter().find(|(_, file)| file.is_some_and(replaced)) {
        Some((name, _)) => Err(same_file(name, "--out", out)),
        None => Ok(()),
    }
}

/// The error for two arguments that must not name the same file.
pub(crate) fn same_file(one: &str, other: &str, file: &Path) -> Failure {
    Failure::Usage(format!(
        "{one} and {other} are the same file, {}: one would overwrite the other; choose another file",
        file.display()
    ))
}

/// Errors: the extension of an output file doesn't match the file's format. `what`: a description of the files, such as
/// "images
/// are PNG files".
pub(crate) fn check_extension(out: &Path, format: &str, what: &str) -> Result<(), Failure> {
    let Some(extension) = out.extension() else { return Ok(()) };
    if extension.eq_ignore_ascii_case(format) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{what}, but the name {} implies another format: use {}",
        out.display(),
        out.with_extension(format).display()
    )))
}

/// Writes text to a file, completely or not at all, or to standard output.
pub(crate) fn write(text: &str, place: Option<&Path>) -> Result<(), Failure> {
    match place {
        Some(place) if !is_stdin(place) => write_file(place, text.as_bytes())
            .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", place.display()))),
        _ => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            Ok(stdout.flush()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_implying_another_format_is_rejected() {
        let check = |name| check_extension(Path::new(name), "png", "images are PNG files");
        for good in ["cat.png", "cat.PNG", "cat"] {
            assert!(check(good).is_ok(), "{good}");
        }
        let refused = check("a/cat.jpg").expect_err("not a PNG");
        assert_eq!(
            refused.message(),
            "images are PNG files, but the name a/cat.jpg implies another format: use a/cat.png"
        );
    }
}
