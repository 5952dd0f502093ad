//! `itm export`: a CLIP or SigLIP that a run trained, in the files of the published model.

use std::path::Path;

use itm_core::Result;
use itm_core::output::{Existing, NewFolder};

use crate::cli::ExportArgs;
use crate::progress;
use crate::run::Run;

pub(crate) fn export(args: &ExportArgs, configs: &Path) -> Result<()> {
    let out = NewFolder::begin(&args.out, Existing::Nothing("a new or empty folder"))?;
    let row = |config: &crate::config::Config| config.named_row(args.row.as_deref());
    let run = Run::open(&args.run, (args.data.as_deref(), "cpu"), configs, |config| {
        row(config).map(drop)
    })?;
    let row = row(&run.config)?;
    progress::during("writing the model", || {
        let model = run.trained(&row, args.seed)?;
        model.method.export(&out.path()).map_err(run.config.inside(&format!("row.{row}")))?;
        out.commit()
    })?;
    progress::say(format!("{row}, seed {}, in {}", args.seed, args.out.display()));
    Ok(())
}
