//! The modules of a crate must not import each other in a circle: a reader of one of them would have to read all of them.
//!
//! Let `a` and `b` be modules of one parent. `a` imports `b` if code of `a`, or of a module inside `a`, names `b` by a path: from
//! the crate, from a parent, or through a name that a parent re-exports. Paths between a module and its own parent or its own parts
//! are no arrows.

use std::collections::{BTreeMap, VecDeque};

use crate::modules::{self, Files, Module, Token};
use crate::rules::Finding;

/// The circles of the crate in `folder`. After each circle its weakest arrow is removed, until no circle is left.
pub(crate) fn check(files: &Files, folder: &str) -> Vec<Finding> {
    modules::roots(files, folder)
        .flat_map(|root| match modules::read(files, root) {
            Ok(modules) => {
                let found = Crate::new(&modules);
                [found.globs(), found.circles(folder)].concat()
            }
            Err(finding) => vec![finding],
        })
        .collect()
}

/// The ways along which a module of the crate in `folder` imports another one that it must not know, one for each module of `from`.
pub(crate) fn ways(files: &Files, folder: &str, from: &[&str], to: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in modules::roots(files, folder) {
        let Ok(modules) = modules::read(files, root) else { continue }; // `check` says why
        let found = Crate::new(&modules);
        let Some(arrows) = found.levels().remove(&[][..]) else { continue };
        let ways = from.iter().filter_map(|from| way(&arrows, from, to));
        findings.extend(ways.map(|way| Finding::error(folder, describe(&way, &arrows))));
    }
    findings
}

/// Names from the root of the crate down.
pub(crate) type Path = Vec<String>;

/// For each arrow between two modules of one parent, the places in the code that make it.
type Arrows = BTreeMap<(String, String), Vec<String>>;

/// The paths that the modules of a crate name.
struct Crate<'a> {
    /// Every path in the code of a module.
    named: Vec<(&'a Module, Named)>,
    /// For every module, the paths behind the names that it imports.
    imports: BTreeMap<&'a [String], BTreeMap<String, Path>>,
}

impl<'a> Crate<'a> {
    fn new(modules: &'a [Module]) -> Self {
        let (mut named, mut imports) = (Vec::new(), BTreeMap::new());
        for module in modules {
            let names: &mut BTreeMap<_, _> = imports.entry(&module.path[..]).or_default();
            for found in paths(&module.tokens) {
                names.extend(found.name.clone().map(|name| (name, found.path.clone())));
                named.push((module, found));
            }
        }
        Self { named, imports }
    }

    /// Globs of the crate's own modules, because they hide where an arrow leads.
    fn globs(&self) -> Vec<Finding> {
        let hides = |(module, found): &&(&Module, Named)| {
            let own = || self.absolute(&module.path, &found.path, 0);
            found.name.as_deref() == Some(GLOB) && own().is_some_and(|path| self.is_module(&path))
        };
        let finding = |(module, found): &(&Module, Named)| {
            let place = format!("{}:{}", module.file, found.line);
            Finding::error(place, format!("{}::*: name what is imported", found.path.join("::")))
        };
        self.named.iter().filter(hides).map(finding).collect()
    }

    /// The arrows between the modules of each parent.
    fn levels(&self) -> BTreeMap<&[String], Arrows> {
        let mut levels: BTreeMap<&[String], Arrows> = BTreeMap::new();
        for (module, found) in &self.named {
            let from = &module.path;
            let Some(to) = self.target(from, &found.path) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if shared < from.len() {
                let arrow = (from[shared].clone(), to[shared].clone());
                let places = levels.entry(&from[..shared]).or_default().entry(arrow).or_default();
                places.push(format!("{}:{}", module.file, found.line));
            }
        }
        levels
    }

    /// Circles of the crate in `folder`.
    fn circles(&self, folder: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (level, mut arrows) in self.levels() {
            let place = [&[folder.to_owned()], level].concat().join(" ");
            while let Some(circle) = shortest_circle(&arrows) {
                findings.push(Finding::error(&place, describe(&circle, &arrows)));
                let weakest = steps(&circle).min_by_key(|arrow| arrows[arrow].len());
                weakest.and_then(|arrow| arrows.remove(&arrow));
            }
        }
        findings
    }

    /// The module that a path in the code of `from` leads to: the first module on the path that does not contain `from`.
    fn target(&self, from: &[String], path: &[String]) -> Option<Path> {
        let mut path = self.absolute(from, path, 0)?;
        for _ in 0..MOST_NAMES {
            let mut at = 0;
            while at < path.len() && self.is_module(&path[..=at]) {
                at += 1;
                if !from.starts_with(&path[..at]) {
                    path.truncate(at);
                    return Some(path);
                }
            }
            // A name in a module that contains `from`: defined there, or imported from elsewhere.
            let import = self.imports.get(&path[..at])?.get(path.get(at)?)?;
            path = [&self.absolute(&path[..at], import, 0)?[..], &path[at + 1..]].concat();
        }
        None
    }

