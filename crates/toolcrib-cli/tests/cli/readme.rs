//! The README shows what the program does.

use std::{fs, path::Path};

use crate::{
    support::{Project, toolcrib},
    texts::steady,
};

/// Where the README's reader is said to have put the repository.
const HOME: &str = "/home/you/toolcrib";

/// The console blocks of the README that show one command and what it prints.
fn shown(command: &str) -> (Vec<String>, String) {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    readme
        .split("```")
        .filter_map(|block| block.strip_prefix("console\n$ ")?.split_once('\n'))
        .find_map(|(line, output)| {
            let args = line.strip_prefix(command)?;
            (!output.starts_with('$')).then(|| (words(args), output.to_owned()))
        })
        .unwrap_or_else(|| panic!("the README does not show what `{command}` prints"))
}

/// The words of a command line with nothing but blanks and double quotes in it.
fn words(line: &str) -> Vec<String> {
    line.split('"')
        .enumerate()
        .flat_map(|(at, part)| {
            let quoted = at % 2 == 1;
            let words: Vec<&str> =
                if quoted { vec![part] } else { part.split_whitespace().collect() };
            words.into_iter().map(str::to_owned)
        })
        .collect()
}

/// What a command of the README prints on a terminal, both streams as they come, in a folder with
/// a copy of the example where the repository has it.
fn printed(args: &[String]) -> String {
    let home = Project::of(&[]);
    Project::copy_desk(&home.path().join("examples/support-desk"));
    let path = home.path().join("printed");
    let file = fs::File::create(&path).unwrap();
    let status = toolcrib()
        .args(args)
        .current_dir(home.path())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    let printed = fs::read_to_string(path).unwrap();
    assert!(status.success(), "{printed}");
    printed.replace(home.path().canonicalize().unwrap().to_str().unwrap(), HOME)
}

#[test]
fn its_run_is_a_real_one() {
    let (args, output) = shown("cargo run --release -- ");
    assert_eq!(args[..3], ["run", "-p", "examples/support-desk"]);
    assert_eq!(steady(&printed(&args)), steady(&output));
}

#[test]
fn its_reason_is_a_real_one() {
    let (args, output) = shown("toolcrib ");
    assert_eq!(args[0], "explain");
    let printed = printed(&args);
    let lines: Vec<_> = output.lines().filter(|line| *line != "…").collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(printed.lines().any(|real| real == line), "{line:?} is not in:\n{printed}");
    }
}
