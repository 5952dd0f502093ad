mod toy;

use std::fs;
use std::rc::Rc;

use itm_core::data::Features;
use itm_core::learn::{ImageItems, Items};
use itm_core::{Pairs, Relevance};
use rayon::prelude::*;

use super::*;
use crate::disk::fakes::{Failing, Fails, Unsynced};
use toy::Toy;

const COURSE: Course = Course {
    epochs: 3,
    updates: None,
    batch: 4,
    last: LastBatch::Dropped,
    validate_every: None,
    validate_among: None,
};

const PLAN: Plan = Plan {
    course: COURSE,
    ready: false,
    captions: 23,
    seed: 7,
    checkpoint_steps: 2,
    log_steps: 3,
    observe_steps: 2,
};

/// Trains on 23 images with one caption each.
fn trained_with(
    toy: &mut Toy,
    plan: &Plan,
    (checkpoints, folder): (&Checkpoints, &Path),
    watch: impl FnMut(Event),
) -> Result<Progress> {
    let features = Features { dim: 1, values: vec![0.0; 23] };
    let (texts, pairs) = (vec![vec![1]; 23], Pairs::uniform(23, 1));
    let truth = Relevance::new(23, (0..23).map(|i| vec![i]).collect());
    let images = ImageItems::Features(&features);
    let items = Items { images, texts: &texts, pairs: &pairs };
    let mut inputs = Inputs::of_items(items, Some(&truth));
    let from = toy.from.clone();
    let (inputs, name, from) = (&mut inputs, "toy", from.as_deref());
    let training = Training { name, plan, method: toy, inputs, checkpoints, from, states: 0 };
    training.run(&folder.join("log.jsonl"), watch)
}

fn trained(toy: &mut Toy, plan: &Plan, folder: &Path) -> Result<Progress> {
    let checkpoints = Checkpoints::on(Rc::new(Unsynced), folder.join("checkpoints"), "toy".into())?;
    trained_with(toy, plan, (&checkpoints, folder), |_| {})
}

/// Equal scores rank text i after i others: the recalls are 1, 5 and 10 in 23, in both directions.
const FIRST: f64 = 100.0 * 32.0 / 23.0;

fn seen(plan: Plan) -> Toy {
    let dir = tempfile::tempdir().unwrap();
    let mut toy = Toy::default();
    trained(&mut toy, &plan, dir.path()).unwrap();
    toy
}

fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            false => files.push((name, fs::read(&path).unwrap())),
            true => files
                .extend(tree(&path).into_iter().map(|(f, bytes)| (format!("{name}/{f}"), bytes))),
        }
    }
    files.sort();
    files
}

#[test]
fn the_order_depends_on_seed_and_epoch_and_the_partial_batch_is_dropped() {
    let toy = seen(PLAN);
    assert_eq!(toy.batches.len(), 3 * (23 / 4));
    let epochs: Vec<Vec<usize>> = toy
        .batches
        .chunks(5)
        .map(|epoch| epoch.iter().flat_map(|(captions, _)| captions.clone()).collect())
        .collect();
    for (number, epoch) in epochs.iter().enumerate() {
        assert_eq!(epoch[..], PLAN.order(number)[..20]);
        let mut sorted = epoch.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() == 20 && sorted[19] < 23, "no caption twice: {epoch:?}");
    }
    assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
    let longer =
        Plan { course: Course { epochs: 9, ..COURSE }, checkpoint_steps: 1, log_steps: 1, ..PLAN };
    assert_eq!(longer.order(1), PLAN.order(1));
    assert!(Plan { seed: 8, ..PLAN }.order(1) != PLAN.order(1));
    let mut seeds: Vec<_> = toy.batches.iter().map(|&(_, seed)| seed).collect();
    let other = seen(Plan { seed: 8, ..PLAN });
    seeds.extend(other.batches.iter().map(|&(_, seed)| seed));
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 30, "each step has a seed of its own");
}

