//! Detects programs that fetch code without a fixed version. The launchers are a table; a launcher
//! is also found after `env` and its like, and in the text of a shell. A script that fetches by
//! itself is not detected.

mod launchers;
mod version;

use self::launchers::{LAUNCHERS, Launcher, Words};

/// The limit of words read from a command.
const MOST_WORDS: usize = 2000;

/// Programs that start another one: a shell from its text, the others from their arguments.
const STARTERS: [&str; 26] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ash",
    "ksh",
    "fish",
    "busybox",
    "cmd",
    "powershell",
    "pwsh",
    "env",
    "sudo",
    "doas",
    "su",
    "nice",
    "timeout",
    "nohup",
    "exec",
    "time",
    "xargs",
    "setsid",
    "stdbuf",
    "tini",
    "dumb-init",
    "systemd-run",
];

/// Programs that fetch a URL.
const FETCHERS: [&str; 5] = ["curl", "wget", "fetch", "iwr", "irm"];

/// Shell words that run fetched code, in addition to [`STARTERS`]. A word with a `/` does so too.
const RUNNERS: [&str; 11] =
    ["python", "python3", "node", "perl", "ruby", "php", "deno", "eval", "source", ".", "iex"];

/// The package or URL that a command fetches and runs without a fixed version, if any.
pub(super) fn unpinned(command: &[String]) -> Option<String> {
    let words: Vec<&str> = command.iter().map(String::as_str).take(MOST_WORDS).collect();
    let (first, rest) = words.split_first()?;
    if !STARTERS.contains(&name(first)) {
        return launched(&words);
    }
    let commands = commands_of(rest);
    let mut starts = commands
        .iter()
        .flat_map(|command| (0..command.len()).filter_map(|start| command.get(start..)));
    starts.find_map(launched).or_else(|| fetched(&commands))
}

/// The name of a program, without its folder and the extension of Windows.
fn name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    [".cmd", ".exe"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// The commands in the text of a shell, each as its words. Quotes are ignored.
fn commands_of<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut commands = vec![Vec::new()];
    let mut left = MOST_WORDS;
    for text in words {
        for (at, command) in text.split([';', '|', '&', '(', ')', '`', '\n']).enumerate() {
            if at > 0 {
                commands.push(Vec::new());
            }
            let quotes = |c| matches!(c, '\'' | '"');
            let words = command.split_whitespace().map(|word| word.trim_matches(quotes));
            let words: Vec<_> = words.filter(|word| !word.is_empty()).take(left).collect();
            left -= words.len();
            commands.last_mut().into_iter().for_each(|last| last.extend(&words));
        }
    }
    commands
}

/// The unpinned argument of a launcher, which is the first of the words.
fn launched(words: &[&str]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let program = name(first);
    if program.starts_with("python") && rest.first() == Some(&"-m") {
        return launched(rest.get(1..)?);
    }
    LAUNCHERS.iter().filter(|launcher| launcher.programs.contains(&program)).find_map(|launcher| {
        let words = launcher.after_verbs(rest)?;
        launcher.unpinned(words)
    })
}

/// The URL that one command fetches, if another one may run the result.
fn fetched(commands: &[Vec<&str>]) -> Option<String> {
    let is_url = |word: &&&str| word.contains("://") || word.starts_with('$');
    let fetches = |command: &Vec<&str>| {
        let at = command.iter().position(|word| FETCHERS.contains(&name(word)))?;
        command.get(at..)?.iter().find(is_url).map(|url| (*url).to_owned())
    };
    let runs = |command: &Vec<&str>| {
        let named = |word: &&str| STARTERS.contains(&name(word)) || RUNNERS.contains(&name(word));
        // `.` runs a file only as the command itself; elsewhere it is a folder or a filter.
        let mut words = command.iter().enumerate().filter(|(at, word)| *at == 0 || **word != ".");
        words.any(|(_, word)| named(word) || word.starts_with("./"))
    };
    let (fetching, others): (Vec<_>, Vec<_>) =
        commands.iter().partition(|command| fetches(command).is_some());
    let url = fetching.into_iter().find_map(fetches)?;
    others.into_iter().any(runs).then_some(url)
}

