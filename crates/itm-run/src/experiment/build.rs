//! An experiment from a command line. Everything is checked here, before anything is written.

use std::path::Path;

use hubness::report::Report;
use hubness::study::{Method, Study};
use itm_core::{Error, Result};

use super::Experiment;
use crate::cli::{self, How, What};
use crate::config::{Config, Exhibit, MOST_SEEDS, View, within};
use crate::devices::devices;
use crate::methods::{self, Kind};
use crate::paper::{Corrections, Paper};
use crate::parallel;
use crate::plan::{self, Room};
use crate::run::Run;
use crate::source::Source;

impl Experiment {
    /// What the command line requests of a target, on its data. Its folder is made later.
    ///
    /// # Errors
    /// If the command line, the configuration, the data or the memory is at fault. The error is one line.
    pub(crate) fn new(target: Config, what: &What, how: &How, configs: &Path) -> Result<Self> {
        let (kind, paper) = (Kind::of(&target)?, Paper::of(&target)?);
        let (shown, view) = view(what, &target)?;
        let (used, source) = Source::open(&target, how.data.as_deref(), configs)?;
        let seeds = seeds(what, &used, (&shown, &view))?;
        let rescore = corrections(what, &target, &shown, &view)?;
        let devices = devices(&how.backend)?;
        let view = with_rows(view, what, &used, &shown)?;
        if !how.resume {
            check_sources(&used, &view.rows)?;
        }
        // The view's protocol is only for the target's data, not for a substitute's.
        let own = view.protocol.filter(|_| source.substitution.is_none());
        let protocol = own.unwrap_or(used.target.protocol);
        protocol.folds(&source.dataset.test.pairs).map_err(used.inside("test split"))?;
        used.points(&shown, &view)?;
        used.check_set(&view.rows)?;
        let mut run = Run::new(with_precision(used, &view.rows, how)?, source, devices)?;
        view.rows.iter().try_for_each(|row| run.check_row(row))?;
        run.note_cuts(&view.rows);
        let room = Room::of(how);
        let test = &run.source.dataset.test.pairs;
        let counts = [4, test.images(), test.texts(), view.together.len()].map(|n| n as u64);
        let averaged = counts.into_iter().fold(seeds, u64::saturating_mul);
        let memory = plan::memory(&run, &view.rows, averaged, room)?;
        let fits = |jobs| memory.iter().flatten().all(|memory| room.fits(memory.of(jobs)));
        let jobs = parallel::jobs(how, view.rows.len() * seeds as usize, fits)?;
        for (row, memory) in view.rows.iter().zip(&memory) {
            memory.map_or(Ok(()), |memory| memory.check(&format!("row.{row}"), jobs, room))?;
        }
        if how.backend == "cpu" {
            run.states =
                memory.iter().flatten().map(|memory| room.spare(memory, jobs)).min().unwrap_or(0);
        }
        Ok(Self {
            printed: Corrections::of(&target, &paper, &shown, &view)?,
            command: cli::repeated(&target.name, what, how, configs, seeds),
            target,
            kind,
            paper,
            shown,
            view,
            protocol,
            seeds: (0..seeds).collect(),
            rescore,
            backend: how.backend.clone(),
            run,
            memory,
            room,
            jobs,
        })
    }
}

/// The table or figure that the command line names; the target's own table by default.
fn view(what: &What, target: &Config) -> Result<(Exhibit, View)> {
    let shown = match (&what.table, what.figure) {
        (_, Some(n)) => Exhibit::Figure(n),
        (Some(name), None) => Exhibit::table(name),
        (None, None) => Exhibit::Table(target.target.table),
    };
    if let Some(view) = target.view(&shown) {
        return Ok((shown, view));
    }
    let known: Vec<_> = target.shown().iter().map(Exhibit::to_string).collect();
    let (place, got) = match shown {
        Exhibit::Table(n) => ("--table", n.to_string()),
        Exhibit::Named(name) => ("--table", format!("`{name}`")),
        Exhibit::Figure(n) => ("--figure", n.to_string()),
    };
    Err(Error::invalid(place, format!("one of {}: {}", target.name, known.join(", ")), got))
}

/// Number of seeds: from the command line, or else from the target, so that every ensemble is full.
fn seeds(what: &What, used: &Config, (shown, view): (&Exhibit, &View)) -> Result<u64> {
    let Some(count) = what.seeds else {
        return Ok(used.target.seeds.next_multiple_of(view.ensemble));
    };
    within("--seeds".into(), count, 1..=MOST_SEEDS)?;
    let expected = format_args!("a multiple of {}: {shown} has ensembles", view.ensemble);
    Error::unless(count.is_multiple_of(view.ensemble), "--seeds", expected, count)?;
    Ok(count)
}

/// The corrections that the command line names, or else the table's.
fn corrections(what: &What, asked: &Config, shown: &Exhibit, view: &View) -> Result<Option<Study>> {
    match &what.rescore {
        Some(methods) => study("--rescore", methods).map(Some),
        None if view.rescore.is_empty() => Ok(None),
        None => study(&asked.place(&shown.key("rescore")), &view.rescore).map(Some),
    }
}

