use std::collections::BTreeMap;

use super::{CrateTree, Graph, Layers, Source, complaint};

/// The graph of a crate whose files are in `src`.
fn graph(files: &[(&str, &str)]) -> Graph {
    let files: BTreeMap<String, &str> =
        files.iter().map(|(name, text)| (format!("src/{name}"), *text)).collect();
    let mut read = |file: &str| files.get(file).map(|text| Source::parse(text)).transpose();
    let mut graph = Graph::default();
    CrateTree::read("src/lib.rs", &mut read).unwrap().add_to(&mut graph);
    graph
}

/// The imports of a crate, without the folder `src`.
fn imports(files: &[(&str, &str)]) -> Vec<String> {
    let graph = graph(files);
    graph.edges.keys().map(|edge| graph.line(edge).replace("src/", "")).collect()
}

#[test]
fn nested_trees_aliases_globs_and_parents_lead_to_files() {
    let lib = "mod a; mod b; mod c;";
    let b = "pub struct B; pub fn go() {} pub const MOST: u8 = 1; mod below;";
    let below = "use super::B; fn f() { super::super::c::run(); self::g() } fn g() {}";
    for (a, expected) in [
        ("use crate::b::B;", "a.rs uses b/mod.rs: B"),
        ("use crate::{b::{B, MOST}, b::go as start};", "a.rs uses b/mod.rs: B, MOST, go"),
        ("use super::b::*;", "a.rs uses b/mod.rs: *"),
        ("use crate::b::{self, B as Bee};", "a.rs uses b/mod.rs: B, b"),
        ("fn f() { crate::b::go(); }", "a.rs uses b/mod.rs: go"),
        ("fn f() -> super::b::B { loop {} }", "a.rs uses b/mod.rs: B"),
        ("fn f() { use crate::b::go; go() }", "a.rs uses b/mod.rs: go"),
        ("use crate::b as other; fn f() { other::go() }", "a.rs uses b/mod.rs: b, go"),
        ("mod inner { use super::super::b::B; }", "a.rs uses b/mod.rs: B"),
        ("fn f() { x!(crate::b::MOST) }", "a.rs uses b/mod.rs: MOST"),
    ] {
        let files = [("lib.rs", lib), ("a.rs", a), ("b/mod.rs", b), ("c.rs", "pub fn run() {}")];
        assert_eq!(imports(&files), [expected], "{a}");
    }
    let files = [("lib.rs", lib), ("b/mod.rs", b), ("b/below.rs", below), ("c.rs", "")];
    let expected = ["b/below.rs uses b/mod.rs: B", "b/below.rs uses c.rs: run"];
    assert_eq!(imports(&files), expected);
}

#[test]
fn a_reexported_name_leads_to_the_file_that_declares_it() {
    let lib = "mod a; mod b; pub use b::Deep as Renamed;";
    let deep = "pub struct Deep; pub struct Other;";
    for (reexport, a, expected) in [
        ("mod deep; pub use self::deep::Deep;", "use crate::b::Deep;", "Deep"),
        ("mod deep; pub(crate) use deep::{Deep as X};", "use crate::b::X;", "Deep"),
        ("mod deep; pub use self::deep::*;", "use crate::b::{Deep, Other};", "Deep, Other"),
        ("mod deep; pub use self::deep::Deep;", "use crate::Renamed;", "Deep"),
        ("mod deep; pub use deep as shown;", "use crate::b::shown::Other;", "Other"),
    ] {
        let files = [("lib.rs", lib), ("a.rs", a), ("b/mod.rs", reexport), ("b/deep.rs", deep)];
        assert_eq!(imports(&files), [format!("a.rs uses b/deep.rs: {expected}")], "{reexport}");
    }
    // A file that also uses what it re-exports depends on it.
    let used = "mod deep; pub use self::deep::Deep; fn f(_: Deep) {}";
    let files = [("lib.rs", "mod b;"), ("b/mod.rs", used), ("b/deep.rs", deep)];
    assert_eq!(imports(&files), ["b/mod.rs uses b/deep.rs: Deep"]);
    // Two modules that re-export each other's name have no file for it, and no endless search.
    let a = "pub use crate::b::Lost; pub use crate::b::*;";
    let b = "pub use crate::a::Lost; pub use crate::a::*; use crate::a::Gone;";
    assert_eq!(imports(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]).len(), 2);
}