/// An epoch has five batches of four and one of three. The step at which a run is stopped does not matter.
#[test]
fn a_partial_batch_is_kept_where_the_method_asks_for_it() {
    let plan = Plan { course: Course { last: LastBatch::Kept, ..COURSE }, ..PLAN };
    assert_eq!((plan.epoch_steps(), plan.steps()), (6, 18));
    let toy = seen(plan);
    assert_eq!(toy.batches.len(), 18);
    for (number, epoch) in toy.batches.chunks(6).enumerate() {
        let all: Vec<_> = epoch.iter().flat_map(|(captions, _)| captions.clone()).collect();
        assert_eq!(all, plan.order(number), "every caption once, in order");
        assert_eq!(epoch[5].0.len(), 3);
    }
    for stop in [5, 6, 11] {
        let dir = tempfile::tempdir().unwrap();
        trained(&mut Toy { stop_at: Some(stop), ..Toy::default() }, &plan, dir.path()).unwrap_err();
        let mut resumed = Toy::default();
        trained(&mut resumed, &plan, dir.path()).unwrap();
        assert_eq!(resumed.state, toy.state, "stopped at {stop}");
    }
    let few = |captions, last| Plan { captions, course: Course { last, ..COURSE }, ..PLAN };
    assert_eq!(few(3, LastBatch::Kept).epoch_steps(), 1);
    few(3, LastBatch::Kept).check().unwrap();
    let line = few(0, LastBatch::Kept).check().unwrap_err().to_string();
    assert_eq!(line, "training split: expected at least one caption, got 0");
    assert_eq!(few(24, LastBatch::Kept).epoch_steps(), few(24, LastBatch::Dropped).epoch_steps());
}

/// Three epochs of five steps are cut to eleven updates, with validation after every fourth. The step at which a run is stopped does
/// not matter.
#[test]
fn a_course_of_updates_ends_and_is_validated_within_an_epoch() {
    let course = Course { updates: Some(11), validate_every: Some(4), ..COURSE };
    let plan = Plan { course, ..PLAN };
    assert_eq!((plan.steps(), plan.epoch_steps()), (11, 5));
    let (dir, mut toy) = (tempfile::tempdir().unwrap(), Toy::default());
    let progress = trained(&mut toy, &plan, dir.path()).unwrap();
    assert_eq!((progress.step, toy.batches.len()), (11, 11));
    let looks = |folder: &Path| -> Vec<(usize, usize)> {
        let log = Log::read(&folder.join("log.jsonl")).unwrap();
        let look = |line: &Line| match *line {
            Line::Validation { epoch, step, .. } => Some((epoch, step)),
            _ => None,
        };
        log.iter().filter_map(look).collect()
    };
    assert_eq!(looks(dir.path()), [(0, 4), (1, 8), (2, 11)], "and at the end");
    for stop in 0..11 {
        let other = tempfile::tempdir().unwrap();
        trained(&mut Toy { stop_at: Some(stop), ..Toy::default() }, &plan, other.path())
            .unwrap_err();
        let again = trained(&mut Toy::default(), &plan, other.path()).unwrap();
        assert_eq!(again, progress, "stopped at {stop}");
        assert!(tree(other.path()) == tree(dir.path()), "stopped at {stop}");
    }
    let plan = Plan { course: Course { updates: Some(99), ..COURSE }, ..PLAN };
    assert_eq!(plan.steps(), 15, "the epochs end first");
}

/// Equal scores rank a text's image after the images with smaller numbers. Only the lists of the last two of the 23 texts have such
/// images, because these lists continue at image 0.
#[test]
fn validation_among_a_few_ranks_texts_alone() {
    let plan = Plan { course: Course { validate_among: Some(3), ..COURSE }, ..PLAN };
    let dir = tempfile::tempdir().unwrap();
    trained(&mut Toy::default(), &plan, dir.path()).unwrap();
    let log = Log::read(&dir.path().join("log.jsonl")).unwrap();
    let look = |line: &Line| match *line {
        Line::Validation { rsum, among, .. } => Some((rsum, among)),
        _ => None,
    };
    let looks: Vec<_> = log.iter().filter_map(look).collect();
    let first = 100.0 * 21.0 / 23.0 + 200.0; // images 0 to 20 come first, images 21 and 22 second and third
    assert!((looks[0].0 - first).abs() < 1e-9, "{looks:?}");
    assert_eq!(looks.iter().map(|look| look.1).collect::<Vec<_>>(), [Some(3); 3]);
}

