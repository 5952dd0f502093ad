//! Trainings that are killed many times and must end with the same files as an uninterrupted training.
//!
//! This test binary runs itself: [`child`] is a small training that dies at a named point, or when its parent kills it. The rows
//! that it begins with are phases of the training. The library and the program have no such points: they are in a
//! [`Disk`](crate::disk::Disk) and a [`Method`](itm_core::learn::Method) around the real ones.
//!
//! `ITM_KILLS` is the number of kills (`cargo xtask kills --count N --seed S --method NAME`), `ITM_KILLS_SEED` is their seed, and
//! `ITM_KILLS_METHOD` names the only method that dies; by default all methods share the kills.

mod mortal;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant};

use itm_core::data::Split;
use itm_core::learn::Method;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::mortal::{Life, MortalDisk, MortalMethod};
use crate::checkpoint::Checkpoints;
use crate::config::Config;
use crate::disk::Disk;
use crate::inputs::Inputs;
use crate::methods::ALL;
use crate::store::{Identity, Store};
use crate::tests;
use crate::train::{Progress, Training, chosen};

const FOLDER: &str = "ITM_KILLS_FOLDER";
const POINT: &str = "ITM_KILL_AT";
/// The method of the training, and its last row.
const METHOD: &str = "ITM_KILLS_TRAINING";
const ROW: &str = "ITM_KILLS_ROW";
const IDENTITY: &str = "seed 0, killed";

/// A row that dies, and its method.
type Dying = (&'static str, &'static str);

/// The rows of a method with the most to remember: a bank, a phase after other phases, a generator before the pairs.
fn most_to_remember(method: &str) -> &'static [&'static str] {
    match method {
        "hal" => &["AAAI bank"],
        "tags-dc" => &["TAGS-DC", "absent words"],
        _ => &["Full"],
    }
}

/// Text of a target's file, and what stands there instead: CCA's cosine as a term of the logit is one more part of the state, and fewer
/// negatives take less time.
fn changes(method: &str) -> &'static [(&'static str, &'static str)] {
    match method {
        "tags-dc" => &[
            ("[model]\n", "[model]\nprior = \"cca\"\n"),
            ("sampled = 15\n", "sampled = 3\n"),
            ("kept = 15\n", "kept = 3\n"),
            ("kept = 7\n", "kept = 3\n"),
            ("refills = 4\n", "refills = 2\n"),
        ],
        _ => &[],
    }
}

/// The training of a killed process. Without the environment variable of its folder, it does nothing.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let life = Life::new(std::env::var(POINT).ok(), folder.with_extension("saved"));
    let [method, last] = [METHOD, ROW].map(|name| std::env::var(name).unwrap());
    let target = format!("{method}-scenes");
    let mut run = tests::small_run_with(&target, changes(&method));
    let mut from: Option<PathBuf> = None;
    for (number, row) in phases(&run.config, &last).iter().enumerate() {
        let folder = phase(&folder, number);
        fs::create_dir_all(&folder).unwrap();
        life.begin(number);
        run = tests::in_folder(run, &folder);
        let mut model = run.model(row, 0).unwrap();
        let mut method = MortalMethod::new(model.method, life.clone());
        let disk = MortalDisk::new(life.clone());
        let checkpoints =
            Checkpoints::on(disk, folder.join("checkpoints"), IDENTITY.into()).unwrap();
        life.point("training: start");
        let training = Training {
            name: row,
            plan: &model.plan,
            method: &mut method,
            inputs: &mut model.inputs,
            checkpoints: &checkpoints,
            from: from.as_deref(),
            states: 0,
        };
        let progress = training.run(&folder.join("log.jsonl"), |_| {}).unwrap();
        life.point("training: end");
        from = Some(chosen(&model.plan, &checkpoints, &folder).unwrap());
        if *row != last {
            continue;
        }
        score(&method, &model.inputs, &folder, checkpoints.disk);
        // The state in memory at the end of the training, for the comparison.
        let end = Checkpoints::new(folder.join("end"), IDENTITY.into()).unwrap();
        end.write(0, &progress, |write| method.alive().save(write)).unwrap();
    }
    life.write_trace(&folder.with_extension("points"));
}

/// The phases of a training: the rows that a row begins with, in the order of their training, and then the row itself.
fn phases(config: &Config, row: &str) -> Vec<String> {
    let mut phases: Vec<String> =
        std::iter::successors(Some(row), |row| config.from(row)).map(str::to_owned).collect();
    phases.reverse();
    phases
}