/// The paper's recipe for the methods that a command line or a table names; nearest neighbours come first.
///
/// # Errors
/// If a name is unknown or is given twice.
pub(crate) fn study(place: &str, names: &[String]) -> Result<Study> {
    let mut methods: Vec<Method> = vec![];
    for name in [Report::BASELINE].into_iter().chain(names.iter().map(String::as_str)) {
        let expected = "names of `hubness report --method`: csls, is, rgm, csls+rgm, …";
        let wrong = |_| Error::invalid(place, expected, format!("`{name}`"));
        let method = name.parse::<Method>().map_err(wrong)?;
        let once = names.iter().filter(|other| *other == name).count() <= 1;
        Error::unless(once, place, "each name once", format_args!("`{name}` twice"))?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Ok(Study { methods, curves: true, ..Study::default() })
}

/// The table or figure with the rows that the command line names, in the target's order; by default all its rows.
fn with_rows(mut view: View, what: &What, used: &Config, shown: &Exhibit) -> Result<View> {
    if let Some(in_use) = used.view(shown) {
        view.rows = in_use.rows; // a substitute's table has the substitute's rows, which may be more
    }
    if let Some(rows) = &what.rows {
        let known = match (&what.table, what.figure) {
            (None, None) => used.rows().map(str::to_owned).collect(), // no table: any row of the file
            _ => view.rows,
        };
        let wanted = rows_of(rows, &known)?;
        view.rows = known.into_iter().filter(|row| wanted.contains(row)).collect();
    }
    if !view.together.iter().all(|row| view.rows.contains(row)) {
        view.together.clear(); // some of these rows are left out
    }
    Ok(view)
}

/// The rows of a list with commas. A name may have commas too: the longest name of `known` counts.
///
/// # Errors
/// Names the first row that is not known.
fn rows_of(list: &str, known: &[String]) -> Result<Vec<String>> {
    let (mut found, mut rest) = (vec![], Some(list));
    while let Some(text) = rest {
        let after = |name: &str| {
            let after = text.strip_prefix(name)?;
            (after.is_empty() || after.starts_with(',')).then_some(after)
        };
        let first = known.iter().filter(|name| after(name).is_some()).max_by_key(|name| name.len());
        let Some(name) = first else {
            let expected = format!("some of `{}`", known.join("`, `"));
            let got = text.split(',').next().unwrap_or(text);
            return Err(Error::invalid("--rows", expected, format!("`{got}`")));
        };
        found.push(name.clone());
        rest = text[name.len()..].strip_prefix(',');
    }
    Ok(found)
}

/// Refuses a row that begins with a row outside this training. A resumed run may have trained that row before.
fn check_sources(config: &Config, rows: &[String]) -> Result<()> {
    for row in rows {
        let Some(from) = config.from(row).filter(|from| !rows.iter().any(|row| row == from)) else {
            continue;
        };
        let expected = format!("a row that is trained with it: {}", rows.join(", "));
        let place = config.place(&format!("row.{row}, from"));
        return Err(Error::invalid(place, expected, format!("`{from}`")));
    }
    Ok(())
}

/// The target with the precision of the command line.
///
/// # Errors
/// If the precision is bf16, and a row has no blocks.
fn with_precision(config: Config, rows: &[String], how: &How) -> Result<Config> {
    let Some(precision) = how.precision else { return Ok(config) };
    let mut changed = vec![];
    for row in rows {
        let inside = config.inside(&format!("row.{row}"));
        match methods::recipe(&config, row)?.facts().map_err(inside)?.precision {
            None if !precision.is_f32() => {
                let expected = "f32, because this row has no transformer: no ViT, BERT, CLIP, SigLIP or UNITER";
                let place = config.place(&format!("row.{row}, --precision"));
                return Err(Error::invalid(place, expected, "bf16"));
            }
            Some(own) if own != precision => changed.push(row.clone()),
            _ => (),
        }
    }
    config.with_precision(&changed, precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_have_a_comma_in_its_name() {
        let known = ["Full", "Full, scratch", "w/o FNE, scratch"].map(String::from);
        let rows = |list: &str| rows_of(list, &known).map_err(|error| error.to_string());
        assert_eq!(rows("Full, scratch,Full").unwrap(), [&known[1], &known[0]].map(String::clone));
        assert_eq!(rows("Full,w/o FNE, scratch").unwrap().len(), 2);
        for (list, got) in [("", ""), ("Full,", ""), ("Ful,Full", "Ful"), ("Fulls", "Fulls")] {
            let want = "--rows: expected some of `Full`, `Full, scratch`, `w/o FNE, scratch`";
            assert_eq!(rows(list).unwrap_err(), format!("{want}, got `{got}`"));
        }
    }

    #[test]
    fn nearest_neighbours_come_first_and_once() {
        let study = |names: &[&str]| {
            study("--rescore", &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        let got = study(&["csls", "nns", "is+rgm"]).unwrap();
        let methods: Vec<_> = got.methods.iter().map(Method::to_string).collect();
        assert_eq!(methods, ["nns", "csls", "is+rgm"]);
        let line = |list: &[&str]| study(list).unwrap_err().to_string();
        assert!(line(&["cslz"]).contains("--rescore: expected names of"));
        assert!(line(&["is", "is"]).contains("`is` twice"));
    }
}