#[test]
fn the_first_best_epoch_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut toy = Toy::default();
    let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
    assert_eq!(progress.best, Some(Best { epochs: 2, step: 10, rsum: 600.0 }));
    let mut half = Toy::default();
    let two = Plan { course: Course { epochs: 2, ..COURSE }, observe_steps: 0, ..PLAN };
    trained(&mut half, &two, tempfile::tempdir().unwrap().path()).unwrap();
    assert_eq!((toy.state, toy.epoch), (half.state, 1));
    let names: Vec<_> = tree(&dir.path().join("checkpoints")).into_iter().map(|f| f.0).collect();
    let whole = |step: u64| {
        ["manifest.json", "manifest.sha256", "toy"].map(|file| format!("step-{step}/{file}"))
    };
    assert_eq!(names, [10, 14, 15].map(whole).concat(), "the best, the newest and one before");
}

/// The toy's scores before the first step are perfect, so no epoch is better. A kill after any step changes nothing.
#[test]
fn a_ready_start_is_a_candidate() {
    let plan = Plan { ready: true, ..PLAN };
    let dir = tempfile::tempdir().unwrap();
    let mut toy = Toy { ready: true, ..Toy::default() };
    let progress = trained(&mut toy, &plan, dir.path()).unwrap();
    assert_eq!(progress.best, Some(Best { epochs: 0, step: 0, rsum: 600.0 }));
    assert_eq!((toy.state, progress.step), (Toy::default().state, PLAN.steps()));
    let log = Log::read(&dir.path().join("log.jsonl")).unwrap();
    assert!(matches!(log[0], Line::Validation { epoch: 0, step: 0, .. }), "{:?}", log[0]);
    for stop in 0..plan.steps() {
        let dir = tempfile::tempdir().unwrap();
        let toy = || Toy { ready: true, ..Toy::default() };
        trained(&mut Toy { stop_at: Some(stop), ..toy() }, &plan, dir.path()).unwrap_err();
        assert_eq!(trained(&mut toy(), &plan, dir.path()).unwrap(), progress, "stopped at {stop}");
    }
    let later = tempfile::tempdir().unwrap();
    let progress = trained(&mut Toy::default(), &plan, later.path()).unwrap();
    assert_eq!(progress.best.unwrap().epochs, 2, "a start that is no better than the first epoch");
}

/// A row begins with the chosen checkpoint of another row. Without a step, the row keeps these weights, and validates and saves them.
/// With steps, it trains on from them, and a kill after any step changes nothing.
#[test]
fn a_row_begins_with_what_another_has_learnt() {
    let source = tempfile::tempdir().unwrap();
    trained(&mut Toy::default(), &PLAN, source.path()).unwrap();
    let of_source = Checkpoints::new(source.path().join("checkpoints"), "toy".into()).unwrap();
    let place = Path::new("rows/full/seed-0");
    let from = chosen(&PLAN, &of_source, place).unwrap();
    assert!(from.ends_with("step-10"), "the best epoch's end, not the last: {from:?}");
    let longer = Plan { course: Course { epochs: 4, ..COURSE }, ..PLAN };
    let line = chosen(&longer, &of_source, place).unwrap_err().to_string();
    assert_eq!(line, "rows/full/seed-0: expected a training of 20 steps, got 15 so far");

    let begun = || Toy { from: Some(from.clone()), ..Toy::default() };
    let mut expected = Toy::default();
    expected.start_from(&from).unwrap();
    let plan = |epochs| Plan { course: Course { epochs, ..COURSE }, ready: true, ..PLAN };
    let dir = tempfile::tempdir().unwrap();
    let mut toy = begun();
    let progress = trained(&mut toy, &plan(0), dir.path()).unwrap();
    assert_eq!(progress.best, Some(Best { epochs: 0, step: 0, rsum: 600.0 }));
    assert_eq!((toy.state, toy.epoch, toy.batches.len()), (expected.state, 1, 0));
    let own = Checkpoints::new(dir.path().join("checkpoints"), "toy".into()).unwrap();
    let mut restored = Toy::default();
    restored.load(&chosen(&plan(0), &own, dir.path()).unwrap()).unwrap();
    assert_eq!(own.newest::<Progress>().unwrap().unwrap().progress, progress);
    assert_eq!((restored.state, restored.started), (expected.state, false), "its own checkpoint");

    let whole = tempfile::tempdir().unwrap();
    let want = trained(&mut begun(), &plan(3), whole.path()).unwrap();
    assert_eq!(want.step, 15, "from the first step on");
    for stop in 0..15 {
        let dir = tempfile::tempdir().unwrap();
        trained(&mut Toy { stop_at: Some(stop), ..begun() }, &plan(3), dir.path()).unwrap_err();
        let mut resumed = begun();
        assert_eq!(trained(&mut resumed, &plan(3), dir.path()).unwrap(), want, "stopped at {stop}");
        assert!(tree(dir.path()) == tree(whole.path()), "stopped at {stop}");
        assert!(!resumed.started, "its own checkpoint is newer, stopped at {stop}");
    }
}

