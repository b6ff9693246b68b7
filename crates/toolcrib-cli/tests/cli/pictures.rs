//! The pictures of the README: a run at a terminal, and the page of its trace, each for a light and a
//! dark background. `cargo xtask pictures` writes them, and `cargo xtask full` compares them.

use std::{env, fs, path::Path};

use anstyle::{Color, RgbColor};
use anstyle_svg::Term;
use regex::Regex;

use crate::{
    support::{Project, in_full},
    terminal::Terminal,
};

const ASK: &str = "I was charged twice for order 1042, please refund one charge";

/// The colors of text and background.
const SCHEMES: [(&str, RgbColor, RgbColor); 2] = [
    ("light", RgbColor(0x1c, 0x1e, 0x21), RgbColor(0xfb, 0xfb, 0xf9)),
    ("dark", RgbColor(0xe8, 0xe6, 0xe1), RgbColor(0x15, 0x17, 0x1a)),
];

/// The part of the page that its picture shows, in pixels.
const PAGE: (u32, u32) = (960, 920);

#[test]
fn the_pictures_of_the_readme_show_a_run_of_this_program() {
    let writes = env::var_os("TOOLCRIB_PICTURES").is_some();
    if !writes && !in_full() {
        return;
    }
    let desk = Project::desk();
    let mut command = desk.command(&["run", ASK]);
    command.env_remove("NO_COLOR");
    let shown = Terminal::start(&command, 100).colored();
    let shown = shown.replace(desk.path().to_str().unwrap(), "examples/support-desk");
    let run = format!("$ toolcrib run -p examples/support-desk \\\n    \"{ASK}\"\n{shown}");
    let page = desk.path().join("run.html");
    let traced = desk.toolcrib(&["trace", "--html", page.to_str().unwrap()]);
    assert_eq!(traced.code, Some(0), "{traced:?}");
    let page = fs::read_to_string(page).unwrap();

    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (scheme, text, background) in SCHEMES {
        let term = Term::new().fg_color(Color::Rgb(text)).bg_color(Color::Rgb(background));
        for (name, svg) in [("run", term.render_svg(&run)), ("trace", picture(&page, scheme))] {
            let path = docs.join(format!("{name}-{scheme}.svg"));
            if writes {
                fs::write(path, svg).unwrap();
                continue;
            }
            let kept = fs::read_to_string(&path).unwrap();
            assert_eq!(steady(&kept), steady(&svg), "run `cargo xtask pictures`: {path:?}");
        }
    }
}

/// A picture of a page: its stylesheet and its body, which contain no script. The iterations after the first
/// and the insides of closed parts are left out.
fn picture(page: &str, scheme: &str) -> String {
    let between = |start: &str, end: &str| {
        let (_, rest) = page.split_once(start).unwrap();
        rest.split_once(end).unwrap().0
    };
    let is_dark = if scheme == "dark" { "all" } else { "not all" };
    let style = between("<style>", "</style>").replace('\n', " ");
    let style = style.replace("(prefers-color-scheme: dark)", is_dark);
    // Within XML, the bars of the timeline are pictures only in their namespace.
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
    let body = between("<body>", "<section class=\"iteration\" id=\"i1\"").replace("<svg", svg);
    let closed = r#"(?s)(<details(?: id="\w+")?><summary>.*?</summary>)<div class="inside">.*?</div></details>"#;
    let body = Regex::new(closed).unwrap().replace_all(&body, "$1</details>");
    let (width, height) = PAGE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\n\
         <style>{style}</style>\n<foreignObject width=\"100%\" height=\"100%\">\n\
         <body xmlns=\"http://www.w3.org/1999/xhtml\" style=\"height: 100%\">{body}</div></main></body>\n\
         </foreignObject>\n</svg>\n"
    )
}

/// The lines of a picture, sorted and without times, identities, sizes and ends of cut texts: calls of one
/// iteration end in any order, and a longer time leaves less room for their results.
fn steady(svg: &str) -> Vec<String> {
    let varies = Regex::new(r"[^ ]*…|\b[0-9a-f]{8,}\b|[0-9][0-9.,:]*( ms| s)?").unwrap();
    let mut lines: Vec<_> =
        svg.lines().map(|line| varies.replace_all(line, "#").into_owned()).collect();
    lines.sort();
    lines
}
