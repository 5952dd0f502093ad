//! Judgements of a test split and the JSON that names its captions. The first byte chooses the file; the others are whole.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::Pairs;
use itm_core::data::{Judgements, Manifest, SplitData};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

const FILES: [(&str, &str); 3] = [
    (
        "dataset_x.json",
        r#"{"images": [{"filename": "a.jpg", "cocoid": 7, "sentences": [{"sentid": 70}, {"sentid": 71}]}, {"filename": "b.jpg", "cocoid": 9, "sentences": [{"sentid": 90}, {"sentid": 91}]}]}"#,
    ),
    ("eccv_image_to_caption.json", r#"{"7": [70, 91]}"#),
    ("eccv_caption_to_image.json", r#"{"70": [7], "91": [7, 9]}"#),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&chosen, bytes)) = bytes.split_first() else { return };
    for (at, (name, whole)) in FILES.into_iter().enumerate() {
        let bytes = if at == usize::from(chosen) % FILES.len() { bytes } else { whole.as_bytes() };
        fs::write(FOLDER.path().join(name), bytes).expect("a file");
    }
    let test = SplitData {
        images: vec!["a.jpg".into(), "b.jpg".into()],
        captions: vec!["a dog".into(); 4],
        pairs: Pairs::uniform(2, 2),
        ..SplitData::default()
    };
    if let Ok(sets) = Judgements::of_folder(FOLDER.path(), &test, &mut Manifest::default()) {
        assert!(sets.iter().all(|set| !set.i2t.is_empty() && !set.t2i.is_empty()));
    }
});
