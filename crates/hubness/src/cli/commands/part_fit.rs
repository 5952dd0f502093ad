//! Corrections from parts: what each item gives over all queries.

use std::path::{Path, PathBuf};

use itm_core::arrays::{NamedArrays, array, to_bytes};
use itm_core::data::FileBytes;
use itm_core::tiles::{Part, Reduction, Side};
use itm_core::{Error, Result, output};
use serde::{Deserialize, Serialize};

use super::rescore::corrects_by;
use super::{at, option};
use crate::cli::args::{FinishArgs, PartFitArgs};
use crate::csls::means;
use crate::inverted_softmax::check_queries;
use crate::mutual_proximity::FLOOR;
use crate::study::{Base, Method, Settings, Then};
use crate::{Affine, AnyCorrection, Direction, LocalForm, LocalScaling, Setting, export};

/// One correction of one direction.
pub(super) struct PartFit<'a> {
    base: Base,
    number: f64, // CSLS's k or IS's β
    direction: Direction,
    settings: &'a Settings,
}

/// The methods that parts cannot give: they fit nothing, or need all scores at once.
const NOT_OF_PARTS: [Base; 3] = [Base::Nns, Base::Sinkhorn, Base::MpEmpirical];

/// Under these names a part has a hash of all images and one of all texts.
pub(super) const INPUTS: [&str; 2] = ["images", "texts"];
/// Under this name it has `true` or `false`.
pub(super) const RAW: &str = "setting of --raw";

/// Numbers of each item, by name.
type ItemNumbers = Vec<(&'static str, Vec<f64>)>;

/// What the file of a finished correction says of itself, in its metadata; the last two only if the parts say it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) method: String,
    pub(super) direction: Direction,
    pub(super) raw: Option<String>,
    pub(super) items: Option<String>,
}

impl Finished {
    /// The key of the metadata.
    const KEY: &str = "finished";

    /// What a file says.
    pub(super) fn of(file: &NamedArrays<FileBytes>) -> Option<Self> {
        serde_json::from_str(file.about(Self::KEY)?).ok()
    }
}

impl<'a> PartFit<'a> {
    /// The correction that the options name, if they name one.
    ///
    /// # Errors
    /// If parts cannot give the correction, or a setting is not a number.
    pub(super) fn new(args: &'a PartFitArgs) -> Result<Option<Self>> {
        let (Some(name), Some(direction)) = (&args.method, args.direction) else {
            return Ok(None);
        };
        let settings = &args.settings;
        settings.check().map_err(option)?;
        let base = match name.parse().map_err(option)? {
            Method::One(base, Then::Ranking) if !NOT_OF_PARTS.contains(&base) => base,
            _ => {
                let expected = "csls, nnn, is, qbnorm, dual-is, dual-dis, ls, nicdm or mp";
                return Err(Error::invalid("--method", expected, name));
            }
        };
        let number = corrects_by(base, settings)?.unwrap_or(f64::NAN);
        Ok(Some(Self { base, number, direction, settings }))
    }