#[test]
fn tests_texts_visibilities_and_other_crates_are_not_imports() {
    let lib = "mod a; #[cfg(test)] mod tests; mod serde;";
    for a in [
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] use crate::serde::B; fn f() {}",
        "#[cfg(test)] #[must_use] pub(crate) fn f<A, B>(_: A) { crate::serde::b() }",
        "#[cfg(test)] const B: [u8; 1] = { crate::serde::B };",
        "#[cfg(test)] const fn b() -> u8 { crate::serde::B } fn c() {}",
        "struct A { #[cfg(test)] b: crate::serde::B, c: u8 }",
        "// use crate::serde::B;\n/* use crate::serde::B; */ /// [`crate::serde::B`]\nfn f() {}",
        "const A: &str = \"use crate::serde::B;\"; const R: &str = r#\"crate::serde::B\"#;",
        "pub(in crate::serde) struct A; struct B { pub(in crate::serde) a: u8 }",
        "use serde::Serialize; use ::serde::Deserialize; fn f() { ::serde::json() }",
        "macro_rules! m { () => { $crate::serde::y!() } }",
        "fn f(_: impl Sized + use<'_>) {} fn g() { <u8 as X>::serde::y() }",
    ] {
        let files = [
            ("lib.rs", lib),
            ("a.rs", a),
            ("tests.rs", "use crate::serde::B;"),
            ("serde.rs", "pub struct B;"),
        ];
        assert_eq!(imports(&files), Vec::<String>::new(), "{a}");
    }
    // What follows such an item is read again.
    let after = "#[cfg(test)] fn f<A, B>() {} use crate::serde::B;";
    let files = [("lib.rs", lib), ("a.rs", after), ("serde.rs", "")];
    assert_eq!(imports(&files), ["a.rs uses serde.rs: B"]);
}

const CHAIN: [(&str, &str); 4] = [
    ("lib.rs", "mod a; mod b; mod c;"),
    ("a.rs", "use crate::b::B; pub struct A; pub fn start() {}"),
    ("b.rs", "use crate::c::C; pub struct B;"),
    ("c.rs", "pub struct C;"),
];

#[test]
fn a_new_import_that_closes_a_circle_is_named_with_its_files_and_names() {
    assert_eq!(complaint("demo", &graph(&CHAIN), 1), None);
    let mut files = CHAIN;
    files[3].1 = "use crate::a::{A, start}; pub struct C;";
    let closed = graph(&files);
    assert_eq!(closed.circles().len(), 1);
    assert_eq!(complaint("demo", &closed, 3), None);
    let text = complaint("demo", &closed, 1).unwrap();
    assert!(text.starts_with("demo: 3 files use each other in a circle, and 1 may. "), "{text}");
    assert!(text.contains("\n  src/c.rs uses src/a.rs: A, start"), "{text}");
    // A circle of two that becomes one of three: the new import, and not the one between the two.
    files[2].1 = "use crate::{a::A, c::C}; pub struct B;";
    let text = complaint("demo", &graph(&files), 2).unwrap();
    assert!(text.contains("without any one of these imports:"), "{text}");
    assert!(text.contains("src/c.rs uses src/a.rs: A, start"), "{text}");
    assert!(!text.contains("src/a.rs uses src/b.rs"), "{text}");
}

#[test]
fn several_imports_that_close_a_circle_together_are_named() {
    let mut files = CHAIN;
    files[2].1 = "use crate::{a::A, c::C}; pub struct B;";
    files[3].1 = "use crate::{a::A, b::B}; pub struct C;";
    let text = complaint("demo", &graph(&files), 2).unwrap();
    assert!(text.contains("demo: 3 files"), "{text}");
    let mut separate = graph(&files);
    let removed: Vec<_> = separate.cuts(1).0.into_iter().cloned().collect();
    separate.edges.retain(|edge, _| !removed.contains(edge));
    assert_eq!(separate.largest(), 1, "{removed:?}");
}

/// The complaints of a crate `demo` with this list of layers.
fn arrows(layers: &str, files: &[(&str, &str)]) -> Vec<String> {
    let root = format!("//! A crate.\n//!\n//! # Layers\n//!\n{layers}\n\nmod a;\n");
    Layers::read("src/", &root).complaints("demo", &graph(files))
}

#[test]
fn an_import_that_points_up_is_named() {
    let files = [
        ("lib.rs", "mod top; mod low; pub struct Root;"),
        ("top/mod.rs", "mod deep;"),
        ("top/deep.rs", "use crate::low::Low; pub struct Top;"),
        ("low.rs", "use crate::{Root, top::deep::Top}; pub struct Low;"),
    ];
    let listed = "//! - `top`: first.\n//! - `low`: second.";
    assert_eq!(
        arrows(listed, &files),
        [
            "demo: an import points up: src/low.rs uses src/lib.rs: Root",
            "demo: an import points up: src/low.rs uses src/top/deep.rs: Top",
        ]
    );
    let other = "//! - `low`: first.\n//! - `top`: second.";
    assert_eq!(
        arrows(other, &files)[1..],
        ["demo: an import points up: src/top/deep.rs uses src/low.rs: Low"]
    );
}

#[test]
fn the_list_of_layers_is_complete() {
    let files = [("lib.rs", "mod a; mod b;"), ("a/mod.rs", "mod c;"), ("a/c.rs", ""), ("b.rs", "")];
    assert_eq!(
        arrows("//! - `a`: first.\n//! - `c`: second.", &files),
        ["demo: `b` is not in the list `# Layers` of its root file", "demo: there is no layer `c`",]
    );
    // A crate without folders needs no list.
    assert_eq!(arrows("", &[("lib.rs", "mod a;"), ("a.rs", "")]), Vec::<String>::new());
}
