//! Programs that fetch what they run: whether the version is fixed.

/// What a command fetches and runs without a fixed version, if it does. Looks at the well-known
/// launchers, also behind `env` and in the text of a shell.
pub(super) fn unpinned(command: &[String]) -> Option<String> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    of_words(&words, 2)
}

fn of_words(words: &[&str], depth: u8) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let program = first.rsplit('/').next()?;
    let program = program.strip_suffix(".cmd").or(program.strip_suffix(".exe")).unwrap_or(program);
    match program {
        "npx" | "pnpx" | "bunx" => package(rest, &["-p", "--package"], &["-c"], npm_is_pinned),
        "npm" | "pnpm" | "yarn" | "bun" => {
            let (_, rest) = behind(rest, &["exec", "x", "dlx"])?;
            package(rest, &["-p", "--package"], &["-c"], npm_is_pinned)
        }
        "uvx" => package(rest, &["--from"], UV_VALUES, python_is_pinned),
        "uv" => {
            let (_, rest) = behind(rest, &["tool"])?;
            let (_, rest) = behind(rest, &["run"])?;
            package(rest, &["--from"], UV_VALUES, python_is_pinned)
        }
        "pipx" => {
            let (_, rest) = behind(rest, &["run"])?;
            package(rest, &["--spec"], &["--python"], python_is_pinned)
        }
        "go" => {
            let (_, rest) = behind(rest, &["run"])?;
            let module = rest.iter().find(|word| !word.starts_with('-'))?;
            let version = module.split_once('@').map(|(_, version)| version);
            let is_local = module.starts_with('.') || module.starts_with('/');
            (!is_local && version.is_some_and(|v| !v.starts_with('v'))).then(|| (*module).into())
        }
        "deno" => {
            let (_, rest) = behind(rest, &["run"])?;
            let source = rest.iter().find(|word| !word.starts_with('-'))?;
            let is_fetched = ["npm:", "jsr:", "http:", "https:"].iter();
            let is_fetched = is_fetched.clone().any(|scheme| source.starts_with(scheme));
            (is_fetched && !npm_is_pinned(source)).then(|| (*source).into())
        }
        "docker" | "podman" | "nerdctl" => {
            let (_, rest) = behind(rest, &["run"])?;
            let image = image(rest)?;
            (!image_is_pinned(image)).then(|| image.into())
        }
        // A shell's text, and what only starts another program.
        "sh" | "bash" | "dash" | "zsh" | "env" | "cmd" | "sudo" | "nice" | "timeout" => {
            let depth = depth.checked_sub(1)?;
            let split: Vec<&str> =
                rest.iter().flat_map(|word| word.split_whitespace()).take(1000).collect();
            (0..split.len()).find_map(|start| of_words(split.get(start..)?, depth))
        }
        _ => None,
    }
}

/// Options of uv that have a value.
const UV_VALUES: &[&str] = &["-p", "--python", "--with", "-w", "--index", "--index-url", "-i"];

/// What is behind the first of some words.
fn behind<'a, 'b>(words: &'b [&'a str], one_of: &[&str]) -> Option<(&'a str, &'b [&'a str])> {
    let at = words.iter().position(|word| one_of.contains(word))?;
    Some((words.get(at)?, words.get(at + 1..)?))
}

/// The package that a launcher is given, unless it is pinned: the value of one of `named`, else the
/// first word that is no option.
fn package(
    words: &[&str],
    named: &[&str],
    with_value: &[&str],
    is_pinned: impl Fn(&str) -> bool,
) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, value) = word.split_once('=').unwrap_or((word, ""));
        let spec = if named.contains(&option) {
            if value.is_empty() { words.next()? } else { value }
        } else if with_value.contains(&option) {
            if value.is_empty() {
                words.next();
            }
            continue;
        } else if word.starts_with('-') {
            continue;
        } else {
            word
        };
        let is_local = spec.starts_with(['.', '/']) || spec.starts_with("file:");
        return (!is_local && !is_pinned(spec)).then(|| spec.to_owned());
    }
    None
}