#[test]
fn random_weights_are_trained() {
    let none = |ready| Plan { course: Course { epochs: 0, ..COURSE }, ready, ..PLAN };
    none(true).check().unwrap();
    let line = none(false).check().unwrap_err().to_string();
    let want = "train.epochs: expected at least 1, or published weights, weights of another row or a closed form to begin with, got 0";
    assert_eq!(line, want);
    let none = Plan { course: Course { updates: Some(0), ..COURSE }, ..PLAN };
    assert_eq!(none.check().unwrap_err().to_string(), want.replace("epochs", "updates"));
}

#[test]
fn an_ended_training_is_restored_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let place = Path::new("rows/full/seed-0");
    let checkpoints = Checkpoints::new(dir.path().join("checkpoints"), "toy".into()).unwrap();
    let restored = |toy: &mut Toy| toy.load(&chosen(&PLAN, &checkpoints, place)?);
    let mut stopped = Toy { stop_at: Some(11), ..Toy::default() };
    trained(&mut stopped, &PLAN, dir.path()).unwrap_err();
    let line = restored(&mut Toy::default()).unwrap_err().to_string();
    let want = "rows/full/seed-0: expected a training of 15 steps, got 10 so far";
    assert_eq!(line, want);
    let mut toy = Toy::default();
    let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
    let (before, mut other) = (tree(dir.path()), Toy::default());
    restored(&mut other).unwrap();
    assert_eq!(checkpoints.newest::<Progress>().unwrap().unwrap().progress, progress);
    assert_eq!((other.state, other.epoch), (toy.state, 1), "its best epoch, not its last");
    assert!(other.batches.is_empty() && tree(dir.path()) == before, "something was done");
}

/// A run is stopped after every possible step: the files at the end are the same, bit for bit.
#[test]
fn a_resumed_run_ends_as_an_uninterrupted_one() {
    let whole_dir = tempfile::tempdir().unwrap();
    let mut whole = Toy::default();
    let want = trained(&mut whole, &PLAN, whole_dir.path()).unwrap();
    for stop in 0..PLAN.steps() {
        let dir = tempfile::tempdir().unwrap();
        let mut stopped = Toy { stop_at: Some(stop), ..Toy::default() };
        assert!(trained(&mut stopped, &PLAN, dir.path()).is_err());
        let mut resumed = Toy { state: 99, ..Toy::default() };
        if stop < PLAN.checkpoint_steps {
            resumed.state = 0; // nothing is loaded, as at the start
        }
        let got = trained(&mut resumed, &PLAN, dir.path()).unwrap();
        assert_eq!(got, want, "stopped at {stop}");
        assert_eq!((resumed.state, resumed.epoch), (whole.state, whole.epoch));
        let lost = stop + resumed.batches.len() - PLAN.steps();
        assert!(lost < PLAN.checkpoint_steps, "{lost} steps lost, stopped at {stop}");
        assert!(tree(dir.path()) == tree(whole_dir.path()), "stopped at {stop}");
    }
}

