//! `itm list`: the targets, their papers and tables, and whether their data are here.

use std::path::Path;

use itm_core::Result;

use crate::config::{Config, DatasetName};

/// One line a target.
pub(crate) fn list(configs: &Path, data: &Path) -> Result<String> {
    let mut lines = vec![["target", "paper", "table", "data"].map(str::to_owned)];
    for name in Config::names(configs)? {
        let config = Config::load(configs, &name)?;
        let target = &config.target;
        let folder = data.join(target.dataset.folder());
        let title = target.dataset.title();
        let present = match (target.dataset, &target.substitute) {
            (DatasetName::Scenes, _) => format!("{title}: built in"),
            _ if folder.is_dir() => format!("{title}: {}", folder.display()),
            (_, Some(other)) => {
                format!("{title}: not in {}, runs {other} instead", folder.display())
            }
            (_, None) => format!("{title}: not in {} (`--data DIR`)", folder.display()),
        };
        lines.push([name, target.paper.clone(), target.table.to_string(), present]);
    }
    let width = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |[target, paper, table, data]: &[String; 4]| {
        format!("{target:<0$}  {paper:<1$}  {table:<2$}  {data}", widths[0], widths[1], widths[2])
    };
    Ok(lines.iter().map(line).collect::<Vec<_>>().join("\n"))
}
