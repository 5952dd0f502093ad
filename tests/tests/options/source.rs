//! What the sources say about configurations: fields with their types and comments, and the names of an enum's values.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A type by its crate, its name, and the file that names it without an import. The search begins in that file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) package: String,
    pub(crate) file: Option<String>,
    pub(crate) name: String,
}

/// A struct with its fields, or an enum with its values.
#[derive(Debug, Default)]
pub(crate) struct Type {
    pub(crate) fields: Vec<Field>,
    pub(crate) values: Vec<Value>,
    /// The key that holds the name of a value, if a file writes the value's own keys next to this key.
    pub(crate) tag: Option<String>,
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) says: String,
    /// The field's type; for an `Option` the inner type. `None` for a type with parameters.
    pub(crate) of: Option<Name>,
    /// Whether a file has the keys of the field's type at the same level, without the field's own key.
    pub(crate) flat: bool,
}

/// A value of an enum.
#[derive(Debug)]
pub(crate) struct Value {
    /// The value's name in a file.
    pub(crate) key: String,
    pub(crate) says: String,
    /// The type that the value holds.
    pub(crate) holds: Option<Name>,
}

/// The types of all crates that have configurations.
#[derive(Debug, Default)]
pub(crate) struct Source(BTreeMap<(String, String), Vec<(String, Type)>>);

impl Source {
    /// Reads every file of these crates.
    pub(crate) fn read(crates: &Path, names: &[&str]) -> Self {
        let mut source = Self::default();
        for name in names {
            let root = crates.join(name).join("src");
            let mut folders = vec![root.clone()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(&folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                    } else if path.extension().is_some_and(|end| end == "rs") {
                        let file =
                            path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                        source.add(name, &file, &std::fs::read_to_string(&path).unwrap());
                    }
                }
            }
        }
        source
    }

    /// A type of one of these crates.
    pub(crate) fn get(&self, name: &Name) -> Option<&Type> {
        let Name { package, file, name } = name;
        match &self.0.get(&(package.clone(), name.clone()))?[..] {
            [(_, one)] => Some(one),
            several => {
                let here = several.iter().find(|(other, _)| Some(other) == file.as_ref());
                assert!(here.is_some(), "{package} has several types of the name {name}");
                here.map(|(_, found)| found)
            }
        }
    }

    fn add(&mut self, package: &str, file: &str, text: &str) {
        let tokens: Vec<_> = text.parse::<TokenStream>().unwrap().into_iter().collect();
        let mut imports = BTreeMap::new();
        let (mut attributes, mut at) = (Vec::new(), 0);
        // A file declares its modules before it imports from them.
        let mut roots = ["crate", "self", "super"].map(str::to_owned).to_vec();
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.get(at + 1) {
                        attributes.push(group.clone());
                        at += 1;
                    }
                }
                TokenTree::Ident(word) if word == "mod" => roots.push(tokens[at + 1].to_string()),
                // Skips the `use<…>` of a return type.
                TokenTree::Ident(word) if word == "use" && !is_mark(&tokens[at + 1], '<') => {
                    let end = tokens[at..].iter().position(|t| is_mark(t, ';')).unwrap() + at;
                    import(&tokens[at + 1..end], None, (package, &roots), &mut imports);
                    at = end;
                }
                TokenTree::Ident(word) if word == "struct" || word == "enum" => {
                    let name = tokens[at + 1].to_string();
                    while !ends_item(&tokens[at]) {
                        at += 1;
                    }
                    let attributes = std::mem::take(&mut attributes);
                    if let TokenTree::Group(body) = &tokens[at]
                        && body.delimiter() == Delimiter::Brace
                    {
                        let resolve = |path: &[TokenTree]| resolve(path, (package, file), &imports);
                        let read = if word == "struct" { structure } else { enumeration };
                        let found = read(&attributes, body, &resolve);
                        let entry = self.0.entry((package.to_owned(), name)).or_default();
                        entry.push((file.to_owned(), found));
                    }
                }
                other if ends_item(other) => attributes.clear(),
                _ => (),
            }
            at += 1;
        }
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn ends_item(token: &TokenTree) -> bool {
    let brace = |group: &Group| group.delimiter() == Delimiter::Brace;
    is_mark(token, ';') || matches!(token, TokenTree::Group(group) if brace(group))
}

