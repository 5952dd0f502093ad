use super::*;

const EMPTY: Existing = Existing::Nothing("a new or empty folder");

fn names(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries(folder).unwrap().iter().map(name).collect()
}

#[test]
fn what_was_there_stays_when_writing_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.jsonl");
    fs::write(&path, "before").unwrap();
    let half = |file: &mut BufWriter<File>| -> Result<()> {
        file.write_all(b"half").map_err(Error::io(&path))?;
        Err(Error::invalid("the disk", "room", "none"))
    };
    assert_eq!(write(&path, half).unwrap_err().to_string(), "the disk: expected room, got none");
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(names(folder.path()), ["p.jsonl"], "nothing else is left");
    fs::write(folder.path().join("p.jsonl.itm-tmp"), "a killed process left this").unwrap();
    fs::write(folder.path().join("p.jsonl.tmp"), "a user's").unwrap();
    write_bytes(&path, b"after").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    assert_eq!(names(folder.path()), ["p.jsonl", "p.jsonl.tmp"]);
    assert_eq!(fs::read_to_string(folder.path().join("p.jsonl.tmp")).unwrap(), "a user's");
    let nowhere = write_bytes(&folder.path().join("none/p.jsonl"), b"").unwrap_err();
    let want = format!("{}/none/p.jsonl: ", folder.path().display());
    let line = nowhere.to_string();
    assert!(line.starts_with(&want) && !line.contains("itm-tmp"), "{line}");
}

/// A rename to `runs/` fails only after the work is done.
#[test]
fn a_name_of_a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["runs/", "runs/.", "."] {
        let line = check(&folder.path().join(name)).unwrap_err().to_string();
        assert!(line.ends_with("expected a file to write, got a folder"), "{line}");
    }
    check(&folder.path().join("runs")).unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_file_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    write(&path, |file| {
        let line = write_bytes(&path, b"second").unwrap_err().to_string();
        let want =
            "page.html: expected a file that no other process writes, got another process that writes it";
        assert!(line.ends_with(want), "{line}");
        file.write_all(b"first").map_err(Error::io(&path))
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
}

#[cfg(unix)]
#[test]
fn devices_and_links_are_never_replaced() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_bytes(Path::new("/dev/null"), b"words").unwrap();
    assert!(!Path::new("/dev/null").is_file() && !Path::new("/dev/null.itm-tmp").exists());
    let full = write_bytes(Path::new("/dev/full"), b"words").unwrap_err().to_string();
    assert!(full.starts_with("/dev/full: No space left on device"), "{full}");
    fs::write(at("secret"), "secret").unwrap();
    for (name, link) in [("page", "page"), ("page2", "page2.itm-tmp")] {
        symlink(at("secret"), at(link)).unwrap();
        let line = write_bytes(&at(name), b"new").unwrap_err().to_string();
        let want = format!("{link}: expected a name that is no link, got a link");
        assert!(line.ends_with(&want), "{line}");
        assert!(at(link).is_symlink());
    }
    symlink(at("other"), at("folder")).unwrap();
    let line = NewFolder::begin(&at("folder"), EMPTY).unwrap_err().to_string();
    assert!(line.ends_with("folder: expected a name that is no link, got a link"), "{line}");
    assert_eq!(fs::read_to_string(at("secret")).unwrap(), "secret");
}

#[test]
fn a_folder_appears_whole() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("a/out");
    let folder = NewFolder::begin(&out, EMPTY).unwrap();
    fs::write(folder.path().join("x"), "x").unwrap();
    assert!(!out.exists());
    let line = NewFolder::begin(&out, EMPTY).unwrap_err().to_string();
    let want = format!(
        "out: expected a folder that no other process writes, got process {}",
        std::process::id()
    );
    assert!(line.ends_with(&want), "{line}");
    folder.commit().unwrap();
    assert_eq!(names(&out), ["x"]);
    let line = NewFolder::begin(&out, EMPTY).unwrap_err().to_string();
    assert!(
        line.ends_with("out: expected a new or empty folder, got a folder with files"),
        "{line}"
    );
    fs::remove_file(out.join("x")).unwrap();
    drop(NewFolder::begin(&out, EMPTY).unwrap()); // an error on the way
    assert_eq!(names(&out), [""; 0]);
    fs::write(root.path().join("file"), "").unwrap();
    let line = NewFolder::begin(&root.path().join("file"), EMPTY).unwrap_err().to_string();
    assert!(line.ends_with("file: expected a folder, got a file"), "{line}");
    assert_eq!(names(&root.path().join("a")), ["out"], "nothing is left beside it");
}

#[test]
fn only_a_folder_of_known_files_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("x"), "old").unwrap();
    fs::write(out.join("y"), "old").unwrap();
    let line = NewFolder::begin(&out, Existing::Only(&["x"])).unwrap_err().to_string();
    assert!(line.ends_with("out: expected a folder of only x, got y"), "{line}");
    let known = Existing::Only(&["x", "y"]);
    let folder = NewFolder::begin(&out, known).unwrap();
    fs::write(folder.path().join("x"), "new").unwrap();
    assert_eq!(fs::read_to_string(out.join("x")).unwrap(), "old");
    folder.commit().unwrap();
    assert_eq!(
        (names(&out), fs::read_to_string(out.join("x")).unwrap()),
        (vec!["x".into()], "new".into())
    );

    // A process was killed between its two renames: the old folder is set aside, the new one has no name.
    let temporary = root.path().join("out.tmp");
    fs::create_dir_all(temporary.join(NEW)).unwrap();
    fs::write(temporary.join(NEW).join("half"), "").unwrap();
    fs::write(temporary.join(LOCK), "17").unwrap();
    fs::rename(&out, temporary.join(OLD)).unwrap();
    drop(NewFolder::begin(&out, known).unwrap());
    assert_eq!(names(root.path()), ["out"]);
    assert_eq!(fs::read_to_string(out.join("x")).unwrap(), "new");

    fs::create_dir(&temporary).unwrap();
    fs::write(temporary.join("mine"), "").unwrap();
    let line = NewFolder::begin(&out, known).unwrap_err().to_string();
    assert!(line.contains("out.tmp: expected no folder of this name"), "{line}");
    assert!(temporary.join("mine").exists(), "a stranger's files stay");
}

#[cfg(unix)]
#[test]
fn a_lock_does_not_follow_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let [notes, name] = ["notes.txt", "x.lock"].map(|name| folder.path().join(name));
    fs::write(&notes, "mine").unwrap();
    std::os::unix::fs::symlink(&notes, &name).unwrap();
    let line = Lock::take(&name, &name, "no other process").unwrap_err().to_string();
    assert!(line.ends_with("x.lock: expected a name that is no link, got a link"), "{line}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
}

/// Between opening a file and locking it, its owner may have given it its final name.
#[test]
fn a_lock_is_of_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("x.tmp");
    let file = File::create(&name).unwrap();
    assert!(is_named(&file, &name));
    fs::rename(&name, folder.path().join("x")).unwrap();
    assert!(!is_named(&file, &name));
    fs::write(&name, "another writer's").unwrap();
    assert!(!is_named(&file, &name));
}