    /// What a part keeps for the correction.
    pub(super) fn reduction(&self) -> Reduction<'static> {
        let of = self.direction.items(Side::Images, Side::Texts);
        let lists = |k| lists(self.direction.reversed(), k);
        match self.base {
            Base::Csls => lists(self.number as usize),
            Base::Nnn => lists(self.settings.nnn_k),
            Base::Is => Reduction::ExpSums(of, self.number),
            Base::QbNorm => Reduction::ExpSums(of, self.settings.qbnorm_beta),
            Base::DualIs | Base::DualDis => Reduction::ExpSums(of, self.settings.dual_beta[0]),
            Base::Mp => Reduction::Moments(of),
            _ => lists(self.settings.local_k),
        }
    }

    /// Refuses rows that stay as they are for a correction that needs cosines.
    pub(super) fn check_raw(&self, raw: bool) -> Result<()> {
        let fits = !raw || !matches!(self.base, Base::Ls | Base::Nicdm);
        let place = format_args!("--method {}", self.base.name());
        Error::unless(fits, place, "cosines (of embeddings of unit length)", "other scores")
    }

    /// Writes the numbers of each item.
    pub(super) fn write(&self, part: &Part, args: &FinishArgs) -> Result<()> {
        let fits = args.out.extension().is_some_and(|end| end == "safetensors");
        Error::unless(fits, "--out", "FILE.safetensors", args.out.display())?;
        output::check(&args.out)?;
        part.check_reduction(self.reduction()).map_err(|error| at(&args.part, error))?;
        let mut numbers = self.numbers(part).map_err(|error| at(&args.part, error))?;
        self.add_banks(args, &mut numbers)?;
        for path in [&args.best, &args.item_bank, &args.item_best].into_iter().flatten() {
            let other = Part::read(path)?;
            for what in [RAW, self.direction.items(INPUTS[0], INPUTS[1])] {
                let differs = part.input(what).zip(other.input(what)).is_some_and(|(a, b)| a != b);
                let expected = format_args!("the same {what} as in {}", args.part.display());
                Error::unless(!differs, path.display(), expected, "others")?;
            }
        }
        let about = Finished {
            method: args.fit.method.clone().unwrap_or_default(),
            direction: self.direction,
            raw: part.input(RAW).map(str::to_owned),
            items: part.input(self.direction.items(INPUTS[0], INPUTS[1])).map(str::to_owned),
        };
        let about = serde_json::to_string(&about).expect("words");
        let all = numbers.iter().map(|(name, values)| (*name, array(&[values.len()], values)));
        output::write_bytes(&args.out, &to_bytes(all, &[(Finished::KEY, &about)]))
    }

    fn numbers(&self, part: &Part) -> Result<ItemNumbers> {
        let means = |k| part.top().map(|top| means(&top, k));
        Ok(match self.base {
            Base::Csls => vec![("bias", self.biases(2.0, means(self.number as usize)?)?)],
            Base::Nnn => {
                let Settings { nnn_alpha: alpha, nnn_k: k, .. } = *self.settings;
                let means = means(k)?.into_iter().map(|mean| alpha * mean);
                vec![("bias", self.biases(1.0, means.collect())?)]
            }
            Base::Is => {
                let [images, texts] = part.whole();
                check_queries(self.direction.queries(images, texts))?;
                vec![("bias", self.biases(self.number, part.log_sums()?)?)]
            }
            Base::QbNorm | Base::DualIs | Base::DualDis => vec![("log_sum", part.log_sums()?)],
            Base::Mp => {
                let moments = part.moments()?;
                let mean = moments.iter().map(|moment| moment.mean).collect();
                let deviation =
                    moments.iter().map(|moment| moment.deviation().max(FLOOR)).collect();
                vec![("mean", mean), ("deviation", deviation)]
            }
            base => {
                let form =
                    if base == Base::Ls { LocalForm::LocalScaling } else { LocalForm::Nicdm };
                let scaling = LocalScaling { form, k: self.settings.local_k };
                vec![("width", scaling.widths(&part.top()?)?)]
            }
        })
    }

    /// The biases of [`export`].
    fn biases(&self, scale: f64, items: Vec<f64>) -> Result<Vec<f64>> {
        let map = Box::new(Affine::of_items(scale, items));
        export::biases(&AnyCorrection::new(self.direction, Setting::HeldOut, map))
    }

    /// Adds what the other files give: which items the bank of queries makes active, the log sums over a bank of items, which
    /// items that bank makes active. For Dual-IS both sums together are biases.
    fn add_banks(&self, args: &FinishArgs, numbers: &mut ItemNumbers) -> Result<()> {
        let (base, items) = (self.base, numbers[0].1.len());
        let (dynamic, k) = match base {
            Base::DualDis => (true, 1), // as in a report
            _ => (base == Base::QbNorm, self.settings.qbnorm_k),
        };
        let what = "the merged lists of the best items of each query";
        let best = of_option("--best", &args.best, (dynamic, "--method qbnorm or dual-dis"), what)?;
        if let Some(path) = best {
            numbers.push(("active", self.active(path, k, items)?));
        }
        let what = "the sums over the bank of items, as --method is makes them";
        let takes = (base.needs_item_bank(), "--method dual-is or dual-dis");
        if let Some(path) = of_option("--item-bank", &args.item_bank, takes, what)? {
            let of_items = self.item_bank(path, items)?;
            if base == Base::DualIs {
                let both = numbers[0].1.iter().zip(of_items).map(|(query, item)| query + item);
                let scale = self.settings.dual_beta.iter().sum();
                *numbers = vec![("bias", self.biases(scale, both.collect())?)];
            } else {
                numbers.push(("item_log_sum", of_items));
            }
        }
        let what = "the merged lists of the best item of each item of the bank";
        let takes = (base == Base::DualDis, "--method dual-dis");
        if let Some(path) = of_option("--item-best", &args.item_best, takes, what)? {
            numbers.push(("item_active", self.active(path, k, items)?));
        }
        Ok(())
    }

    /// The log sum of each item over a bank of items.
    fn item_bank(&self, path: &Path, items: usize) -> Result<Vec<f64>> {
        let of = self.direction.items(Side::Images, Side::Texts);
        let sums = Reduction::ExpSums(of, self.settings.dual_beta[1]);
        let sums = read(path, sums, Part::log_sums)?;
        let expected = format_args!("sums of {items} items");
        Error::unless(sums.len() == items, path.display(), expected, sums.len())?;
        Ok(sums)
    }

    /// 1 for the items that are among the `k` best of some member of a bank, 0 for the others.
    fn active(&self, path: &Path, k: usize, items: usize) -> Result<Vec<f64>> {
        let top = read(path, lists(self.direction, k), Part::top)?;
        let mut active = vec![0.0; items];
        for query in 0..top.queries() {
            for &item in top.items(query) {
                let place = active.get_mut(item as usize);
                let beyond =
                    || Error::invalid(path.display(), format!("lists of {items} items"), item);
                *place.ok_or_else(beyond)? = 1.0;
            }
        }
        Ok(active)
    }
}

/// Lists of the best items of each query.
fn lists(direction: Direction, k: usize) -> Reduction<'static> {
    direction.queries(Reduction::TopTexts(k), Reduction::TopImages(k))
}

/// What all parts with this reduction give.
fn read<T>(
    path: &Path,
    reduction: Reduction<'_>,
    give: impl FnOnce(&Part) -> Result<T>,
) -> Result<T> {
    let part = Part::read(path)?;
    part.check_reduction(reduction).and_then(|()| give(&part)).map_err(|error| at(path, error))
}

/// The file of an option, which the command takes or does not take; `with` names the options beside which it takes it.
pub(super) fn of_option<'a>(
    option: &str,
    file: &'a Option<PathBuf>,
    (takes, with): (bool, &str),
    what: &str,
) -> Result<Option<&'a Path>> {
    match (takes, file) {
        (true, None) => Err(Error::invalid(option, what, "none")),
        (false, Some(_)) => Err(Error::invalid(option, with, "another")),
        _ => Ok(file.as_deref()),
    }
}
