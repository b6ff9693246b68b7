//! The declarations of one file, and the paths that it names.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// A path as it is written: `["crate", "config", "Tool"]`. A glob ends with `*`.
pub(super) type Path = Vec<String>;

/// A path in a file.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) path: Path,
    /// The name in this module, of a `use` that others see: `pub`, `pub(crate)`, and so on.
    pub(super) reexported_as: Option<String>,
}

/// A module: a file, or an inline module of one.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Names of functions, types, constants and macros of the module itself.
    pub(super) items: BTreeSet<String>,
    /// The path of each imported name.
    pub(super) imports: BTreeMap<String, Path>,
    /// The imports that others see too; globs have no name.
    pub(super) reexports: BTreeMap<String, Path>,
    pub(super) reexported_globs: Vec<Path>,
    pub(super) mentions: Vec<Mention>,
    /// All names outside of `use`.
    pub(super) words: BTreeSet<String>,
    /// Modules in other files: `mod name;`.
    pub(super) children: Vec<String>,
    pub(super) inline: BTreeMap<String, Source>,
}

impl Source {
    /// Reads the text of a file, without items under `#[cfg(test)]`.
    pub(super) fn parse(text: &str) -> Result<Self, proc_macro2::LexError> {
        let mut source = Self::default();
        source.read(text.parse()?, true);
        Ok(source)
    }

    /// Reads tokens; `is_top` outside of all braces, where items and modules are the module's.
    fn read(&mut self, tokens: TokenStream, is_top: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        // Whether `pub` comes directly before.
        let mut is_public = false;
        while let Some((token, after)) = rest.split_first() {
            let here = rest;
            rest = after;
            let was_public = std::mem::take(&mut is_public);
            match token {
                TokenTree::Punct(hash) if hash.as_char() == '#' && is_for_tests(rest) => {
                    rest = after_item(rest);
                }
                // The group of `pub(crate)` or `pub(in path)`, which uses nothing.
                TokenTree::Group(group) if was_public && is_visibility(group) => is_public = true,
                TokenTree::Group(group) => self.read(group.stream(), false),
                TokenTree::Ident(word) if *word == "pub" => is_public = true,
                TokenTree::Ident(word) => {
                    rest = self.read_word(word.to_string(), rest, is_top, was_public);
                }
                // `$crate` in a macro, which names itself by a path of the users' crates.
                TokenTree::Punct(dollar) if dollar.as_char() == '$' => {
                    if let [TokenTree::Ident(word), after @ ..] = rest {
                        rest = Self::default().read_path(word.to_string(), after);
                    }
                }
                // After `::` without a name before it: another crate's path, or a type's item.
                TokenTree::Punct(_) if is_colons(here) => {
                    if let [_, _, TokenTree::Ident(name), after @ ..] = here {
                        rest = Self::default().read_path(name.to_string(), after);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Reads a word and the tokens that belong to it; returns the tokens after them.
    fn read_word<'a>(
        &mut self,
        word: String,
        rest: &'a [TokenTree],
        is_top: bool,
        is_public: bool,
    ) -> &'a [TokenTree] {
        match (word.as_str(), rest) {
            // Not `+ use<'a>`, which is part of a type.
            ("use", [next, ..]) if !is_punct(next, '<') => {
                let end = rest.iter().position(|token| is_punct(token, ';'));
                let (tree, after) = rest.split_at(end.unwrap_or(rest.len()));
                self.read_use(tree, Path::new(), is_public && is_top);
                after
            }
            ("mod", [TokenTree::Ident(name), TokenTree::Group(body), after @ ..]) if is_top => {
                let mut inline = Self::default();
                inline.read(body.stream(), true);
                self.inline.insert(name.to_string(), inline);
                after
            }
            ("mod", [TokenTree::Ident(name), after @ ..]) if is_top => {
                self.children.push(name.to_string());
                after
            }
            (
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union",
                [TokenTree::Ident(name), ..],
            )
            | ("macro_rules", [TokenTree::Punct(_), TokenTree::Ident(name), ..])
                if is_top =>
            {
                self.items.insert(name.to_string());
                rest
            }
            _ => {
                self.words.insert(word.clone());
                self.read_path(word, rest)
            }
        }
    }

    /// Reads the rest of a path that begins with a name; returns the tokens after it.
    fn read_path<'a>(&mut self, first: String, mut rest: &'a [TokenTree]) -> &'a [TokenTree] {
        let mut path = vec![first];
        while is_colons(rest)
            && let [_, _, TokenTree::Ident(name), after @ ..] = rest
        {
            path.push(name.to_string());
            rest = after;
        }
        if path.len() > 1 {
            self.mentions.push(Mention { path, reexported_as: None });
        }
        rest
    }

    /// Reads the tree of a `use`, of which `path` is the part before.
    fn read_use(&mut self, mut tree: &[TokenTree], mut path: Path, is_reexport: bool) {
        let mut name = None;
        loop {
            match tree {
                [TokenTree::Ident(word), TokenTree::Ident(alias), after @ ..] if word == "as" => {
                    name = Some(alias.to_string());
                    tree = after;
                }
                [TokenTree::Ident(word), after @ ..] => {
                    path.push(word.to_string());
                    tree = after;
                }
                [TokenTree::Group(group), ..] => {
                    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in tokens.split(|token| is_punct(token, ',')) {
                        if !tree.is_empty() {
                            self.read_use(tree, path.clone(), is_reexport);
                        }
                    }
                    return;
                }
                [star, ..] if is_punct(star, '*') => {
                    path.push("*".to_owned());
                    break;
                }
                [_, after @ ..] => tree = after,
                [] => break,
            }
        }
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(name) = name.or_else(|| path.last().cloned()) else { return };
        if name != "*" {
            self.imports.insert(name.clone(), path.clone());
        }
        if is_reexport && name == "*" {
            self.reexported_globs.extend(path.split_last().map(|(_, module)| module.to_vec()));
        } else if is_reexport {
            self.reexports.insert(name.clone(), path.clone());
        }
        self.mentions.push(Mention { path, reexported_as: is_reexport.then_some(name) });
    }
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// Whether a group after `pub` limits it, and is not the type of a field.
fn is_visibility(group: &Group) -> bool {
    let words = ["crate", "super", "self"];
    let text = group.stream().to_string();
    group.delimiter() == Delimiter::Parenthesis
        && (words.contains(&&*text) || text.starts_with("in "))
}

/// Whether tokens begin with `::`.
fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), second, ..] if first.as_char() == ':'
        && first.spacing() == Spacing::Joint && is_punct(second, ':'))
}

/// Whether the tokens after `#` are `[cfg(test)]`, or `all(test, …)` in it.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Group(attribute), ..] = tokens else { return false };
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The tokens after an item, field or variant with an attribute.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let words = tokens.iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let mut words = words.skip_while(|word| word == "pub");
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (ends_with_comma, ends_with_brace) = match (&*first, &*second) {
        ("const", "fn" | "unsafe" | "async") => (false, true),
        ("use" | "const" | "static" | "type" | "let", _) => (false, false),
        (
            "fn" | "async" | "unsafe" | "extern" | "impl" | "struct" | "enum" | "union" | "trait"
            | "mod" | "macro_rules",
            _,
        ) => (false, true),
        _ => (true, true),
    };
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => ends_with_brace && group.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';') || ends_with_comma && is_punct(token, ','),
    };
    let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
    tokens.get(end..).unwrap_or_default()
}