/// The folder of a phase.
fn phase(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("phase-{number}"))
}

/// Scores validation into a store, shard by shard.
fn score(method: &dyn Method, inputs: &Inputs, folder: &Path, disk: Rc<dyn Disk>) {
    let scored = method.scored(inputs.items(Split::Val)).unwrap();
    let identity = Identity {
        row: "killed".into(),
        seed: 0,
        split: "val".into(),
        checkpoint: String::new(),
        config: String::new(),
        data: String::new(),
        backend: "cpu".into(),
        shape: [scored.texts(), scored.images()],
    };
    let store = Store { folder: folder.join("scores"), disk, identity };
    store.matrix(&*scored, |line| panic!("{line}"), |_| {}).unwrap();
}

/// How a process dies.
#[derive(Debug)]
enum Death {
    /// The n-th time that it passes a point.
    At(String, usize),
    /// This long after its start.
    After(Duration),
    Never,
}

/// Runs the child on a folder; returns its exit status and its running time.
fn run((method, row): Dying, folder: &Path, death: &Death) -> (ExitStatus, Duration) {
    let out = fs::File::create(folder.with_extension("out")).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["kills_tests::child", "--exact", "--nocapture"]).env(FOLDER, folder);
    command.env(METHOD, method).env(ROW, row);
    command.stdout(out.try_clone().unwrap()).stderr(out).env_remove(POINT);
    if let Death::At(point, count) = death {
        command.env(POINT, format!("{point}:{count}"));
    }
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    if let Death::After(time) = death {
        std::thread::sleep(*time);
        _ = child.kill(); // it may have ended by then
    }
    (child.wait().unwrap(), start.elapsed())
}

/// Every file below a folder, sorted by name; the lock of a killed process still has its number.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    files.retain(|(path, _)| !path.ends_with("run.lock"));
    files.iter_mut().for_each(|(path, _)| *path = path.strip_prefix(folder).unwrap().into());
    files.sort();
    files
}

/// The points that a finished process passed, each with its count.
fn passed_in(folder: &Path) -> Vec<(String, usize)> {
    let text = fs::read_to_string(folder.with_extension("points")).unwrap();
    let split = |line: &str| line.rsplit_once(':').map(|(p, n)| (p.into(), n.parse().unwrap()));
    text.lines().map(|line| split(line).unwrap()).collect()
}

/// Checks for each phase that the newest checkpoint is at least as new as every checkpoint that was durable.
fn no_checkpoint_is_lost(folder: &Path, death: &Death) {
    let text = fs::read_to_string(folder.with_extension("saved")).unwrap_or_default();
    let mut saved = BTreeMap::<usize, u64>::new();
    for line in text.lines() {
        let (number, step) = line.split_once(' ').unwrap();
        let newest = saved.entry(number.parse().unwrap()).or_default();
        *newest = step.parse().map_or(*newest, |step: u64| step.max(*newest));
    }
    for (number, saved) in saved {
        let checkpoints = phase(folder, number).join("checkpoints");
        let checkpoints = Checkpoints::new(checkpoints, IDENTITY.into()).unwrap();
        let found = checkpoints.newest::<Progress>().unwrap().unwrap();
        assert!(
            found.step >= saved,
            "phase {number}: step {saved} was durable, {} is found: {death:?}",
            found.step
        );
    }
}

#[test]
fn killed_runs_end_with_the_bits_of_an_uninterrupted_one() {
    let (config, _) = tests::small_target("tags-dc-scenes", &[]);
    assert_eq!(phases(&config, "TAGS-DC"), ["pretrain", "TAGS", "TAGS-DC"]);
    assert_eq!(phases(&config, "absent words"), ["pretrain", "absent words"]);
    assert!(config.text.contains("first_updates = 5\n"), "captions alone, then pairs");
    let only = std::env::var("ITM_KILLS_METHOD").ok();
    let methods = ALL.iter().map(|kind| kind.name);
    let methods = methods.filter(|&name| only.as_deref().is_none_or(|only| only == name));
    let rows = |method| most_to_remember(method).iter().map(move |&row| (method, row));
    let dying: Vec<Dying> = methods.flat_map(rows).collect();
    assert!(!dying.is_empty(), "no method {only:?}");
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (count, seed) = (number("ITM_KILLS").unwrap_or(10) as usize, number("ITM_KILLS_SEED"));
    let (count, seed) = (count.div_ceil(dying.len()), seed.unwrap_or(0));
    std::thread::scope(|scope| {
        for &training in &dying {
            scope.spawn(move || killed_runs(training, count, seed));
        }
    });
}