/// `name@1.2.3`, with a scope or without.
fn npm_is_pinned(spec: &str) -> bool {
    let name_ends = spec.rfind('@').filter(|at| *at > 0);
    let version = name_ends.and_then(|at| spec.get(at + 1..)).unwrap_or_default();
    is_exact(version) || is_commit(spec.rsplit('#').next().unwrap_or_default())
}

/// `name==1.2.3`, `name@1.2.3`, or a commit of a repository.
fn python_is_pinned(spec: &str) -> bool {
    let version = spec.split_once("==").or(spec.rsplit_once('@')).map(|(_, version)| version);
    version.is_some_and(|version| is_exact(version) || is_commit(version))
}

/// A whole version with its numbers, and no range.
fn is_exact(version: &str) -> bool {
    let mut numbers = version.split(['-', '+']).next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let first = numbers.next().is_some_and(is_number);
    let others: Vec<_> = numbers.collect();
    first
        && !others.is_empty()
        && others.iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        && !version.contains(['^', '~', '*', '<', '>', '|', ' '])
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The image of `docker run`: the first word that is neither an option nor its value.
fn image<'a>(words: &[&'a str]) -> Option<&'a str> {
    const ALONE: [&str; 14] = [
        "--rm",
        "--init",
        "--interactive",
        "--tty",
        "--detach",
        "--privileged",
        "--read-only",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--publish-all",
        "--sig-proxy",
        "--quiet",
        "--replace",
        "--help",
    ];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        let is_short_flags =
            !word.starts_with("--") && word.bytes().skip(1).all(|flag| b"itdPq".contains(&flag));
        if !(word.contains('=') || ALONE.contains(word) || is_short_flags) {
            words.next();
        }
    }
    None
}

/// A digest, or a tag that is not `latest`.
fn image_is_pinned(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or(image);
    image.contains("@sha256:")
        || last.split_once(':').is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let words: Vec<_> = line.split('|').map(str::to_owned).collect();
        unpinned(&words)
    }

    #[test]
    fn what_is_fetched_without_a_version_is_named() {
        for (line, spec) in [
            ("npx|-y|@scope/server", "@scope/server"),
            ("/usr/bin/npx|--yes|server@latest|.", "server@latest"),
            ("npx|-p|tool@^1.2.3|tool", "tool@^1.2.3"),
            ("npx|--package=tool|tool", "tool"),
            ("npx|tool@1", "tool@1"),
            ("npm|exec|--|tool", "tool"),
            ("pnpm|dlx|tool", "tool"),
            ("uvx|mcp-server-git", "mcp-server-git"),
            ("uvx|--python|3.12|mcp-server-git", "mcp-server-git"),
            ("uvx|--from|git+https://x.example/y|z", "git+https://x.example/y"),
            ("uv|tool|run|x>=1.0", "x>=1.0"),
            ("pipx|run|x", "x"),
            ("docker|run|-i|--rm|-e|TOKEN|mcp/git", "mcp/git"),
            (
                "docker|run|--name=x|reg.example:5000/mcp/git:latest",
                "reg.example:5000/mcp/git:latest",
            ),
            ("go|run|example.com/x@latest", "example.com/x@latest"),
            ("deno|run|-A|npm:tool", "npm:tool"),
            ("sh|-c|cd /x && npx -y tool", "tool"),
            ("env|A=1|npx|tool", "tool"),
        ] {
            assert_eq!(found(line).as_deref(), Some(spec), "{line}");
        }
    }

    #[test]
    fn what_has_a_version_or_is_not_fetched_is_not_named() {
        for line in [
            "npx|-y|@scope/server@1.2.3",
            "npx|server@1.2.3-beta.1",
            "npx|./local",
            "uvx|x==1.2",
            "uvx|x@1.2.3",
            "uvx|--from|git+https://x.example/y@0123456789012345678901234567890123456789|z",
            "docker|run|-it|x@sha256:00",
            "docker|run|-v|/a:/b|x:1.2",
            "docker|ps",
            "go|run|.",
            "go|run|example.com/x@v1.2.3",
            "deno|run|main.ts",
            "python3|server.py",
            "sh|-c|ls",
            "npx",
            "",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