/// The names that a `use` imports: `name → (crate, its name there)`.
fn import(
    tree: &[TokenTree],
    from: Option<&str>,
    (package, roots): (&str, &[String]),
    names: &mut BTreeMap<String, Name>,
) {
    let first = tree.first().map(ToString::to_string).unwrap_or_default();
    let root = from.unwrap_or(&first).to_owned();
    let own = roots.contains(&root);
    let origin = if own { package.to_owned() } else { root.replace('_', "-") };
    if let Some(TokenTree::Group(group)) = tree.last() {
        let inner: Vec<_> = group.stream().into_iter().collect();
        for part in inner.split(|token| is_mark(token, ',')).filter(|part| !part.is_empty()) {
            import(part, Some(&root), (package, roots), names);
        }
        return;
    }
    let words: Vec<_> = tree.iter().filter(|t| matches!(t, TokenTree::Ident(_))).collect();
    let word = |back: usize| words.len().checked_sub(back).map(|k| words[k].to_string());
    if let Some(name) = word(1) {
        let renamed = word(2).as_deref() == Some("as");
        let there = if renamed { word(3) } else { word(1) };
        let there = Name { package: origin, file: None, name: there.unwrap_or_default() };
        names.insert(name, there);
    }
}

/// The type that a path names: `T` for `Option<T>`, nothing for other types with parameters.
fn resolve(
    path: &[TokenTree],
    (package, file): (&str, &str),
    imports: &BTreeMap<String, Name>,
) -> Option<Name> {
    if let [TokenTree::Ident(option), open, inner @ .., _] = path
        && option == "Option"
        && is_mark(open, '<')
    {
        return resolve(inner, (package, file), imports);
    }
    let words: Vec<_> = path
        .iter()
        .filter(|token| !is_mark(token, ':'))
        .map(|token| matches!(token, TokenTree::Ident(_)).then(|| token.to_string()))
        .collect::<Option<_>>()?;
    let (name, before) = words.split_last()?;
    let of = |package: &str, file| Name { package: package.to_owned(), file, name: name.clone() };
    Some(match before.first().map(String::as_str) {
        None => imports.get(name).cloned().unwrap_or_else(|| of(package, Some(file.to_owned()))),
        Some("crate" | "super" | "self") => of(package, None),
        Some(other) => of(&other.replace('_', "-"), None),
    })
}

type Resolve<'a> = &'a dyn Fn(&[TokenTree]) -> Option<Name>;

fn structure(_: &[Group], body: &Group, resolve: Resolve<'_>) -> Type {
    let fields = parts(body).into_iter().filter_map(|(attributes, tokens)| {
        let colon = tokens.iter().position(|token| is_mark(token, ':'))?;
        let key = tokens[colon - 1].to_string();
        let of = resolve(&tokens[colon + 1..]);
        let flat = serde(&attributes, "flatten").is_some();
        Some(Field { key, says: comment(&attributes), of, flat })
    });
    Type { fields: fields.collect(), ..Type::default() }
}

fn enumeration(attributes: &[Group], body: &Group, resolve: Resolve<'_>) -> Type {
    let snake = serde(attributes, "rename_all").as_deref() == Some("snake_case");
    let values = parts(body).into_iter().filter_map(|(attributes, tokens)| {
        let name = tokens.first()?.to_string();
        let own = || if snake { snake_case(&name) } else { name.clone() };
        let holds = match tokens.get(1) {
            Some(TokenTree::Group(inner)) => {
                resolve(&inner.stream().into_iter().collect::<Vec<_>>())
            }
            _ => None,
        };
        let key = serde(&attributes, "rename").unwrap_or_else(own);
        Some(Value { key, says: comment(&attributes), holds })
    });
    Type { values: values.collect(), tag: serde(attributes, "tag"), ..Type::default() }
}

/// The fields or values between braces: attributes, and the tokens after them.
fn parts(body: &Group) -> Vec<(Vec<Group>, Vec<TokenTree>)> {
    let mut parts = vec![(Vec::new(), Vec::new())];
    let (mut depth, mut hash) = (0, false);
    for token in body.stream() {
        let (attributes, tokens) = parts.last_mut().unwrap();
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ',' && depth == 0 => {
                parts.push(Default::default());
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => hash = true,
            TokenTree::Group(group) if hash => {
                attributes.push(group);
                hash = false;
            }
            token => {
                depth += i32::from(is_mark(&token, '<')) - i32::from(is_mark(&token, '>'));
                tokens.push(token);
            }
        }
    }
    parts
}

