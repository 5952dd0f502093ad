use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::Index;
use crate::fakes::{Colours, World, jpeg};

/// The contents of the files of an index by name, without the lock and the journal.
fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut open) = (BTreeMap::new(), vec![out.to_owned()]);
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(out).unwrap().display().to_string();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

fn paths(index: &Index) -> Vec<&str> {
    index.pictures().iter().map(|picture| picture.path.as_str()).collect()
}

fn shown(world: &World, error: &Error) -> String {
    let line = error.to_string().replace(&*world.out.display().to_string(), "OUT");
    line.replace(&*world.images.canonicalize().unwrap().display().to_string(), "IMAGES")
}

/// Nothing goes through the model twice, wherever the folder stands.
#[test]
fn a_folder_may_move() {
    let (mut world, colours) = (World::new(), Colours::default());
    world.update(&colours).unwrap();
    let moved = world.images.with_file_name("moved");
    fs::rename(&world.images, &moved).unwrap();
    world.images = moved;
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (6, 0, 0));
    assert_eq!(world.index().folder(), world.images.canonicalize().unwrap());
}

/// An index is replaced only if it is of this folder, by whatever name, or of a folder that has moved here.
#[test]
fn the_index_of_another_folder_stays() {
    let (mut world, colours) = (World::new(), Colours::default());
    world.update(&colours).unwrap();
    let before = files(&world.out);
    let first = world.images.canonicalize().unwrap();
    world.images = first.with_file_name("others");
    world.write("a/new.jpg", &jpeg([90, 90, 0], [50, 60]));
    let refused = |world: &World| {
        let line = shown(world, &world.update(&Colours::default()).unwrap_err());
        let want = "OUT: expected an index of IMAGES, or another --out, got one of ";
        assert_eq!(line, format!("{want}{}", first.display()));
        assert_eq!(files(&world.out), before);
    };
    refused(&world);
    fs::copy(first.join("a/red.jpg"), world.images.join("a/red.jpg")).unwrap();
    refused(&world); // a copy: the first folder is still there
    fs::remove_file(world.images.join("a/red.jpg")).unwrap();
    let away = first.with_file_name("away");
    fs::rename(&first, &away).unwrap();
    refused(&world); // nothing in common: the first folder may be on a disk that is not there now
    fs::copy(away.join("a/red.jpg"), world.images.join("a/red.jpg")).unwrap();
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (2, 1, 5));
}

/// Refused before a picture goes through the model.
#[test]
fn a_bank_of_few_queries_or_of_lines_is_refused() {
    let (mut world, colours) = (World::new(), Colours::default());
    world.bank[0] = "a\nb".into();
    let line = shown(&world, &world.update(&colours).unwrap_err());
    assert_eq!(line, "bank: expected each query on one line, got one on several");
    world.bank.truncate(3);
    let line = shown(&world, &world.update(&colours).unwrap_err());
    assert_eq!(line, "bank: expected at least 8 queries, got 3");
    assert_eq!(colours.seen.load(Relaxed), 0);
}

/// Neither the list of pictures nor the index could say the name.
#[cfg(unix)]
#[test]
fn a_folder_whose_name_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let mut world = World::new();
    let odd = world.images.with_file_name(std::ffi::OsStr::from_bytes(b"p\xff"));
    if fs::rename(&world.images, &odd).is_err() {
        return; // a file system whose names are text
    }
    world.images = odd;
    let line = world.update(&Colours::default()).unwrap_err().to_string();
    assert!(line.ends_with("expected a folder whose path is UTF-8, got another"), "{line}");
}

/// As root, every folder opens.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_opened_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let closed = world.images.join("b");
    let set = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
    set(0o000);
    let opens = fs::read_dir(&closed).is_ok();
    let done = world.update(&Colours::default());
    set(0o755);
    let done = done.unwrap();
    assert_eq!(done.left_out.iter().any(|(path, _)| path == "b"), !opens);
    assert_eq!(done.pictures < 6, !opens);

    // A folder that is closed later keeps its pictures. One beside it whose name begins alike has its own fate.
    world.write("b2/brown.jpg", &jpeg([90, 60, 30], [20, 20]));
    world.update(&Colours::default()).unwrap();
    let before = files(&world.out);
    fs::remove_dir_all(world.images.join("b2")).unwrap();
    set(0o000);
    let done = world.update(&Colours::default());
    set(0o755);
    let done = done.unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (6, 0, 1));
    assert_eq!(done.left_out.is_empty(), opens);
    let index = world.index();
    assert!((0..6).all(|k| index.thumbnail(k).is_ok()));
    world.write("b2/brown.jpg", &jpeg([90, 60, 30], [20, 20]));
    assert_eq!(world.update(&Colours::default()).unwrap().encoded, 1);
    let rows = |files: &BTreeMap<String, Vec<u8>>| files["index/index.safetensors"].clone();
    assert_eq!(rows(&files(&world.out)), rows(&before));
}