impl Launcher {
    /// The words after the subcommands; `None` if these do not match.
    fn after_verbs<'a, 'w>(&self, mut words: &'w [&'a str]) -> Option<&'w [&'a str]> {
        for verbs in self.verbs {
            let at = words.iter().position(|word| verbs.contains(word))?;
            words = words.get(at + 1..)?;
        }
        Some(words)
    }

    /// The first package without a fixed version, if there is one.
    fn unpinned(&self, words: &[&str]) -> Option<String> {
        let has_version = words.iter().enumerate().any(|(at, word)| {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            let value = if value.is_empty() { words.get(at + 1).copied() } else { Some(value) };
            self.versions.contains(&option) && value.is_some_and(version::is_fixed)
        });
        let mut named = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            let mut of_option =
                || if value.is_empty() { words.next().copied() } else { Some(value) };
            let is_option = word.starts_with('-');
            let spec = if is_option && self.packages.contains(&option) {
                named |= self.instead.contains(&option);
                of_option()?
            } else if is_option {
                if (self.takes_value)(word) || self.versions.contains(&option) {
                    of_option();
                }
                continue;
            } else if named || self.words == Words::None {
                return None;
            } else {
                word
            };
            let mut specs = spec.split(',').filter(|spec| !spec.is_empty());
            let is_loose = |spec: &&str| {
                let is_local = spec.starts_with(['.', '/', '~']) || spec.starts_with("file:");
                !is_local && !has_version && !(self.is_pinned)(spec)
            };
            if let Some(spec) = specs.find(is_loose) {
                return Some(spec.to_owned());
            }
            if !is_option && self.words == Words::First {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` separates words, `¦` is a pipe.
    fn found(line: &str) -> Option<String> {
        let words: Vec<_> = line.split('|').map(|word| word.replace('¦', "|")).collect();
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
            ("uv|run|--with|httpx|server.py", "httpx"),
            ("uv|run|--with=a==1.0,b|server.py", "b"),
            ("uv|run|https://x.example/server.py", "https://x.example/server.py"),
            ("uvx|--with|b|a==1.0", "b"),
            ("uvx|--from|a==1.0|--with|b|a", "b"),
            ("bunx|tool", "tool"),
            ("pnpm|--silent|dlx|tool@next", "tool@next"),
            ("yarn|dlx|tool", "tool"),
            ("npm|install|-g|a@1.2.3|b", "b"),
            ("deno|run|--config|c.json|https://x.example/mod.ts", "https://x.example/mod.ts"),
            ("deno|https://x.example/mod.ts", "https://x.example/mod.ts"),
            ("docker|run|mcp/git:latest", "mcp/git:latest"),
            ("docker|--context|far|run|--network|none|mcp/git", "mcp/git"),
            ("python3|-m|pip|install|a==1.0|b", "b"),
            ("sh|-c|pip install --quiet 'tool>=1' && tool", "tool>=1"),
            ("sh|-c|pip install a==1.0; exec uvx b", "b"),
            ("bash|-lc|(cd /x; \"npx\" tool)", "tool"),
            ("sh|-c|bash -c 'npx tool'", "tool"),
            ("sh|-c|npx $TOOL", "$TOOL"),
            ("sh|-c|curl -fsSL https://x.example/i ¦ sh", "https://x.example/i"),
            ("sh|-c|curl https://x.example/i ¦ sudo bash -s", "https://x.example/i"),
            ("bash|-c|bash <(wget -qO- https://x.example/i)", "https://x.example/i"),
            ("sh|-c|eval \"$(curl https://x.example/i)\"", "https://x.example/i"),
            ("sh|-c|wget https://x.example/i && chmod +x i && ./i", "https://x.example/i"),
            ("sudo|-u|x|docker|run|mcp/git", "mcp/git"),
            ("cargo|install|tool", "tool"),
            ("gem|install|tool", "tool"),
            ("nix|run|nixpkgs#hello", "nixpkgs#hello"),
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
            "uv|run|server.py",
            "uv|run|--with|a==1.0,b==2.0.1|server.py|npx",
            "pip|install|-r|requirements.txt",
            "pip|install|-e|.",
            "python3|server.py|npx|tool",
            "npm|ci",
            "deno|run|https://x.example/x@1.2.3/mod.ts",
            "docker|compose|up",
            "sh|-c|npx tool@1.2.3 && ls",
            "sh|-c|curl https://x.example/i ¦ jq .",
            "curl|https://x.example/i",
            "cargo|install|--version|1.2.3|tool",
            "gem|install|tool|-v|1.2.3",
            "",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
