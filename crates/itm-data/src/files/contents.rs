//! What a file is, in words: for the line that refuses it.

/// What the bytes of a file are, in a few words. Readers of arrays, pictures and JSON refuse a file with these words.
///
/// | first bytes | words |
/// |---|---|
/// | none | an empty file |
/// | `version https://git-lfs…` | a Git LFS pointer, with the size of the file that it stands for, and how to fetch it |
/// | an archive, array, table, model or picture of a known format | its name and usual endings |
/// | `<html`, `<!doctype` | an HTML page, which a server sends in place of a missing file |
/// | other text | text, with its beginning |
/// | other bytes | a file of no known kind |
///
/// ```
/// use itm_data::data::contents;
///
/// assert_eq!(contents(b"GIF89a..."), "a GIF picture");
/// assert_eq!(contents(b"0.5 0.25\n"), "text that begins \"0.5 0.25\"");
/// ```
pub fn contents(bytes: &[u8]) -> String {
    let kind = kind_of(bytes).or_else(|| text(bytes));
    kind.unwrap_or_else(|| "a file of no known kind".into())
}

/// [`contents`] of what is empty, a pointer, or no UTF-8 but of a known kind.
pub(super) fn kind_of(bytes: &[u8]) -> Option<String> {
    let length = (bytes.len() as u32).to_le_bytes();
    let from = |at: usize| bytes.get(at..).unwrap_or_default();
    let known = || KNOWN.into_iter().find(|&(at, magic, _)| from(at).starts_with(magic));
    let kind = match bytes {
        [] => Some("an empty file"),
        [b'B', b'M', rest @ ..] if rest.starts_with(&length) => Some("a BMP picture"),
        // Protocol 2 or later: what `pickle.dump` and old versions of `torch.save` write.
        [0x80, 2..=5, ..] => Some("a Python pickle"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("text in UTF-16: save it as UTF-8"),
        _ => known().map(|(.., name)| name),
    };
    pointer(bytes).or_else(|| kind.map(str::to_owned))
}

/// Where a format's bytes are, and what it is called. `RIFF` and `PK` begin several formats: the first match counts.
const KNOWN: [(usize, &[u8], &str); 20] = [
    (0, b"\x93NUMPY", "a NumPy array (.npy)"),
    (0, b"PK\x03\x04", "a zip archive (.npz, .pt, .zip?)"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (0, b"\x1f\x8b", "a gzip archive (.gz): unpack it first"),
    (0, b"BZh", "a bzip2 archive (.bz2): unpack it first"),
    (0, b"\xfd7zXZ\0", "an xz archive (.xz): unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive (.zst): unpack it first"),
    (257, b"ustar", "a tar archive (.tar): unpack it first"),
    (0, b"PAR1", "a Parquet table (.parquet)"),
    (0, b"ARROW1", "an Arrow table (.arrow, .feather)"),
    (0, b"\x89HDF", "an HDF5 file (.h5, .hdf5)"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (0, b"GIF8", "a GIF picture"),
    (8, b"WEBP", "a WebP picture"),
    (0, b"II*\0", "a TIFF picture"),
    (0, b"MM\0*", "a TIFF picture"),
    (0, b"%PDF", "a PDF document"),
    (8, b"{\"", "a safetensors file"),
    (4, b"ftyp", "an AVIF or HEIC picture, or a film"),
];

/// How a Git LFS pointer begins.
pub(super) const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The sentence on a Git LFS pointer: a clone without git-lfs has it in place of each large file.
fn pointer(bytes: &[u8]) -> Option<String> {
    let text = bytes.strip_prefix(POINTER)?;
    let text = String::from_utf8_lossy(&text[..text.len().min(1024)]).into_owned();
    let size = text.lines().find_map(|line| line.strip_prefix("size ")?.trim().parse::<u64>().ok());
    let of = size.map_or(String::new(), |size| format!(" of {size} bytes"));
    Some(format!("a Git LFS pointer to a file{of}: fetch it with `git lfs pull`"))
}

fn text(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(256)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The cut may be inside a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let text = valid.trim_start_matches('\u{feff}').trim_start();
    if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    if ["<!doctype html", "<html"].iter().any(|tag| lower.starts_with(tag)) {
        return Some("an HTML page (a server's answer in place of the file?)".into());
    }
    let line: String = text.lines().next().unwrap_or_default().chars().take(24).collect();
    match line.as_str() {
        "" => Some("a file of spaces only".into()),
        line => Some(format!("text that begins {}", super::excerpt(line.trim_end()))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_has_its_words() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5120\n";
        let mut bmp = b"BM\x1a\0\0\0".to_vec();
        bmp.resize(26, 0);
        let mut tar = vec![0; 300];
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, want) in [
            (&b""[..], "an empty file"),
            (
                pointer.as_bytes(),
                "a Git LFS pointer to a file of 5120 bytes: fetch it with `git lfs pull`",
            ),
            (b"\n <!DOCTYPE HTML><p>", "an HTML page (a server's answer in place of the file?)"),
            (b"PK\x03\x04rest", "a zip archive (.npz, .pt, .zip?)"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP picture"),
            (b"GIF89a", "a GIF picture"),
            (&bmp, "a BMP picture"),
            (b"MM\0*", "a TIFF picture"),
            (b"PAR1x", "a Parquet table (.parquet)"),
            (b"\x80\x04\x95", "a Python pickle"),
            (b"\x1f\x8b\x08", "a gzip archive (.gz): unpack it first"),
            (&tar, "a tar archive (.tar): unpack it first"),
            (b"\xff\xfea\0", "text in UTF-16: save it as UTF-8"),
            (b"\x02\0\0\0\0\0\0\0{}", "a file of no known kind"),
            (b"\x03\0\0\0\0\0\0\0{\"", "a safetensors file"),
            (b"a,b\n1,2\n", "text that begins \"a,b\""),
            (b"\n \n", "a file of spaces only"),
        ] {
            assert_eq!(contents(bytes), want);
        }
    }

    /// The text is read up to a fixed length, which may be inside a character.
    #[test]
    fn a_cut_character_is_still_text() {
        let text = "é".repeat(200);
        assert!(contents(&text.as_bytes()[1..]).starts_with("a file of no known kind"));
        let odd = format!("a{text}");
        assert!(
            contents(odd.as_bytes()).starts_with("text that begins"),
            "{}",
            contents(odd.as_bytes())
        );
    }

    proptest! {
        #[test]
        fn any_bytes_get_one_line(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let words = contents(&bytes);
            prop_assert!(!words.is_empty() && !words.contains(['\n', '\r']));
        }
    }
}