/// A kill after the last checkpoint's rename and before the older checkpoints are removed.
#[test]
fn what_a_kill_left_behind_is_cleared_by_a_resume() {
    let dir = tempfile::tempdir().unwrap();
    let mut toy = Toy::default();
    trained(&mut toy, &PLAN, dir.path()).unwrap();
    let want = tree(dir.path());
    for name in ["step-13", "step-13.tmp", "step-2"] {
        fs::create_dir(dir.path().join("checkpoints").join(name)).unwrap();
    }
    fs::write(dir.path().join("checkpoints/step-13/toy"), "half").unwrap();
    let mut again = Toy::default();
    trained(&mut again, &PLAN, dir.path()).unwrap();
    assert_eq!((again.state, again.batches.len()), (toy.state, 0));
    assert!(tree(dir.path()) == want);
}

#[test]
fn the_log_holds_means_and_every_step_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut toy = Toy::default();
    let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
    let log = Log::read(&dir.path().join("log.jsonl")).unwrap();
    let steps = |line: &Line| match line {
        &Line::Train { step, grad_norm, loss, ref numbers, .. } => {
            assert!((grad_norm - 2.0 * loss).abs() < 1e-6 * grad_norm);
            assert!((numbers["value"] - loss).abs() < 1e-6 * loss);
            Some(step)
        }
        _ => None,
    };
    assert_eq!(log.iter().filter_map(steps).collect::<Vec<_>>(), [3, 6, 9, 12, 15]);
    let rsums = |line: &Line| match *line {
        Line::Validation { epoch, step, rsum, .. } => Some((epoch, step, rsum)),
        _ => None,
    };
    let rsums: Vec<_> = log.iter().filter_map(rsums).collect();
    assert_eq!(rsums[1..], [(1, 10, 600.0), (2, 15, 600.0)]);
    assert!((rsums[0].2 - FIRST).abs() < 1e-9, "{rsums:?}");
    // Steps 0, 2, …, 14 are observed: three, two and three of the five steps of an epoch.
    assert_eq!(toy.observed.iter().filter(|&&o| o).count(), 8);
    assert_eq!(progress.candidates.count(), 3, "only of the last epoch");
    let found = |line: &Line| match line {
        Line::Draws { detection, .. } => Some(detection.len()),
        _ => None,
    };
    // Five thresholds at the toy's prior; every candidate is true, so the base rate is no prior.
    assert_eq!(log.iter().filter_map(found).collect::<Vec<_>>(), [5; 3]);
    assert_eq!(progress.draws.anchors, 16.0);
    let shares = |line: &Line| match *line {
        Line::Draws { drawn_true, uniform_true, hardest_true, .. } => {
            Some((drawn_true, uniform_true, hardest_true))
        }
        _ => None,
    };
    assert_eq!(log.iter().filter_map(shares).collect::<Vec<_>>(), [(1.0, 0.5, 0.0); 3]);
}

/// The run stops with an error of one line, and the checkpoint before the failed step stays.
#[test]
fn what_is_not_finite_stops_the_run() {
    let toys = [
        (
            Toy { bad_loss_at: Some(8), ..Toy::default() },
            "toy, epoch 1, step 7: expected a finite loss, got NaN",
        ),
        (
            Toy { bad_gradient_at: Some(8), infinite_from: Some(8), ..Toy::default() },
            "toy, epoch 1, step 7: expected a finite gradient norm, got inf, first in toy.weight",
        ),
        (
            Toy { infinite_from: Some(8), ..Toy::default() }, // nothing shows before the checkpoint
            "toy, step 8: expected finite weights, got a NaN or infinity in toy.weight",
        ),
    ];
    for (mut toy, want) in toys {
        let dir = tempfile::tempdir().unwrap();
        let error = trained(&mut toy, &PLAN, dir.path()).unwrap_err();
        assert_eq!(error.to_string(), want);
        let checkpoints = Checkpoints::new(dir.path().join("checkpoints"), "toy".into()).unwrap();
        let found = checkpoints.latest::<Progress>().unwrap().unwrap();
        assert_eq!((found.step, found.notice), (6, None), "{want}");
    }
}