#[test]
fn an_index_follows_its_folder() {
    let (world, colours) = (World::new(), Colours::default());
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (6, 6, 0));
    let first = files(&world.out);
    assert_eq!(first.keys().filter(|name| name.starts_with("thumbnails/")).count(), 6);
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (6, 0, 0));
    assert_eq!(files(&world.out), first);

    // Moved, changed, deleted, new, and a second copy.
    let at = |path: &str| world.images.join(path);
    let moved = world.index().row(0).to_vec();
    assert_eq!(paths(&world.index())[0], "a/blue.jpg");
    fs::create_dir(at("c")).unwrap();
    fs::rename(at("a/blue.jpg"), at("c/sea.jpg")).unwrap();
    world.write("a/red.jpg", &jpeg([10, 90, 10], [33, 20]));
    fs::remove_file(at("b/black.jpg")).unwrap();
    world.write("c/new.jpg", &jpeg([90, 90, 0], [50, 60]));
    fs::copy(at("b/green.jpg"), at("c/green again.jpg")).unwrap();
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (7, 2, 1)); // black
    let index = world.index();
    let want = [
        "a/red.jpg",
        "a/white.jpg",
        "b/green.jpg",
        "b/yellow.jpg",
        "c/green again.jpg",
        "c/new.jpg",
        "c/sea.jpg",
    ];
    assert_eq!(paths(&index), want);
    assert_eq!(index.row(6), moved);
    assert_eq!((index.row(4), index.pictures()[0].size), (index.row(2), [33, 20]));
    assert_eq!(colours.seen.load(Relaxed), 8);
    let thumbnails =
        files(&world.out).keys().filter(|name| name.starts_with("thumbnails/")).count();
    assert_eq!(thumbnails, 6); // the two greens share one; those of the old red and of black have gone

    // One of two equal files.
    fs::remove_file(at("c/green again.jpg")).unwrap();
    let done = world.update(&colours).unwrap();
    assert_eq!((done.pictures, done.encoded, done.gone), (6, 0, 1));

    // What this program has not written it does not remove.
    let hash = "ab".repeat(32);
    let own = ["2020/mum.jpg", "ab/mum.jpg", "cd/HASH.jpg", "ab/HASH.png"]
        .map(|path| world.out.join("thumbnails").join(path.replace("HASH", &hash)));
    let old = thumbnail(&world.out, &hash);
    for path in own.iter().chain([&old]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    world.update(&colours).unwrap();
    assert!(own.iter().all(|path| path.is_file()) && !old.exists());

    // Another model sees everything again.
    let other = Colours { version: 1, ..Colours::default() };
    assert_eq!(world.update(&other).unwrap().encoded, 6);
}

#[test]
fn what_cannot_be_read_is_listed() {
    let world = World::new();
    let whole = jpeg([1, 2, 3], [64, 64]);
    world.write("a/cut.jpg", &whole[..whole.len() / 2]);
    world.write("a/text.png", b"not a picture");
    world.write("a/empty.jpg", b"");
    for path in ["a/1.HEIC", "b/2.heic", "b/3.gif", "b/notes.txt", "b/.hidden.gif"] {
        world.write(path, b"of another kind");
    }
    let done = world.update(&Colours::default()).unwrap();
    assert_eq!(done.pictures, 6);
    let names: Vec<_> = done.left_out.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, ["*.gif", "*.heic", "a/cut.jpg", "a/empty.jpg", "a/text.png"]);
    assert_eq!(done.left_out[1].1, "*.heic: expected JPEG, PNG or WebP, got 2 of another kind");
    assert_eq!(world.index().manifest.left_out, done.left_out);
    // Mended, they come in; unmended, they are listed again.
    world.write("a/cut.jpg", &whole);
    let done = world.update(&Colours::default()).unwrap();
    assert_eq!((done.pictures, done.encoded, done.left_out.len()), (7, 1, 4));

    let none = World::new();
    fs::remove_dir_all(&none.images).unwrap();
    fs::create_dir(&none.images).unwrap();
    let line = shown(&none, &none.update(&Colours::default()).unwrap_err());
    assert!(line.ends_with("expected photographs (.jpg, .jpeg, .png, .webp), got none"), "{line}");
    assert!(!none.out.exists()); // nothing is left that looks like an index
    none.write("x.jpg", b"no");
    let line = shown(&none, &none.update(&Colours::default()).unwrap_err());
    assert!(
        line.contains("expected a photograph that can be read, got x.jpg: expected "),
        "{line}"
    );
    fs::remove_dir_all(&none.images).unwrap();
    assert!(none.update(&Colours::default()).is_err());
}

