use std::fs;

use super::*;
use crate::disk::fakes::{Failing, Fails, Recorder, Unsynced};

/// A step, and the step of another checkpoint that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct At(u64, Option<u64>);

impl Progress for At {
    fn needs(&self) -> Option<u64> {
        self.1
    }
}

fn on(disk: Rc<dyn Disk>, folder: &Path) -> Checkpoints {
    Checkpoints::on(disk, folder.to_path_buf(), "toy/Full/0".into()).unwrap()
}

fn checkpoints(folder: &Path) -> Checkpoints {
    on(Rc::new(Unsynced), folder)
}

/// Two files, so that a write can fail between them.
fn attempt(c: &Checkpoints, step: u64, needs: Option<u64>) -> Result<PathBuf> {
    c.write(step, &At(step, needs), |write| {
        write("model", &[step as u8; 64])?;
        write("state", &[!step as u8; 32])
    })
}

fn write(c: &Checkpoints, step: u64) -> PathBuf {
    attempt(c, step, None).unwrap()
}

fn latest(c: &Checkpoints) -> Option<u64> {
    c.latest::<At>().unwrap().map(|found| found.step)
}

#[test]
fn the_newest_is_found_by_number_and_the_oldest_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    assert_eq!(c.latest::<At>().unwrap(), None);
    for (step, needs) in [(8, None), (9, None), (10, Some(8)), (11, Some(9)), (100, Some(11))] {
        attempt(&c, step, needs).unwrap();
    }
    assert_eq!(latest(&c), Some(100));
    let left = |step, keep| {
        c.prune::<At>(step, keep).unwrap();
        file_names(dir.path()).unwrap()
    };
    assert_eq!(left(100, 3), ["step-10", "step-100", "step-11", "step-8", "step-9"]);
    assert_eq!(left(100, 2), ["step-100", "step-11", "step-9"], "11 needs 9");
    assert_eq!(left(11, 1), ["step-11", "step-9"], "a run that stands at 11 has no use for 100");
}

/// A run may come from anybody.
#[test]
fn a_manifest_names_no_file_outside() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    let folder = write(&c, 8);
    fs::write(dir.path().join("model"), [8; 64]).unwrap();
    let [path, hash] = [MANIFEST, MANIFEST_HASH].map(|name| folder.join(name));
    let text = fs::read_to_string(&path).unwrap().replace("\"model\"", "\"../model\"");
    fs::write(path, &text).unwrap();
    fs::write(hash, hash_line(&text)).unwrap();
    let line = c.read::<At>(8).unwrap_err().to_string();
    assert!(line.ends_with("got \"../model\""), "{line}");
}

/// The order of effects that makes a checkpoint durable: the files, then the rename, then the folder's sync, and only then the
/// removal of older checkpoints.
#[test]
fn the_order_of_effects() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Rc::new(Recorder::new(dir.path()));
    let c = on(disk.clone(), dir.path());
    write(&c, 5);
    write(&c, 6);
    disk.take();
    write(&c, 7);
    c.prune::<At>(7, 2).unwrap();
    let file = |name: &str| {
        ["create", "append", "sync"].map(|what| format!("{what} step-7.tmp/{name}")).to_vec()
    };
    let want = [
        vec!["make step-7.tmp".to_owned()],
        file("model"),
        file("state"),
        file("manifest.json"),
        file("manifest.sha256"),
        vec!["sync folder step-7.tmp".to_owned()],
        vec!["rename step-7.tmp to step-7".to_owned()],
        vec!["sync folder .".to_owned()],
        vec!["remove step-5".to_owned()],
    ];
    assert_eq!(disk.take(), want.concat());

    // A step is written again: the old checkpoint is renamed as a whole, and removed last.
    write(&c, 7);
    let lines = disk.take();
    let want = [
        "sync folder step-7.tmp",
        "rename step-7 to step-7.old.tmp",
        "rename step-7.tmp to step-7",
        "sync folder .",
        "remove step-7.old.tmp",
    ];
    assert_eq!(lines[lines.len() - 5..], want);
}