/// The value of `#[serde(key = "…")]`; an empty text for a key without a value.
fn serde(attributes: &[Group], key: &str) -> Option<String> {
    for attribute in attributes {
        let Some(inner) = serde_part(attribute.stream()) else { continue };
        let inner: Vec<_> = inner.stream().into_iter().collect();
        for part in inner.split(|token| is_mark(token, ',')) {
            if part.first().is_some_and(|word| word.to_string() == key) {
                return Some(part.get(2).map(|value| text(&value.to_string())).unwrap_or_default());
            }
        }
    }
    None
}

/// The group in the brackets of `serde(…)`, which may be inside `cfg_attr(…)`.
fn serde_part(attribute: TokenStream) -> Option<Group> {
    let tokens: Vec<_> = attribute.into_iter().collect();
    tokens.windows(2).find_map(|pair| match pair {
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "serde" => Some(inner.clone()),
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "cfg_attr" => {
            serde_part(inner.stream())
        }
        _ => None,
    })
}

/// The first paragraph of a comment as one line, without links.
fn comment(attributes: &[Group]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let tokens: Vec<_> = attribute.stream().into_iter().collect();
        let [TokenTree::Ident(name), _, TokenTree::Literal(line)] = &tokens[..] else {
            return None;
        };
        (name == "doc").then(|| text(&line.to_string()).trim().to_owned())
    });
    let paragraph: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    without_links(&paragraph.join(" "))
}

/// `` [`a`](b) `` and `` [`a`] `` become `` `a` ``.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((label, after)) = after.split_once("`]") else { break };
        out += &format!("{before}`{label}`");
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    out + rest
}

/// The text of a string literal.
fn text(literal: &str) -> String {
    let mut out = String::new();
    let inner = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut inner = inner.unwrap_or_else(|| panic!("{literal}: no plain string")).chars();
    while let Some(c) = inner.next() {
        match if c == '\\' { inner.next() } else { None } {
            None => out.push(c),
            Some('u') => {
                let code: String = inner.by_ref().skip(1).take_while(|&c| c != '}').collect();
                out.push(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32).unwrap());
            }
            Some('n') => out.push('\n'),
            Some(c) => out.push(c),
        }
    }
    out
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (k, c) in name.char_indices() {
        if c.is_uppercase() && k > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Fields, values, comments, imports and links of a small source.
#[test]
fn a_source_is_read() {
    let mut source = Source::default();
    source.add(
        "one",
        "a.rs",
        r#"
        mod near;
        use other_crate::deep::{Kept, Schedule as Rates};
        pub use near::Sized;

        /// All.
        #[derive(Serialize, Deserialize)]
        pub struct All<T> {
            /// λ of [`Eq`](crate::Eq) 3,
            /// "quoted", of v̄.
            ///
            /// More.
            #[serde(default)]
            pub rate: Option<Rates>,
            pub map: BTreeMap<u8, T>,
            pub own: super::Own,
            pub size: Sized,
        }

        #[derive(Clone, Deserialize)]
        #[cfg_attr(feature = "burn", derive(Serialize), serde(tag = "kind", rename_all = "snake_case"))]
        enum Own {
            /// The first.
            OneTwo(Kept),
            #[serde(rename = "2")]
            Second,
        }"#,
    );
    source.add("one", "b.rs", "pub struct All { pub other: u8 }");
    let name = |package: &str, file: Option<&str>, name: &str| Name {
        package: package.into(),
        file: file.map(str::to_owned),
        name: name.into(),
    };
    let all = source.get(&name("one", Some("a.rs"), "All")).unwrap();
    let fields: Vec<_> = all.fields.iter().map(|f| (&f.key[..], &f.says[..], &f.of)).collect();
    let rates = Some(name("other-crate", None, "Schedule"));
    let want = [
        ("rate", "λ of `Eq` 3, \"quoted\", of v̄.", &rates),
        ("map", "", &None),
        ("own", "", &Some(name("one", None, "Own"))),
        ("size", "", &Some(name("one", None, "Sized"))),
    ];
    assert_eq!(fields, want);
    let own = source.get(&name("one", None, "Own")).unwrap();
    let values: Vec<_> = own.values.iter().map(|v| (&v.key[..], &v.says[..], &v.holds)).collect();
    let kept = Some(name("other-crate", None, "Kept"));
    assert_eq!(values, [("one_two", "The first.", &kept), ("2", "", &None)]);
    assert_eq!(own.tag.as_deref(), Some("kind"));
}