#[cfg(unix)]
#[test]
fn names_that_nothing_can_show_are_listed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let black = fs::read(world.images.join("b/black.jpg")).unwrap();
    for name in [&b"b/caf\xe9.jpg"[..], b"a/two\nlines.jpg", b"notes\xff.txt"] {
        fs::write(world.images.join(OsStr::from_bytes(name)), &black).unwrap();
    }
    fs::create_dir(world.images.join(OsStr::from_bytes(b"sk\xff"))).unwrap();
    let done = world.update(&Colours::default()).unwrap();
    assert_eq!(done.pictures, 6);
    let names: Vec<_> = done.left_out.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, ["a/two\\nlines.jpg", "b/caf\u{fffd}.jpg", "sk\u{fffd}"]);
    // A backslash is a letter here.
    let odd = "b/back\\slash.jpg";
    world.write(odd, &jpeg([3, 4, 5], [9, 9]));
    let again = world.update(&Colours::default()).unwrap();
    assert_eq!((again.pictures, again.left_out.len()), (7, 3));
    let index = world.index();
    assert!(index.preview(paths(&index).iter().position(|path| *path == odd).unwrap()).is_ok());
    let want =
        "a/two\\nlines.jpg: expected a name in UTF-8 without control characters, got another";
    assert_eq!(done.left_out[0].1, want);
}

#[cfg(unix)]
#[test]
fn hidden_folders_and_links_are_left_out() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret.jpg"), jpeg([5, 5, 5], [9, 9])).unwrap();
    for path in
        [".git/x.jpg", "@eaDir/x.jpg", "a/.hidden/x.jpg", "a/.x.jpg", "a/@eaDir/y/x.jpg", "a/x.txt"]
    {
        world.write(path, &jpeg([7, 7, 7], [9, 9]));
    }
    symlink(elsewhere.path(), world.images.join("folder")).unwrap();
    symlink(elsewhere.path().join("secret.jpg"), world.images.join("link.jpg")).unwrap();
    symlink(&world.images, world.images.join("a/circle")).unwrap();
    assert_eq!(world.update(&Colours::default()).unwrap().pictures, 6);

    // A photograph that becomes a link later is not shown, nor one in a folder that became a link.
    let index = world.index();
    let at = |path: &str| paths(&index).iter().position(|p| *p == path).unwrap();
    assert!(index.preview(at("a/red.jpg")).is_ok());
    fs::remove_file(world.images.join("a/red.jpg")).unwrap();
    symlink(elsewhere.path().join("secret.jpg"), world.images.join("a/red.jpg")).unwrap();
    let line = index.preview(at("a/red.jpg")).unwrap_err().to_string();
    assert_eq!(line, "a/red.jpg: expected a photograph of the index, got a link");
    fs::rename(world.images.join("b"), elsewhere.path().join("b")).unwrap();
    symlink(elsewhere.path().join("b"), world.images.join("b")).unwrap();
    let line = index.preview(at("b/green.jpg")).unwrap_err().to_string();
    assert_eq!(line, "b/green.jpg: expected a photograph of the index, got a link");
}

/// The folder of the index may stand among the photographs, and beside another index, also one that is not whole.
#[test]
fn thumbnails_of_an_index_are_no_photographs() {
    let mut world = World::new();
    for out in ["index of these", "index of these", "b/another"] {
        world.out = world.images.join(out);
        assert_eq!(world.update(&Colours::default()).unwrap().pictures, 6);
    }
    world.out = world.images.join("stopped");
    many(&world);
    let asked = AtomicUsize::new(0);
    let second = || asked.fetch_add(1, Relaxed) == 1;
    assert!(world.update_until(&Colours::default(), &second).is_err());
    world.out = world.images.with_file_name("beside");
    assert_eq!(world.update(&Colours::default()).unwrap().pictures, 46);

    world.out = world.images.join("../photographs");
    let line = world.update(&Colours::default()).unwrap_err().to_string();
    assert!(
        line.ends_with("expected another folder than the photographs', got the same"),
        "{line}"
    );
    assert!(!world.images.join("thumbnails").exists() && !world.images.join("index.tmp").exists());
}

fn many(world: &World) {
    for k in 0..40u8 {
        world.write(&format!("many/{k:02}.jpg"), &jpeg([k * 6, 255 - k * 6, k], [20, 20]));
    }
}