fn killed_runs(training: Dying, count: usize, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let (status, mut time) = run(training, &whole, &Death::Never);
    assert!(status.success(), "{}", fs::read_to_string(whole.with_extension("out")).unwrap());
    let want = tree(&whole);
    let mut points = passed_in(&whole);
    let fresh: BTreeSet<_> = points.iter().map(|(point, _)| point.clone()).collect();
    // A resumed process passes points that a fresh process does not.
    for point in ["step: before", "rename new checkpoint: before"] {
        let resumed = dir.path().join("resumed");
        fs::create_dir(&resumed).unwrap();
        assert_eq!(run(training, &resumed, &Death::At(point.into(), 12)).0.code(), None);
        assert!(run(training, &resumed, &Death::Never).0.success());
        let known = points.clone();
        points.extend(
            passed_in(&resumed)
                .into_iter()
                .filter(|new| known.iter().all(|(point, _)| *point != new.0)),
        );
        fs::remove_dir_all(&resumed).unwrap();
    }
    assert!(fresh.len() >= 50 && points.len() >= fresh.len() + 5, "{points:?}");

    let (mut named, mut random, mut runs, mut passed) = (0, 0, 0, BTreeSet::new());
    let mut waiting: Vec<(String, usize)> = vec![];
    let start = Instant::now();
    while named + random < count {
        let folder = dir.path().join(format!("run-{runs}"));
        fs::create_dir(&folder).unwrap();
        let mut kills = 0;
        loop {
            // Up to five kills per run, half of them at points. Each point comes once before any point repeats.
            let death = if kills == 5 || named + random == count {
                Death::Never
            } else if named <= random {
                if waiting.is_empty() {
                    waiting.clone_from(&points);
                    waiting.shuffle(&mut rng);
                }
                let at = waiting.iter().rposition(|(point, _)| kills > 0 || fresh.contains(point));
                // If all waiting points need a resumed process, a point of a fresh process, with which `points` begins,
                // makes the next process a resumed one.
                let (point, times) = match at {
                    Some(at) => waiting[at].clone(),
                    None => points[rng.random_range(0..fresh.len())].clone(),
                };
                // A resumed process may pass a point fewer times, so it dies within the first three.
                let most = if kills == 0 { times } else { times.min(3) };
                Death::At(point, rng.random_range(1..=most))
            } else {
                Death::After(time.mul_f64(rng.random_range(0.05..1.0)))
            };
            let (status, _) = run(training, &folder, &death);
            no_checkpoint_is_lost(&folder, &death);
            let failed = || fs::read_to_string(folder.with_extension("out")).unwrap();
            match (&death, status.code()) {
                (Death::After(_), Some(0)) => {
                    time = time.mul_f64(0.8); // it was taken while other trainings ran
                    break;
                }
                (_, Some(0)) => break,
                (_, Some(_)) => panic!("after {death:?}: {}", failed()),
                (Death::At(point, _), None) => {
                    waiting.retain(|(waits, _)| waits != point);
                    passed.insert(point.clone());
                    named += 1;
                }
                (Death::After(_), None) => random += 1,
                (Death::Never, None) => panic!("it died without a kill: {}", failed()),
            }
            kills += 1;
        }
        runs += 1;
        let got = tree(&folder);
        let names = |files: &[(PathBuf, Vec<u8>)]| -> Vec<_> {
            files.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&got), names(&want), "after {kills} kills");
        for ((name, got), (_, want)) in got.iter().zip(&want) {
            assert!(got == want, "{} differs after {kills} kills", name.display());
        }
        fs::remove_dir_all(&folder).unwrap();
        // A run that ended before its kill leaves the point waiting; after the shuffle another point may come first.
        waiting.shuffle(&mut rng);
    }
    eprintln!(
        "{}, {}: {} kills in {runs} runs: {named} at {} of {} named points, {random} at random moments; lost checkpoints 0, \
         differing bits 0 ({:.0} s)",
        training.0,
        training.1,
        named + random,
        passed.len(),
        points.len(),
        start.elapsed().as_secs_f64()
    );
}
