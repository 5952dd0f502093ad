//! The modules of a crate, read from its source text: names and tokens. Tests, comments and documentation are left out.

use std::collections::BTreeMap;
use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

use crate::rules::Finding;

/// The contents of the repository's files, by path from the root.
pub(crate) type Files = BTreeMap<String, String>;

/// One module; an inline module is a separate module too.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Names from the root of the crate down; empty for the root.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    /// Code without tests and without inline modules. Groups are flattened between their delimiters.
    pub(crate) tokens: Vec<Token>,
}

/// A name, a literal, a delimiter or a mark; `::` is one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    /// Whether it is a name or a keyword.
    pub(crate) fn is_name(&self) -> bool {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        self.text.chars().all(part) && !self.text.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// The files that a crate in `folder` is built from: library and binaries.
pub(crate) fn roots<'a>(files: &'a Files, folder: &str) -> impl Iterator<Item = &'a str> {
    let source = format!("{folder}/src/");
    files.keys().map(String::as_str).filter(move |path| match path.strip_prefix(&source) {
        Some("lib.rs" | "main.rs") => true,
        Some(rest) => rest.strip_prefix("bin/").is_some_and(|name| !name.contains('/')),
        None => false,
    })
}

/// The modules of the crate in `folder`, without files that are not Rust: the check of circles says why.
pub(crate) fn all(files: &Files, folder: &str) -> impl Iterator<Item = Module> {
    roots(files, folder).filter_map(|root| read(files, root).ok()).flatten()
}

/// The module in the file `root` and all below it.
///
/// # Errors
/// If a file is missing or is not Rust.
pub(crate) fn read(files: &Files, root: &str) -> Result<Vec<Module>, Finding> {
    let mut modules = Vec::new();
    let mut open = vec![(Vec::new(), root.to_owned())];
    while let Some((path, file)) = open.pop() {
        let text = files.get(&file).ok_or_else(|| Finding::error(&file, "no such module file"))?;
        let tokens = tokens(text);
        let tokens = tokens.map_err(|error| Finding::error(&file, format!("no Rust: {error}")))?;
        let mut below = Vec::new();
        split(Module { path, file, tokens }, &mut modules, &mut below);
        for path in below {
            let file = file_of(files, root, &path);
            open.push((path, file));
        }
    }
    Ok(modules)
}

/// The tokens of a file without documentation and without items that are only for tests.
///
/// # Errors
/// If the text is not Rust.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, LexError> {
    let mut tokens = Vec::new();
    flatten(text.parse()?, &mut tokens);
    Ok(tokens)
}

/// Beside the root: `a/b/mod.rs` if that file exists, otherwise `a/b.rs`.
fn file_of(files: &Files, root: &str, path: &[String]) -> String {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let stem = format!("{folder}/{}", path.join("/"));
    let inside = format!("{stem}/mod.rs");
    if files.contains_key(&inside) { inside } else { format!("{stem}.rs") }
}

/// Takes the modules that `module` declares out of its tokens. Inline modules go to `modules`, paths of the others to `below`.
fn split(module: Module, modules: &mut Vec<Module>, below: &mut Vec<Vec<String>>) {
    let Module { path, file, tokens } = module;
    let mut own = Vec::new();
    let (mut at, mut depth) = (0, 0);
    while let Some(token) = tokens.get(at) {
        at += 1;
        if let ("mod", 0, [name, end, ..]) = (token.text.as_str(), depth, &tokens[at..]) {
            let path = [&path[..], std::slice::from_ref(&name.text)].concat();
            at += 2;
            if end.text == ";" {
                below.push(path);
            } else {
                let length = body(&tokens[at..]);
                let inside = tokens[at..at + length].to_vec();
                split(Module { path, file: file.clone(), tokens: inside }, modules, below);
                at += length + 1;
            }
            continue;
        }
        depth += depth_change(token);
        own.push(token.clone());
    }
    modules.push(Module { path, file, tokens: own });
}

/// The number of tokens before the delimiter that closes the group around them.
fn body(tokens: &[Token]) -> usize {
    let mut depth = 0;
    let closes = |token: &Token| {
        depth += depth_change(token);
        depth < 0
    };
    tokens.iter().position(closes).unwrap_or(tokens.len())
}

/// By how much a token changes the number of open groups.
pub(crate) fn depth_change(token: &Token) -> i32 {
    match token.text.as_str() {
        "{" | "(" | "[" => 1,
        "}" | ")" | "]" => -1,
        _ => 0,
    }
}

/// Appends all tokens except documentation and items that are only for tests.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |text: String| tokens.push(Token { text, line });
        match tree {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                trees.next_if(|tree| is_mark(tree, '!'));
                match trees.peek() {
                    Some(TokenTree::Group(group)) if is_documentation(group) => _ = trees.next(),
                    Some(TokenTree::Group(group)) if is_for_tests(group) => {
                        trees.next();
                        skip_item(&mut trees);
                    }
                    _ => push("#".to_owned()),
                }
            }
            TokenTree::Punct(mark) => {
                let path = mark.as_char() == ':' && trees.next_if(|t| is_mark(t, ':')).is_some();
                push(if path { "::".to_owned() } else { mark.to_string() });
            }
            TokenTree::Ident(name) => {
                let name = name.to_string();
                push(name.strip_prefix("r#").map_or(name.clone(), str::to_owned));
            }
            TokenTree::Literal(literal) => push(literal.to_string()),
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::Brace | Delimiter::None => ["{", "}"],
                };
                push(open.to_owned());
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.to_owned(), line });
            }
        }
    }
}

fn is_documentation(attribute: &Group) -> bool {
    matches!(attribute.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// Whether an attribute, `[cfg(…)]` with its brackets, requires a build of tests: `test` alone, or first of `all`.
fn is_for_tests(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Skips the item after an attribute. It ends at its braces or at a semicolon; a field, an arm of a match and a statement at a comma too.
fn skip_item(trees: &mut Peekable<impl Iterator<Item = TokenTree>>) {
    const WITH_COMMAS: [&str; 9] =
        ["fn", "struct", "enum", "impl", "trait", "const", "static", "type", "let"];
    let mut is_item = false;
    while let Some(tree) = trees.next() {
        match &tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                _ = trees.next_if(|tree| is_mark(tree, ',') || is_mark(tree, ';'));
                return;
            }
            TokenTree::Ident(name) => is_item |= WITH_COMMAS.iter().any(|word| name == word),
            tree if is_mark(tree, ';') || is_mark(tree, ',') && !is_item => return,
            _ => {}
        }
    }
}

fn is_mark(tree: &TokenTree, mark: char) -> bool {
    matches!(tree, TokenTree::Punct(found) if found.as_char() == mark)
}
