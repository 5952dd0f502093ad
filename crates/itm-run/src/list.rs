//! `itm list`: the targets, their papers and tables, and whether their data are here.

use std::path::Path;

use itm_core::Result;

use crate::config::{AnyConfig, Config, DatasetName};

/// One line a target.
pub(crate) fn list(configs: &Path, data: &Path) -> Result<String> {
    let mut lines = vec![["target", "paper", "table", "data"].map(str::to_owned)];
    for name in Config::names(configs)? {
        let (config, paper, table) = match AnyConfig::load(configs, &name)? {
            AnyConfig::Trained(config) => {
                let (paper, table) = (config.target.paper.clone(), config.target.table);
                (*config, paper, table)
            }
            // Its data are those of the target whose models it measures.
            AnyConfig::Hubs(hubs) => {
                (Config::load(configs, &hubs.target.source)?, hubs.target.paper, hubs.target.table)
            }
        };
        let target = &config.target;
        let folder = data.join(target.dataset.folder());
        let title = target.dataset.title();
        let present = match (target.dataset, &target.substitute) {
            (DatasetName::Scenes, _) => format!("{title}: built in"),
            _ if folder.is_dir() => format!("{title}: {}", folder.display()),
            (_, Some(other)) => {
                format!("{title}: not in {}, runs {other} instead", folder.display())
            }
            (_, None) => {
                format!("{title}: not in {}; `itm data` says how to get it", folder.display())
            }
        };
        lines.push([name, paper, table.to_string(), present]);
    }
    let width = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |[target, paper, table, data]: &[String; 4]| {
        format!("{target:<0$}  {paper:<1$}  {table:<2$}  {data}", widths[0], widths[1], widths[2])
    };
    Ok(lines.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_says_where_its_data_are() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("flickr8k")).unwrap();
        let text = list(&configs, data.path()).unwrap();
        let line = |target: &str| {
            let found = text.lines().find(|l| l.split(' ').next() == Some(target));
            found.unwrap_or_else(|| panic!("no {target} in\n{text}"))
        };
        let column = line("target").find("data").unwrap();
        let folder = |name: &str| data.path().join(name).display().to_string();
        for (target, want) in [
            ("fne-scenes", "Scenes: built in".to_owned()),
            ("fne-flickr8k", format!("Flickr8k: {}", folder("flickr8k"))),
            ("hubness-scenes", "Scenes: built in".to_owned()),
            ("hubness-flickr8k", format!("Flickr8k: {}", folder("flickr8k"))),
            (
                "fne-flickr",
                format!("Flickr30K: not in {}, runs fne-scenes instead", folder("flickr30k")),
            ),
        ] {
            assert_eq!(&line(target)[column..], want);
        }
    }
}