/// A stopped update leaves the old index as it was, and the next goes on. A journal that a kill has cut anywhere costs only the
/// rows that were cut.
#[test]
fn a_stop_and_a_kill_lose_nothing() {
    let (world, whole) = (World::new(), World::new());
    many(&whole);
    whole.update(&Colours::default()).unwrap();
    world.update(&Colours::default()).unwrap();
    many(&world);
    let before = files(&world.out.join("index"));
    let asked = AtomicUsize::new(0);
    let second = || asked.fetch_add(1, Relaxed) == 2;
    let line = world.update_until(&Colours::default(), &second).unwrap_err().to_string();
    assert_eq!(
        line,
        "itm index: expected 46 pictures, got a signal after picture 38; the same command goes on from there"
    );
    assert_eq!(files(&world.out.join("index")), before);
    let journal = world.out.join("encoded.part");
    let left = fs::read(&journal).unwrap();
    let want = whole.index();
    let rows = |index: &Index| (0..46).flat_map(|k| index.row(k).to_vec()).collect::<Vec<f32>>();
    for cut in [left.len(), left.len() - 1, left.len() - 20, left.len() / 2, 60, 3, 0] {
        fs::write(&journal, &left[..cut]).unwrap();
        let out = world.out.clone();
        let copy = tempfile::tempdir().unwrap();
        copy_folder(&out, copy.path());
        let mut world = world.clone();
        world.out = copy.path().to_owned();
        let done = world.update(&Colours::default()).unwrap();
        let least = if cut == left.len() { 8 } else { 9 };
        assert!(
            done.encoded >= least && done.encoded <= 40,
            "{} after a cut at {cut}",
            done.encoded
        );
        assert_eq!(done.encoded == 8, cut == left.len(), "a cut at {cut}");
        assert_eq!(rows(&world.index()), rows(&want));
        assert!(!world.out.join("encoded.part").exists());
    }
    // Zeros, as a power cut leaves them, are no rows, and another text is no hash.
    let (mut zeros, mut no_hash) = (left.clone(), left);
    let end = zeros.len();
    zeros[end - 16..].fill(0);
    let key = b"\"sha256\":\"";
    let hash = no_hash.windows(key.len()).rposition(|at| at == key).unwrap() + key.len();
    no_hash[hash + 1..hash + 3].copy_from_slice("é".as_bytes());
    for damaged in [zeros, no_hash] {
        fs::write(&journal, damaged).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_folder(&world.out, copy.path());
        let mut world = world.clone();
        world.out = copy.path().to_owned();
        assert_eq!(world.update(&Colours::default()).unwrap().encoded, 9);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for (name, bytes) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn one_update_at_a_time() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    world.write("new.jpg", &jpeg([3, 4, 5], [8, 8]));
    let line = std::sync::Mutex::new(String::new());
    let meanwhile = || {
        let error = world.update(&Colours::default()).unwrap_err();
        *line.lock().unwrap() = shown(&world, &error);
        false
    };
    assert_eq!(world.update_until(&Colours::default(), &meanwhile).unwrap().encoded, 1);
    let want = format!(
        "OUT/index: expected a folder that no other process writes, got process {}",
        std::process::id()
    );
    assert_eq!(*line.lock().unwrap(), want);
}

/// A file that cannot be written, here because a file stands in the way, is an error, and the old index stays.
#[test]
fn a_write_that_fails_leaves_the_old_index() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let before = files(&world.out.join("index"));
    world.write("new.jpg", &jpeg([3, 4, 5], [8, 8]));
    fs::remove_dir_all(world.out.join("thumbnails")).unwrap();
    fs::write(world.out.join("thumbnails"), "").unwrap();
    let line = shown(&world, &world.update(&Colours::default()).unwrap_err());
    assert!(line.starts_with("OUT/thumbnails/"), "{line}");
    assert_eq!(files(&world.out.join("index")), before);
    fs::remove_file(world.out.join("thumbnails")).unwrap();
    assert_eq!(world.update(&Colours::default()).unwrap().pictures, 7);
}

#[test]
fn a_lost_thumbnail_comes_back() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let index = world.index();
    let first = index.thumbnail(0).unwrap();
    fs::remove_file(thumbnail(&world.out, &index.pictures()[0].sha256)).unwrap();
    let line = shown(&world, &index.thumbnail(0).unwrap_err());
    assert!(line.starts_with("OUT/thumbnails/"), "{line}");
    assert_eq!(world.update(&Colours::default()).unwrap().encoded, 1);
    assert_eq!(index.thumbnail(0).unwrap(), first);
}
