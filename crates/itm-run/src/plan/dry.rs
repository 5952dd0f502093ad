//! Steps that are made to see what memory they take. Their model is thrown away.

use std::cmp::Reverse;
use std::iter::repeat_n;
use std::process::exit;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use itm_core::Result;
use itm_core::data::{Regions, Split};
use itm_core::learn::{Method, Observe};

use super::{Memory, Room, scores};
use crate::model::Model;
use crate::pictures::BATCHES_AHEAD;
use crate::run::Run;
use crate::{progress, system};

/// From one look at the memory to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// The memory of each row, where it can be measured. The first row that does not fit ends the measuring. `averaged` are the bytes of
/// scores that are kept until they are averaged.
///
/// # Errors
/// If a row does not fit, or cannot begin with the weights of its row.
pub(crate) fn memory(
    run: &Run,
    rows: &[String],
    averaged: u64,
    room: Room,
) -> Result<Vec<Option<Memory>>> {
    if !room.is_known() {
        for row in rows.iter().filter(|row| run.config.from(row).is_some()) {
            run.model_after(row, run.weights_before(row)?)?;
        }
        return Ok(vec![None; rows.len()]);
    }
    let scores = scores(&run.source).saturating_add(averaged);
    let _spinner = progress::spinner("steps that measure the memory");
    let mut all = vec![];
    for row in rows {
        let memory = measure(run, row, scores, room)?;
        memory.map_or(Ok(()), |memory| memory.check(&format!("row.{row}"), 1, room))?;
        all.push(memory);
    }
    Ok(all)
}

/// Steps of each phase on the longest captions: a quarter of what the row holds at once, a half, all. Before a larger step the line through the smaller
/// ones says how much it will take; if that does not fit, the step is not made, and the estimate is returned. `None` if the system does
/// not report the memory of a process.
///
/// # Errors
/// As [`Run::model_after`]; also if an item cannot be read.
fn measure(run: &Run, row: &str, scores: u64, room: Room) -> Result<Option<Memory>> {
    let key = run.facts(row).at_once.1;
    watched(&format!("row.{row}"), key, room, || steps(run, row, scores, room))
}

fn steps(run: &Run, row: &str, scores: u64, room: Room) -> Result<Option<Memory>> {
    let (captions, key) = run.facts(row).at_once;
    let weights = run.weights_before(row)?;
    let Some(before) = system::settled_memory_bytes() else { return Ok(None) };
    let since = |bytes: Option<u64>| bytes.map_or(0, |bytes| bytes.saturating_sub(before));
    let Model { mut method, mut inputs, .. } = run.model_after(row, weights)?;
    method.begin_epoch(0, inputs.items(Split::Train))?;
    let longest = longest(run, row);
    let captions = captions.min(longest.len());
    let mut step = of_phases(&mut *method, room, |method| {
        system::forget_peak();
        let mut made: Vec<(usize, u64)> = vec![];
        for share in [4, 2, 1] {
            let some = &longest[..captions / share];
            if some.len() < 2 && share > 1 {
                continue; // a method may need a negative
            }
            if extended(&made, some.len()).is_some_and(|step| !room.fits(step)) {
                return Ok(extended(&made, captions).unwrap_or(u64::MAX));
            }
            inputs.ahead(repeat_n((some, 0), BATCHES_AHEAD + 1));
            // The training says what is wrong with a step.
            let _ = inputs.step(some, 0, |batch| method.step(batch, 0, Observe::Off))?;
            made.push((some.len(), since(system::peak_memory_bytes())));
        }
        Ok(since(system::peak_memory_bytes()))
    })?;
    if room.fits(step) {
        method.save(&mut |_, _| Ok(()))?;
        step = step.max(since(system::peak_memory_bytes()));
    }
    let kept = since(system::settled_memory_bytes());
    Ok(Some(Memory { captions, key, step, kept, scores }))
}

/// The largest of what each phase of a training takes. The first phase that does not fit ends the measuring.
fn of_phases(
    method: &mut dyn Method,
    room: Room,
    mut measure: impl FnMut(&mut dyn Method) -> Result<u64>,
) -> Result<u64> {
    let mut largest = measure(method)?;
    while room.fits(largest) && method.next_phase() {
        largest = largest.max(measure(method)?);
    }
    Ok(largest)
}

