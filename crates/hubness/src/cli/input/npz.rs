//! One array of a `.npz` archive.

use std::io::{Cursor, Read};

use itm_core::data::FileBytes;
use itm_core::{Error, Result};
use zip::ZipArchive;

use super::scale::is_scale;
use super::text::chosen;

/// The name of an array, its bytes as a `.npy` file, and the names of all arrays. Without `part` the archive must hold one
/// array.
///
/// # Errors
/// If the archive is damaged, has no such array or several to choose from (the error lists their names), or holds no array,
/// as the `.pt` files of PyTorch.
pub(crate) fn array(
    place: &str,
    part: Option<&str>,
    bytes: &[u8],
) -> Result<(String, FileBytes, Vec<String>)> {
    let damaged =
        || Error::invalid(place, "a whole .npz archive", "one that is cut short or damaged");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| damaged())?;
    let named = |name: &str| name.strip_suffix(".npy").map(String::from);
    let names: Vec<_> = archive.file_names().flatten().filter_map(|name| named(&name)).collect();
    let arrays: Vec<_> = names.iter().map(String::as_str).filter(|name| !is_scale(name)).collect();
    let got = "a zip archive without any (.pt?)";
    Error::unless(!names.is_empty(), place, "a .npz archive of arrays", got)?;
    let words = ["an array beside its scale", "FILE:NAME, to choose an array", "an array", ""];
    let find = |name: &str| names.iter().find(|of| *of == name);
    let (name, _) = chosen(place, part, words, &arrays, &names, find)?;
    let mut file = archive.by_name(&format!("{name}.npy")).map_err(|_| damaged())?;
    let mut array = Vec::new(); // grows with what is there: no size is trusted
    file.read_to_end(&mut array).map_err(|_| damaged())?; // checks the checksum
    Ok((name.to_owned(), array.into(), names))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::Array;
    use super::super::tests::files::npy;

    /// An archive as `numpy.savez` and `numpy.savez_compressed` write it.
    fn npz(method: zip::CompressionMethod, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let options = SimpleFileOptions::default().compression_method(method);
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn two() -> Vec<u8> {
        let files = [
            ("image.npy", npy(&[2, 2], &[1f32, 2.0, 3.0, 4.0])),
            ("text.npy", npy(&[1, 2], &[5f64, 6.0])),
        ];
        npz(zip::CompressionMethod::Deflated, &files)
    }

    fn refused(part: Option<&str>, bytes: Vec<u8>) -> String {
        Array::parse("a.npz", part, bytes).unwrap_err().to_string()
    }

    #[test]
    fn arrays_are_chosen_by_name() {
        let array = Array::parse("a.npz", Some("text"), two()).unwrap();
        let mut row = [0.0; 2];
        array.row_into(0, &mut row);
        assert_eq!((array.rows(), array.place(), row), (1, "a.npz:text", [5.0, 6.0]));
        let one = npz(zip::CompressionMethod::Stored, &[("x.npy", npy(&[2, 1], &[1f32, 2.0]))]);
        assert_eq!(Array::parse("a.npz", None, one).unwrap().rows(), 2);
    }

    #[test]
    fn what_is_no_such_array_is_one_line() {
        let none = npz(zip::CompressionMethod::Stored, &[("data.pkl", vec![0x80, 2])]);
        for (part, bytes, want) in [
            (None, two(), "a.npz: expected FILE:NAME, to choose an array, got \"image\", \"text\""),
            (Some("x"), two(), "a.npz: expected an array among \"image\", \"text\", got \"x\""),
            (
                None,
                none,
                "a.npz: expected a .npz archive of arrays, got a zip archive without any (.pt?)",
            ),
        ] {
            assert_eq!(refused(part, bytes), want);
        }
        let cut = two();
        let line = refused(Some("text"), cut[..cut.len() - 30].to_vec());
        assert!(line.starts_with("a.npz: expected a whole .npz archive"), "{line}");
    }

    proptest! {
        #[test]
        fn a_changed_archive_gets_an_answer(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
            let mut bytes = two();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Array::parse("a.npz", Some("text"), bytes.clone());
            bytes.truncate(cut.index(bytes.len()));
            let _ = Array::parse("a.npz", None, bytes);
        }
    }
}
