//! `hubness partial`, `merge` and `finish`: one pass by several processes or machines, joined bit for bit.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use itm_core::eval::{Evaluation, TiePolicy};
use itm_core::tiles::{Part, Reduction, Tiles, TopK};
use itm_core::{Error, Pairs, Result, output};
use serde_json::json;

use super::part_fit::{INPUTS, PartFit, RAW, of_option};
use super::rescore::ranked;
use super::{at, put};
use crate::cli::args::{FinishArgs, Keep, MergeArgs, PartialArgs};
use crate::cli::input::{self, Arrays, InputArgs, run_text, view};
use crate::hubs::{Counts, HubMeasures};

/// Makes one part.
pub(super) fn partial(args: &PartialArgs) -> Result<()> {
    let paired = matches!(args.keep, Some(Keep::PairScores | Keep::Ranks));
    let what = "the scores of all pairs: partial --keep pair-scores, then merge";
    let takes = (args.keep == Some(Keep::Ranks), "--keep ranks");
    let known = of_option("--pair-scores", &args.pair_scores, takes, what)?;
    let known = known.map(|path| Ok::<_, Error>((path, Part::read(path)?))).transpose()?;
    let scores = known.as_ref().map_or(Ok(vec![]), |(_, part)| part.pair_scores())?;
    Error::unless(args.top > 0, "--top", "at least 1 item", 0)?;
    let fit = PartFit::new(&args.fit)?;
    fit.as_ref().map_or(Ok(()), |fit| fit.check_raw(args.input.raw))?;
    output::check(&args.out)?;
    let Arrays { rows: arrays, hashes: [of_images, of_texts], pairs } =
        input::arrays(&args.input, paired)?;
    let inputs = [(INPUTS[0], of_images), (INPUTS[1], of_texts), (RAW, args.input.raw.to_string())];
    if let Some((path, part)) = &known {
        for (what, is) in &inputs {
            let same = part.input(what).is_none_or(|of| of == is);
            Error::unless(same, path.display(), format_args!("the same {what} as here"), "others")?;
        }
    }
    let whole = (arrays[0].rows(), arrays[1].rows());
    let pairs = pairs.unwrap_or_else(|| Pairs::uniform(0, 0));
    let reduction = match (fit, args.keep) {
        (Some(fit), _) => fit.reduction(),
        (_, None | Some(Keep::TopTexts)) => Reduction::TopTexts(args.top),
        (_, Some(Keep::TopImages)) => Reduction::TopImages(args.top),
        (_, Some(Keep::PairScores)) => Reduction::PairScores(&pairs),
        (_, Some(Keep::Ranks)) => Reduction::Ranks(&pairs, &scores),
    };
    let rows = |array: &input::Array, option: &str, span: &Option<Range<usize>>| {
        let all = 0..array.rows();
        let range = span.clone().unwrap_or(all.clone());
        let expected = format_args!("rows of {}, {all:?}", array.place());
        Error::unless(range.end <= all.end, option, expected, format_args!("{range:?}"))?;
        Ok::<_, Error>((range.start, input::some_rows(array, range, args.input.length())?))
    };
    let (row, images) = rows(&arrays[0], "--rows", &args.rows)?;
    let (column, texts) = rows(&arrays[1], "--cols", &args.cols)?;
    let tiles = Tiles::new(view("images", &images)?, view("texts", &texts)?)?;
    let part = tiles.part(reduction, (row, column), whole)?;
    inputs.into_iter().fold(part, |part, (what, is)| part.with_input(what, is)).write(&args.out)
}

/// Joins parts.
pub(super) fn merge(args: &MergeArgs) -> Result<()> {
    output::check(&args.out)?;
    let (first, rest) = args.parts.split_first().expect("a required argument");
    let join =
        |all: Part, path: &PathBuf| all.join(Part::read(path)?).map_err(|error| at(path, error));
    rest.iter().try_fold(Part::read(first)?, join)?.write(&args.out)
}

/// Gives the result of all parts.
pub(super) fn finish(args: &FinishArgs, out: &mut impl Write) -> Result<()> {
    let fit = PartFit::new(&args.fit)?;
    let fits = args.pair_scores.is_some() || args.input == InputArgs::default();
    Error::unless(fits, "options of the input", "--pair-scores beside them", "none")?;
    let part = Part::read(&args.part)?;
    let named = |error| at(&args.part, error);
    if let Some(fit) = fit {
        return fit.write(&part, args);
    }
    if let Some(scores) = &args.pair_scores {
        let scores = Part::read(scores)?.pair_scores()?;
        let pairs = input::arrays(&args.input, true)?.pairs;
        let ranks = part.ranks(&pairs.expect("asked for"), &scores).map_err(named)?;
        let found = Evaluation::new(&[ranks], TiePolicy::Index);
        let failed = |error| Error::invalid("recalls", "numbers that JSON can hold", error);
        let text = serde_json::to_string_pretty(&found).map_err(failed)?;
        return put(&format!("{text}\n"), &args.out, out, "standard output");
    }
    let top = part.top().map_err(named)?;
    let [queries, items] = part.sides().expect("lists");
    if args.hubs {
        return hubs(&top, items, args, out);
    }
    let mut lists = ranked(&top, queries);
    // A small file may say that there are many items: only an item of a list gets a name.
    let mut listed: Vec<_> = lists.iter().flatten().map(|entry| entry.0).collect();
    listed.sort_unstable();
    listed.dedup();
    for entry in lists.iter_mut().flatten() {
        entry.0 = listed.partition_point(|&item| item < entry.0) as u32;
    }
    let items: Vec<_> = listed.iter().map(u32::to_string).collect();
    let queries: Vec<_> = (0..queries).map(|row| row.to_string()).collect();
    put(&run_text(&queries, &items, &lists, "hubness")?, &args.out, out, "run file")
}

/// The lengths of lists at which hubs are counted.
const LENGTHS: [usize; 3] = [1, 5, 10];
/// The most items that are counted: a small file may name any number.
const MOST_ITEMS: usize = 1 << 28;
/// The number of items with the largest counts.
const WORST: usize = 10;

/// N_k of the lists: measures, and the items in most lists.
fn hubs(top: &TopK, items: usize, args: &FinishArgs, out: &mut impl Write) -> Result<()> {
    let expected = format_args!("at most {MOST_ITEMS} items");
    Error::unless(items <= MOST_ITEMS, args.part.display(), expected, items)?;
    let lists = || (0..top.queries()).map(|query| top.items(query));
    if let Some(item) = lists().flatten().find(|&&item| item as usize >= items) {
        return Err(Error::invalid(args.part.display(), format!("items below {items}"), item));
    }
    let counts = |k| Counts::new(items, k, lists());
    let all: Vec<_> =
        LENGTHS.into_iter().filter(|&k| k.min(items) <= top.k()).map(counts).collect();
    let worst = all.last().map_or(vec![], |counts| {
        let item = |item: usize| json!({ "item": item, "count": counts.values[item] });
        counts.largest(WORST).into_iter().map(item).collect()
    });
    let found = json!({
        "queries": top.queries(),
        "items": items,
        "measures": all.iter().map(HubMeasures::new).collect::<Vec<_>>(),
        "worst": worst,
    });
    put(&format!("{found:#}\n"), &args.out, out, "standard output")
}