/// Does the work, and meanwhile ends the program with one line if it takes more memory than the machine has. Without this watch the
/// system would kill the program, and nobody would know why.
fn watched<T>(place: &str, key: &str, room: Room, work: impl FnOnce() -> T) -> T {
    let (Some(available), Some(before)) = (room.available, room.resident) else {
        return work();
    };
    let most = before.saturating_add(available);
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if system::resident_memory_bytes().is_some_and(|now| now > most) {
                    eprintln!(
                        "error: memory, {place}: expected a training in at most {available} bytes available, got more; \
                         a smaller {key} or a smaller model takes less"
                    );
                    exit(2);
                }
            }
        });
        let _ends = done; // after the work, or when it panics
        work()
    })
}

/// The value at `captions` on the line through the last two points.
fn extended(made: &[(usize, u64)], captions: usize) -> Option<u64> {
    let [.., (n, before), (m, last)] = made else { return None };
    let slope = last.saturating_sub(*before) as f64 / (m - n) as f64;
    Some(last.saturating_add((slope * (captions.saturating_sub(*m)) as f64) as u64))
}

/// The training captions with the most words and regions first.
fn longest(run: &Run, row: &str) -> Vec<usize> {
    let (part, texts) = (run.source.part(Split::Train).0, run.reading(row).texts(Split::Train));
    let counts = part.regions.as_ref().map_or(&[][..], Regions::counts);
    let length = |&text: &usize| {
        texts[text].len() + counts.get(part.pairs.image_of(text)).copied().unwrap_or(0)
    };
    let mut all: Vec<usize> = (0..texts.len()).collect();
    all.sort_by_key(|text| Reverse(length(text)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    fn given(bytes: u64) -> Room {
        Room { resident: Some(0), given: Some(bytes), available: None }
    }

    #[test]
    fn a_line_goes_through_two_points() {
        assert_eq!(extended(&[(8, 100)], 32), None);
        assert_eq!(extended(&[(8, 100), (16, 180)], 32), Some(340));
        assert_eq!(extended(&[(4, 7), (8, 100), (16, 90)], 32), Some(90), "memory never shrinks");
    }

    /// Captions alone, then pairs: the larger phase counts. A row without captions alone has one phase, and what does not fit ends the measuring.
    #[test]
    fn each_phase_is_measured() {
        let run = tests::small_run("tags-dc-scenes");
        let of = |row, sizes: [u64; 2], limit| {
            let (mut model, mut phases) = (run.model_after(row, None).unwrap(), 0);
            let largest = of_phases(&mut *model.method, given(limit), |_| {
                phases += 1;
                Ok(sizes[phases - 1])
            });
            (largest.unwrap(), phases)
        };
        assert_eq!(of("absent words", [5, 7], 10), (7, 2));
        assert_eq!(of("absent words", [7, 5], 10), (7, 2));
        assert_eq!(of("absent words", [7, 5], 6), (7, 1));
        assert_eq!(of("pretrain", [5, 7], 10), (5, 1));
    }

    /// Steps of every method can be measured, and more memory than there is makes no further step. How much a step takes is not
    /// compared: other tests take and free memory of this process meanwhile (`plans_and_too_little_memory` has a process of its own).
    #[cfg(target_os = "linux")]
    #[test]
    fn steps_are_measured() {
        for target in ["fne-scenes", "hal-scenes", "naaf-scenes", "tags-dc-scenes"] {
            let run = tests::small_run(target);
            let row = run.config.rows().next().unwrap().to_owned();
            let all = measure(&run, &row, 5, given(u64::MAX)).unwrap().unwrap();
            assert_eq!(all.scores, 5, "{target}: {all:?}");
            let most = run.source.dataset.train.pairs.texts();
            assert!((1..=most).contains(&all.captions), "{target}: {all:?}");
            let nothing = given(0);
            let none = measure(&run, &row, 5, nothing).unwrap().unwrap();
            assert_eq!((none.captions, none.key), (all.captions, all.key), "{target}");
            none.check(&row, 1, nothing).unwrap_err();
        }
    }
}
