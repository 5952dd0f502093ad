//! One tensor of a file of `torch.save`. Nothing of the file is run.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use itm_core::data::contents;
use itm_core::{Error, Result};
use pytorch_reader::PytorchReader;
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::array::{Array, ArrayFile};
use super::element::Element;
use super::text::{chosen, tensor_words};

/// The name of a tensor that is all of its file.
const ALONE: &str = "tensor";

/// The named tensor of a dictionary, its only tensor with two dimensions, or the tensor that the file is.
///
/// # Errors
/// If the file is damaged or is no file of tensors, there is no such tensor or several to choose from (the error lists their names), or
/// the numbers are not real numbers or bytes.
pub(super) fn array(place: &str, part: Option<&str>, path: &Path, bytes: &[u8]) -> Result<Array> {
    if !bytes.starts_with(b"PK") && !bytes.starts_with(b"\x80") {
        return Err(Error::invalid(place, "a file of torch.save", contents(bytes)));
    }
    let broken = |e: &dyn std::fmt::Display| Error::invalid(place, "a file of torch.save", e);
    let wrapped;
    let reader = match PytorchReader::new(path) {
        Ok(reader) => reader,
        Err(first) => {
            // The library reads dictionaries only.
            wrapped = wrapped_in_a_dictionary(bytes).ok_or_else(|| broken(&first))?;
            PytorchReader::new(wrapped.path()).map_err(|_| broken(&first))?
        }
    };
    let mut all = reader.keys();
    all.sort();
    let two = |name: &&str| reader.get(name).is_some_and(|t| t.shape().len() == 2);
    let matrices: Vec<_> = all.iter().map(String::as_str).filter(two).collect();
    let words = tensor_words("no tensors (NumPy arrays do not count)");
    let (name, found) = chosen(place, part, words, &matrices, &all, |name| reader.get(name))?;
    let element = Element::named(place, name, &format!("{:?}", found.dtype()))?;
    let size = found.shape().iter().try_fold(element.size(), |size, &n| size.checked_mul(n));
    // A stride of 0 repeats numbers without end; deflate packs at most a thousandfold.
    let fits = size.is_some_and(|size| size <= bytes.len().saturating_mul(1100));
    let got = format_args!("shape {:?}", found.shape());
    Error::unless(fits, format_args!("{place}:{name}"), "a tensor that the file holds", got)?;
    let stored = ArrayFile::Bytes(found.read().map_err(|e| broken(&e))?.into(), 0);
    Array::new(format!("{place}:{name}"), element, found.shape(), stored)
}

/// A copy of a file whose root is a dictionary with what was the root, `{"tensor": root}`; `None` if it is no archive of a pickle.
///
/// A pickle is a program for a stack: `}` puts a dictionary below all that follows, `X` its key, and `s` at the end sets the value.
fn wrapped_in_a_dictionary(bytes: &[u8]) -> Option<NamedTempFile> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let file = NamedTempFile::new().ok()?;
    let mut copy = ZipWriter::new(file.reopen().ok()?);
    for entry in 0..archive.len() {
        let of_entry = archive.by_index_raw(entry).ok()?;
        let name = of_entry.name().ok()?.into_owned();
        if !name.ends_with("/data.pkl") {
            copy.raw_copy_file(of_entry).ok()?;
            continue;
        }
        drop(of_entry);
        let mut program = Vec::new();
        archive.by_index(entry).ok()?.read_to_end(&mut program).ok()?;
        let [0x80, _version, inside @ .., b'.'] = program.as_slice() else { return None };
        let key = [&b"}X"[..], &(ALONE.len() as u32).to_le_bytes(), ALONE.as_bytes()].concat();
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        copy.start_file(name, options).ok()?;
        copy.write_all(&[&program[..2], &key, inside, b"s."].concat()).ok()?;
    }
    copy.finish().ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program that `torch.save` writes for a contiguous f32 tensor of 2 × 2, without its first two and its last byte.
    const TENSOR: &[u8] = b"ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01ctorch\nFloatStorage\nq\x02X\x01\x00\x00\x000q\x03X\x03\x00\x00\x00cpuq\x04K\x04tq\x05QK\x00K\x02K\x02\x86q\x06K\x02K\x01\x86q\x07\x89ccollections\nOrderedDict\nq\x08)Rq\x09tq\nRq\x0b";

    fn saved(program: &[u8]) -> (NamedTempFile, Vec<u8>) {
        let mut file = NamedTempFile::new().unwrap();
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let values = [1.0f32, 2.0, 3.0, 4.5].map(f32::to_le_bytes).concat();
        let program = [b"\x80\x02", program, b"."].concat();
        for (name, bytes) in [
            ("x/data.pkl", program),
            ("x/byteorder", b"little".to_vec()),
            ("x/data/0", values),
            ("x/version", b"3\n".to_vec()),
        ] {
            let options =
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            archive.start_file(name, options).unwrap();
            archive.write_all(&bytes).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    fn read(program: &[u8], part: Option<&str>) -> Result<Array> {
        let (file, bytes) = saved(program);
        array("x.pt", part, file.path(), &bytes)
    }

    #[test]
    fn a_tensor_alone_and_in_a_dictionary() {
        let in_dictionary = [b"}X\x01\x00\x00\x00a", TENSOR, b"s"].concat();
        for (program, name) in [(TENSOR, ALONE), (&in_dictionary, "a")] {
            for part in [None, Some(name)] {
                let found = read(program, part).unwrap();
                assert_eq!(found.place(), format!("x.pt:{name}"));
                let rows: Vec<_> = (0..found.rows()).map(|row| found.row_bytes(row)).collect();
                assert_eq!(
                    rows,
                    [[1.0f32, 2.0], [3.0, 4.5]].map(|v| v.map(f32::to_le_bytes).concat())
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let line = |program: &[u8], part| read(program, part).unwrap_err().to_string();
        assert_eq!(line(TENSOR, Some("b")), "x.pt: expected a tensor among \"tensor\", got \"b\"");
        let want = "x.pt: expected a tensor of 2 dimensions, got none among no tensors (NumPy arrays do not count)";
        for program in [&b"K\x05"[..], b"}X\x01\x00\x00\x00aK\x05s"] {
            assert_eq!(line(program, None), want);
        }
        let size = b"K\x02K\x02\x86q\x06K\x02K\x01\x86"; // shape and strides
        let repeated = b"M\x00\x10M\x00\x10\x86q\x06K\x00K\x00\x86"; // 4096 × 4096, strides of 0
        let at = TENSOR.windows(size.len()).position(|some| some == size).unwrap();
        let large = [&TENSOR[..at], repeated, &TENSOR[at + size.len()..]].concat();
        let want = "x.pt:tensor: expected a tensor that the file holds, got shape [4096, 4096]";
        assert_eq!(line(&large, None), want);
        let (file, bytes) = saved(TENSOR);
        for cut in [0, 3, 40, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(file.path(), &bytes[..cut]).unwrap();
            assert!(array("x.pt", None, file.path(), &bytes[..cut]).is_err(), "{cut}");
        }
        let page = array("x.pt", None, file.path(), b"<html>").unwrap_err().to_string();
        assert!(
            page.starts_with("x.pt: expected a file of torch.save, got an HTML page"),
            "{page}"
        );
    }
}
