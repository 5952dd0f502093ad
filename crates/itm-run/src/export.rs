//! `itm export`: a CLIP or SigLIP that a run trained, in the files of the published model.

use std::path::Path;

use itm_core::Result;
use itm_core::output::{Existing, NewFolder};

use crate::cli::{ExportArgs, RunRow};
use crate::progress;
use crate::run::Run;

pub(crate) fn export(args: &ExportArgs, configs: &Path) -> Result<()> {
    let RunRow { run, row, seed, data, backend } = &args.of;
    let out = NewFolder::begin(&args.out, Existing::Nothing("a new or empty folder"))?;
    let (run, row) = Run::open(run, (data.as_deref(), backend), configs, |config| {
        config.named_row(row.as_deref())
    })?;
    progress::during("writing the model", || {
        let model = run.trained(&row, *seed)?;
        model.method.export(&out.path()).map_err(run.config.inside(&format!("row.{row}")))?;
        out.commit()
    })?;
    progress::say(format!("{row}, seed {seed}, in {}", args.out.display()));
    Ok(())
}