/// Every effect of a write fails once, and the disk is full after every number of bytes.
#[test]
fn no_failure_costs_the_last_checkpoint() {
    let mut tried = 0;
    for again in [5, 6] {
        let bytes = if again == 6 { 0..600 } else { 0..0 };
        for fails in (0..30).map(Fails::At).chain(bytes.map(Fails::After)) {
            let dir = tempfile::tempdir().unwrap();
            let good = checkpoints(dir.path());
            write(&good, 4);
            write(&good, 5);
            let disk = Rc::new(Failing::new(fails));
            let c = on(disk.clone(), dir.path());
            let written = attempt(&c, again, None).and_then(|_| c.prune::<At>(again, 2));
            assert_eq!(written.is_err(), disk.failures() > 0, "{fails:?}");
            let Err(error) = written else { continue };
            tried += 1;
            let line = error.to_string();
            assert!(line.contains("no storage space") && line.lines().count() == 1, "{line}");
            assert!(line.contains(dir.path().to_str().unwrap()), "{line}");
            let found = good.latest::<At>().unwrap().unwrap();
            assert!(found.notice.is_none(), "{fails:?}: {:?}", found.notice);
            assert!(found.step == 5 || found.step == again, "{fails:?}");
            write(&good, 7);
            good.prune::<At>(7, 2).unwrap();
            assert!(file_names(dir.path()).unwrap().iter().all(|name| !name.contains("tmp")));
        }
    }
    // Step 6 takes 17 effects, for two files, the manifest and its hash, and removes step 4; writing step 5 again takes two
    // more and removes the old step 5. The disk is full at 64, 32 and 81 bytes of files and hash, and within the manifest.
    assert!(tried > 17 + 19 + 64 + 32 + 81 + 200, "{tried}");
}

#[test]
fn what_a_kill_left_half_written_is_not_seen_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let c = on(Rc::new(SystemDisk), dir.path());
    write(&c, 5);
    fs::create_dir(dir.path().join("step-6.tmp")).unwrap();
    assert_eq!(latest(&c), Some(5));
    c.prune::<At>(5, 2).unwrap();
    assert_eq!(file_names(dir.path()).unwrap(), ["step-5"]);
}

/// Each file is cut at every length, has a bit of each byte flipped, or is removed: the checkpoint before is always found.
#[test]
fn a_damaged_newest_one_falls_back_to_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    let [older, newest] = [5, 6].map(|step| write(&c, step));
    let damaged = |path: &Path| {
        let found = c.latest::<At>().unwrap().unwrap();
        assert_eq!((found.step, &found.progress), (5, &At(5, None)), "{}", path.display());
        let line = found.notice.unwrap();
        assert!(line.contains(newest.to_str().unwrap()), "{line}");
        assert!(line.ends_with(&format!("; going on from {}", older.display())), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    };
    for name in ["model", "state", MANIFEST, MANIFEST_HASH] {
        let path = newest.join(name);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            damaged(&path);
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            damaged(&path);
        }
        fs::remove_file(&path).unwrap();
        assert!(damaged(&path).contains("No such file"));
        fs::write(&path, &whole).unwrap();
        assert_eq!(c.latest::<At>().unwrap().unwrap().notice, None);
    }
    fs::write(newest.join("model"), [6; 32]).unwrap();
    let line = damaged(&newest);
    assert!(
        line.contains("model") && line.contains("32 bytes") && line.contains("damaged"),
        "{line}"
    );
    fs::write(older.join("model"), [5; 32]).unwrap();
    let line = c.latest::<At>().unwrap_err().to_string();
    assert!(line.contains("step-6") && line.lines().count() == 1, "none is whole: {line}");
}

/// A training ends with its best checkpoint, so a checkpoint whose best is damaged counts as damaged.
#[test]
fn a_checkpoint_is_whole_with_the_one_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    for (step, needs) in [(3, Some(3)), (5, Some(3)), (6, Some(6)), (7, Some(6))] {
        attempt(&c, step, needs).unwrap();
    }
    fs::remove_file(dir.path().join("step-6/state")).unwrap();
    let found = c.latest::<At>().unwrap().unwrap();
    assert_eq!(found.step, 5);
    let line = found.notice.unwrap();
    assert!(line.contains("step-6/state") && line.contains("going on from"), "{line}");
    assert!(c.newest::<At>().unwrap_err().to_string().contains("step-6/state"));
    assert_eq!(c.read::<At>(7).unwrap().step, 7);
}

/// A checkpoint of another row, configuration, data set or backend is an error, without a fallback to an older one.
#[test]
fn another_runs_checkpoint_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    write(&c, 5);
    let other = Checkpoints::new(dir.path().to_path_buf(), "toy/Full/1".into()).unwrap();
    write(&other, 6);
    let line = c.latest::<At>().unwrap_err().to_string();
    assert!(line.contains("toy/Full/1") && line.contains("toy/Full/0"), "{line}");
    assert!(line.contains("step-6/manifest.json") && line.lines().count() == 1, "{line}");
}

/// A folder in place of a file cannot be read. This is no sign of damage, so there is no fallback.
#[test]
fn what_the_system_refuses_to_read_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let c = checkpoints(dir.path());
    write(&c, 5);
    let path = write(&c, 6).join("model");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let line = c.latest::<At>().unwrap_err().to_string();
    assert!(line.starts_with(path.to_str().unwrap()), "{line}");
}