/// The disk is full after various numbers of bytes: the error is one line, and a resumed run ends like an uninterrupted run.
#[test]
fn a_full_disk_costs_nothing_but_time() {
    let whole = tempfile::tempdir().unwrap();
    let want = trained(&mut Toy::default(), &PLAN, whole.path()).unwrap();
    // Whether the disk was full; then the run goes on with more room and ends like an uninterrupted run.
    let fails = |room: usize| {
        let dir = tempfile::tempdir().unwrap();
        let disk = Rc::new(Failing::new(Fails::After(room)));
        let folder = dir.path().join("checkpoints");
        let checkpoints = Checkpoints::on(disk, folder, "toy".into()).unwrap();
        let run = trained_with(&mut Toy::default(), &PLAN, (&checkpoints, dir.path()), |_| {});
        let Err(error) = run else { return false };
        let line = error.to_string();
        assert!(line.contains("no storage space") && line.lines().count() == 1, "{line}");
        assert_eq!(trained(&mut Toy::default(), &PLAN, dir.path()).unwrap(), want, "{room} bytes");
        assert!(tree(dir.path()) == tree(whole.path()), "{room} bytes");
        true
    };
    let mut failed = 0;
    for first in (0..).step_by(16) {
        let rooms = (first..first + 16).into_par_iter().map(|k: usize| 1601 * k);
        let full = rooms.filter(|&room| fails(room)).count();
        failed += full;
        if full < 16 {
            break;
        }
    }
    assert!(failed > 10, "{failed}");
}

/// A file of the newest checkpoint is lost: the run says so, resumes from the checkpoint before, and ends like an uninterrupted run.
#[test]
fn a_damaged_newest_checkpoint_costs_some_steps() {
    let whole = tempfile::tempdir().unwrap();
    let want = trained(&mut Toy::default(), &PLAN, whole.path()).unwrap();
    // After steps 5 and 11, the newest checkpoint is an epoch's end and also the best; after step 13, the best is older.
    for (stop, newest, older) in [(3, 2, 0), (5, 5, 4), (11, 10, 8), (13, 12, 10)] {
        for file in ["toy", "manifest.json", "manifest.sha256"] {
            let dir = tempfile::tempdir().unwrap();
            let mut stopped = Toy { stop_at: Some(stop), ..Toy::default() };
            trained(&mut stopped, &PLAN, dir.path()).unwrap_err();
            fs::remove_file(dir.path().join(format!("checkpoints/step-{newest}/{file}"))).unwrap();
            let mut lines = vec![];
            let mut first = None;
            let mut toy = Toy::default();
            let checkpoints =
                Checkpoints::new(dir.path().join("checkpoints"), "toy".into()).unwrap();
            let watch = |event: Event| match event {
                Event::Notice(line) => lines.push(line.to_owned()),
                Event::Step(at) => _ = first.get_or_insert(at.step),
            };
            let got = trained_with(&mut toy, &PLAN, (&checkpoints, dir.path()), watch);
            if older == 0 {
                let line = got.unwrap_err().to_string();
                assert!(line.contains("step-2") && line.contains(file), "none is whole: {line}");
                continue;
            }
            assert_eq!(got.unwrap(), want);
            assert_eq!(lines.len(), 1);
            for part in [format!("step-{newest}/{file}"), format!("step-{older}")] {
                assert!(lines[0].contains(&part), "{}", lines[0]);
            }
            assert_eq!(first, Some(older + 1));
            assert!(tree(dir.path()) == tree(whole.path()), "stopped at {stop}");
        }
    }
}

#[test]
fn a_split_without_a_whole_batch_is_refused() {
    assert!(Plan { captions: 4, ..PLAN }.check().is_ok());
    let line = Plan { captions: 3, ..PLAN }.check().unwrap_err().to_string();
    assert_eq!(line, "training split: expected at least one batch of 4 captions, got 3");
}
