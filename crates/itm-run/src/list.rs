//! `itm list`: the targets, their papers, tables and figures, and whether their data are here.

use std::path::Path;

use itm_core::Result;

use crate::config::{Config, DatasetName, Exhibit};

/// One line per target.
pub(crate) fn list(configs: &Path, data: &Path) -> Result<String> {
    let mut lines = vec![["target", "paper", "makes", "data"].map(str::to_owned)];
    for name in Config::names(configs)? {
        let config = Config::load(configs, &name)?;
        let makes = made(&config.shown());
        let target = &config.target;
        let folder = data.join(target.dataset.folder());
        let (title, at) = (target.dataset.title(), folder.display());
        let present = match (target.dataset, &target.substitute) {
            (DatasetName::Scenes, _) => format!("{title}: built in"),
            _ if folder.is_dir() => format!("{title}: {at}"),
            (_, Some(other)) => format!("{title}: not in {at}, runs {other} instead"),
            (_, None) => format!("{title}: not in {at}; `cargo xtask data` says how to get it"),
        };
        for shown in config.shown() {
            if let Some(alias) = config.view(&shown).and_then(|view| view.alias) {
                let makes = format!("{shown} of {name}");
                lines.push([alias, target.paper.clone(), makes, present.clone()]);
            }
        }
        lines.push([name, target.paper.clone(), makes, present]);
    }
    lines[1..].sort();
    let width = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |[target, paper, makes, data]: &[String; 4]| {
        format!("{target:<0$}  {paper:<1$}  {makes:<2$}  {data}", widths[0], widths[1], widths[2])
    };
    Ok(lines.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// `tables 1 3 scratch, figure 4`: the values of `--table` and `--figure`.
fn made(all: &[Exhibit]) -> String {
    let (figures, tables): (Vec<_>, Vec<_>) =
        all.iter().partition(|shown| matches!(shown, Exhibit::Figure(_)));
    let kind = |(name, shown): (&str, Vec<&Exhibit>)| {
        let names: Vec<_> = shown.into_iter().map(Exhibit::name).collect();
        let end = if names.len() == 1 { "" } else { "s" };
        (!names.is_empty()).then(|| format!("{name}{end} {}", names.join(" ")))
    };
    let kinds = [("table", tables), ("figure", figures)].into_iter().filter_map(kind);
    kinds.collect::<Vec<_>>().join(", ")
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
        for (target, want) in [
            ("fne-scenes", "tables 1 2 3 4 5 draw hubs scratch truth, figures 4 5  "),
            ("fne-coco", "tables 1 2  "),
            ("hal-scenes", "tables 1 2 3 scratch, figures 1 2  "),
            ("hal-coco-c1", "table 2, figure 2  "),
            ("hubness-scenes", "table 3 of hal-scenes  "),
            ("hubness-scenes-fne", "table hubs of fne-scenes  "),
        ] {
            let makes = line("target").find("makes").unwrap();
            assert!(line(target)[makes..].starts_with(want), "{}", line(target));
        }
    }
}
