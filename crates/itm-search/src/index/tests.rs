use std::fs;

use itm_core::output::{Existing, NewFolder};

use super::*;
use crate::fakes::{Colours, WIDTH, World, jpeg as made};
use crate::store::{FILES, index_folder};

/// Small pictures are JPEGs of their own whose longest side is bounded; they never grow.
#[test]
fn thumbnails_and_previews_are_small() {
    let world = World::new();
    world.write("a/wide.jpg", &made([9, 99, 9], [2000, 100]));
    world.write("a/thin.jpg", &made([9, 9, 99], [1, 900]));
    world.update(&Colours::default()).unwrap();
    let index = world.index();
    let size = |bytes: Vec<u8>| {
        let image = image::load_from_memory_with_format(&bytes, image::ImageFormat::Jpeg).unwrap();
        (image.width(), image.height())
    };
    for (path, thumbnail, preview) in [
        ("a/wide.jpg", (320, 16), (1600, 80)),
        ("a/thin.jpg", (1, 320), (1, 900)),
        ("a/red.jpg", (40, 30), (40, 30)),
    ] {
        let at = index.pictures().iter().position(|picture| picture.path == path).unwrap();
        assert_eq!(size(index.thumbnail(at).unwrap()), thumbnail, "{path}");
        assert_eq!(size(index.preview(at).unwrap()), preview, "{path}");
    }
    fs::remove_file(world.images.join("a/red.jpg")).unwrap();
    let at = index.pictures().iter().position(|picture| picture.path == "a/red.jpg").unwrap();
    let line = index.preview(at).unwrap_err().to_string();
    assert_eq!(
        line,
        "a/red.jpg: expected a photograph of the index, got none: it was moved or deleted"
    );
    assert!(index.thumbnail(at).is_ok());
}

/// A file that is missing, cut, changed, of another index or of another version is one line.
#[test]
fn damaged_files_are_named() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let folder = world.out.join("index");
    for name in ["pictures.jsonl", "bank.txt", "index.safetensors", "index.json"] {
        let path = folder.join(name);
        let whole = fs::read(&path).unwrap();
        for cut in [0, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            let line = Index::open(&world.out).unwrap_err().to_string();
            assert!(line.contains(name) && !line.contains('\n'), "{name} at {cut}: {line}");
        }
        let mut changed = whole.clone();
        changed[whole.len() / 3] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(Index::open(&world.out).is_err() || name == "index.json");
        fs::remove_file(&path).unwrap();
        assert!(Index::open(&world.out).unwrap_err().to_string().contains(name));
        fs::write(&path, whole).unwrap();
    }
    let path = folder.join("index.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (from, to, want) in [
        ("\"format\": 1", "\"format\": 2", "expected format 1, got format 2"),
        ("\"width\": 4", "\"width\": 5", "expected `rows` as F32 [6, 5], got F32 [6, 4]"),
        ("\"width\": 4", "\"width\": 0", "`rows`"),
    ] {
        assert!(whole.contains(from));
        fs::write(&path, whole.replace(from, to)).unwrap();
        let line = Index::open(&world.out).unwrap_err().to_string();
        assert!(line.contains(want), "{line}");
    }
    let line = Index::open(&world.images).unwrap_err().to_string();
    assert!(line.contains("index.json"), "{line}");
}

/// Files that belong together, with contents that no update writes.
#[test]
fn contents_that_no_update_writes_are_named() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let whole = Stored::read(&world.out).unwrap();
    let line = |change: &dyn Fn(&mut Stored)| {
        let mut stored = whole.clone();
        change(&mut stored);
        let folder = NewFolder::begin(&index_folder(&world.out), Existing::Only(&FILES)).unwrap();
        stored.write(folder).unwrap();
        let line = Index::open(&world.out).unwrap_err().to_string();
        line.rsplit('/').next().unwrap().to_owned()
    };
    for taken in ["2024", "2024-02-30T12:30:00", "2024-05-01 12:30:00", "2024-05-01T12:30:00Z"] {
        let want = format!("pictures.jsonl: expected moments as 2024-05-01T12:30:00, got {taken}");
        assert_eq!(line(&|stored| stored.pictures[1].taken = Some(taken.into())), want);
    }
    let want = "pictures.jsonl: expected pictures in the order of their paths, got others";
    assert_eq!(line(&|stored| stored.pictures.swap(0, 1)), want);
    let want = "index.safetensors: expected rows of length 1, got others";
    assert_eq!(line(&|stored| stored.tables.rows[WIDTH] += 1.0), want);
    assert_eq!(line(&|stored| stored.tables.bank[0] = f32::NAN), want);
}

/// A stranger's index could show any file.
#[cfg(unix)]
#[test]
fn a_thumbnail_that_is_a_link_is_refused() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let index = world.index();
    let path = thumbnail(&world.out, &index.pictures()[0].sha256);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(world.images.join("a/red.jpg"), &path).unwrap();
    let line = index.thumbnail(0).unwrap_err().to_string();
    assert!(line.ends_with(".jpg: expected a file of the index, got a link out of it"), "{line}");
}

/// A damaged index is made anew and does not stop an update.
#[test]
fn an_update_mends_a_damaged_index() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    fs::write(world.out.join("index/index.safetensors"), b"").unwrap();
    assert_eq!(world.update(&Colours::default()).unwrap().encoded, 6);
    assert_eq!(world.index().pictures().len(), 6);
}