    /// The path from the root of the crate; `None` for a path that begins outside the crate.
    fn absolute(&self, from: &[String], path: &[String], depth: usize) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let own = if first == "self" { rest } else { path };
        let up = own.iter().take_while(|name| *name == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" | "super" => Some([&from[..from.len().checked_sub(up)?], &own[up..]].concat()),
            _ if self.is_module(&[from, &path[..1]].concat()) => Some([from, path].concat()),
            _ if depth < MOST_NAMES => {
                let import = self.imports.get(from)?.get(first)?;
                Some([&self.absolute(from, import, depth + 1)?[..], rest].concat())
            }
            _ => None, // `use serde::de; use de::…` in a circle
        }
    }

    fn is_module(&self, path: &[String]) -> bool {
        self.imports.contains_key(path)
    }
}

/// Stands for all names of a module.
const GLOB: &str = "*";

/// Largest number of imports that are followed from one name to the next.
const MOST_NAMES: usize = 16;

/// A path in code. In a `use` it has the name that the import gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) path: Path,
    name: Option<String>,
    pub(crate) line: usize,
}

/// All paths of two or more names, and all imports.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).map_or("", |before| &tokens[before].text);
        let next = tokens.get(at + 1).map_or("", |next| &next.text);
        if !token.is_name() || ["::", "."].contains(&before) {
            at += 1;
        } else if token.text == "use" && next != "<" {
            at += 1;
            use_tree(tokens, &mut at, &[], &mut found);
        } else {
            let path = path_at(tokens, &mut at);
            if path.len() > 1 {
                found.push(Named { path, name: None, line: token.line });
            }
        }
    }
    found
}

/// The names joined by `::` from `at` on.
fn path_at(tokens: &[Token], at: &mut usize) -> Path {
    let mut path = Vec::new();
    while let Some(token) = tokens.get(*at).filter(|token| token.is_name()) {
        path.push(token.text.clone());
        *at += 1;
        if tokens.get(*at).is_none_or(|token| token.text != "::") {
            break;
        }
        *at += 1;
    }
    path
}

/// One tree of a `use`, behind the names in `prefix`.
fn use_tree(tokens: &[Token], at: &mut usize, prefix: &[String], found: &mut Vec<Named>) {
    let Some(start) = tokens.get(*at) else { return };
    if start.text == "::" {
        *at += 1; // from another crate
    }
    let mut path = [prefix, &path_at(tokens, at)].concat();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    if text(*at) == "{" {
        *at += 1;
        while !["}", ""].contains(&text(*at)) {
            use_tree(tokens, at, &path, found);
            *at += usize::from(text(*at) == ",");
        }
        *at += 1;
        return;
    }
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let (name, length) = match text(*at) {
        "*" => (Some(GLOB.to_owned()), 1),
        "as" => (Some(text(*at + 1).to_owned()), 2),
        _ => (path.last().cloned(), 0),
    };
    *at += length;
    found.push(Named { path, name, line: start.line });
}

/// The modules of a shortest circle, with the first one repeated at the end; `None` without a circle.
fn shortest_circle(arrows: &Arrows) -> Option<Vec<&str>> {
    let starts = arrows.keys().map(|(from, _)| from.as_str());
    starts.filter_map(|start| way(arrows, start, start)).min_by_key(Vec::len)
}

/// A shortest way of one or more arrows from one module to another, or back to itself.
fn way<'a>(arrows: &'a Arrows, start: &'a str, end: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while !came_from.contains_key(end) {
        let at = next.pop_front()?;
        for (_, to) in arrows.keys().filter(|(from, _)| from == at) {
            came_from.entry(to).or_insert_with(|| {
                next.push_back(to);
                at
            });
        }
    }
    let mut way = vec![end];
    while way.len() == 1 || way.last() != Some(&start) {
        way.push(came_from[way[way.len() - 1]]);
    }
    way.reverse();
    Some(way)
}

/// `a → b → a`, and the places where each module names the next.
fn describe(circle: &[&str], arrows: &Arrows) -> String {
    let each = steps(circle).map(|(from, to)| {
        let named = format!("{from} names {to}");
        match &arrows[&(from, to)][..] {
            [place] => format!("{named} at {place}"),
            places => format!("{named} at {} and {} more", places[0], places.len() - 1),
        }
    });
    format!("{}: {}", circle.join(" → "), each.collect::<Vec<_>>().join(", "))
}

/// The arrows of a circle.
fn steps(circle: &[&str]) -> impl Iterator<Item = (String, String)> {
    circle.windows(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
}

#[cfg(test)]
mod tests;
