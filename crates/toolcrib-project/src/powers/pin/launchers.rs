//! The known launchers, and how each names its packages.

use super::version::{
    go_is_pinned, image_is_pinned, nix_is_pinned, npm_is_pinned, python_is_pinned, url_is_pinned,
};

/// A program that fetches packages and runs them, or installs them.
pub(super) struct Launcher {
    pub(super) programs: &'static [&'static str],
    /// Subcommands: one of each, in this order.
    pub(super) verbs: &'static [&'static [&'static str]],
    /// Options whose value is a package.
    pub(super) packages: &'static [&'static str],
    /// The options after which the first word is a command of the package.
    pub(super) instead: &'static [&'static str],
    /// Options whose value is the version of the package.
    pub(super) versions: &'static [&'static str],
    /// Whether the word after an option is its value.
    pub(super) takes_value: fn(&str) -> bool,
    /// Which words other than options are packages.
    pub(super) words: Words,
    pub(super) is_pinned: fn(&str) -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    None,
    First,
    All,
}

const NPX: Launcher = Launcher {
    programs: &["npx", "pnpx", "bunx"],
    verbs: &[],
    packages: &["-p", "--package"],
    instead: &["-p", "--package"],
    versions: &[],
    takes_value: |option| matches!(option, "-c" | "--call"),
    words: Words::First,
    is_pinned: npm_is_pinned,
};

const UVX: Launcher = Launcher {
    programs: &["uvx"],
    packages: &["--from", "--with", "-w"],
    instead: &["--from"],
    takes_value: |option| {
        matches!(
            option,
            "-p" | "--python"
                | "-i"
                | "--index"
                | "--index-url"
                | "--default-index"
                | "--extra-index-url"
                | "--with-editable"
                | "--with-requirements"
                | "--directory"
                | "--project"
                | "--env-file"
                | "--extra"
                | "--group"
        )
    },
    is_pinned: python_is_pinned,
    ..NPX
};

const PIP: Launcher = Launcher {
    programs: &["pip", "pip3"],
    verbs: &[&["install"]],
    packages: &[],
    instead: &[],
    takes_value: |option| {
        matches!(
            option,
            "-r" | "-e" | "-c" | "-t" | "-i" | "--requirement" | "--editable" | "--constraint"
        ) || matches!(option, "--target" | "--prefix" | "--index-url" | "--extra-index-url")
    },
    words: Words::All,
    is_pinned: python_is_pinned,
    ..NPX
};

/// Without a subcommand, the first word is the program.
const DENO: Launcher = Launcher {
    programs: &["deno"],
    verbs: &[],
    packages: &[],
    instead: &[],
    takes_value: |option| {
        matches!(option, "-c" | "--config" | "--import-map" | "--lock" | "--cert")
    },
    is_pinned: url_is_pinned,
    ..NPX
};

pub(super) const LAUNCHERS: [Launcher; 17] = [
    NPX,
    Launcher { programs: &["npm", "pnpm", "yarn", "bun"], verbs: &[&["exec", "x", "dlx"]], ..NPX },
    Launcher {
        programs: &["npm", "pnpm", "yarn", "bun"],
        verbs: &[&["install", "i", "add"]],
        packages: &[],
        instead: &[],
        takes_value: |option| matches!(option, "--prefix" | "-C" | "--dir" | "--registry"),
        words: Words::All,
        ..NPX
    },
    UVX,
    Launcher { programs: &["uv"], verbs: &[&["tool"], &["run"]], ..UVX },
    // The first word is a file or a program of the environment, unless it is a URL.
    Launcher { programs: &["uv"], verbs: &[&["run"]], words: Words::None, ..UVX },
    Launcher {
        programs: &["uv"],
        verbs: &[&["run"]],
        packages: &[],
        instead: &[],
        takes_value: |option| (UVX.takes_value)(option) || UVX.packages.contains(&option),
        is_pinned: url_is_pinned,
        ..NPX
    },
    Launcher { programs: &["uv"], verbs: &[&["pip"], &["install"]], ..PIP },
    PIP,
    Launcher {
        programs: &["pipx"],
        verbs: &[&["run", "install"]],
        packages: &["--spec"],
        instead: &["--spec"],
        takes_value: |option| matches!(option, "--python" | "--pip-args" | "--index-url" | "-i"),
        is_pinned: python_is_pinned,
        ..NPX
    },
    Launcher {
        programs: &["go"],
        verbs: &[&["run", "install"]],
        packages: &[],
        instead: &[],
        is_pinned: go_is_pinned,
        takes_value: |option| matches!(option, "-C" | "-exec" | "-ldflags" | "-tags"),
        ..NPX
    },
    Launcher { verbs: &[&["run", "serve", "install", "x"]], ..DENO },
    DENO,
    Launcher {
        programs: &["docker", "podman", "nerdctl"],
        verbs: &[&["run"]],
        packages: &[],
        instead: &[],
        takes_value: image_option_takes_value,
        is_pinned: image_is_pinned,
        ..NPX
    },
    Launcher {
        programs: &["cargo"],
        verbs: &[&["install"]],
        packages: &["--git"],
        instead: &["--git"],
        versions: &["--version", "--vers", "--rev"],
        takes_value: |option| matches!(option, "--path" | "--root" | "--features" | "-F" | "--bin"),
        words: Words::All,
        ..NPX
    },
    Launcher {
        programs: &["gem"],
        verbs: &[&["install"]],
        packages: &[],
        instead: &[],
        versions: &["--version", "-v"],
        takes_value: |option| matches!(option, "--source" | "-s" | "--install-dir" | "-i"),
        words: Words::All,
        ..NPX
    },
    Launcher {
        programs: &["nix"],
        verbs: &[&["run", "shell", "develop"]],
        packages: &[],
        instead: &[],
        takes_value: |option| matches!(option, "-c" | "--command"),
        words: Words::First,
        is_pinned: nix_is_pinned,
        ..NPX
    },
];

/// Most options of `docker run` have a value.
fn image_option_takes_value(option: &str) -> bool {
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
    let is_short_flags =
        !option.starts_with("--") && option.bytes().skip(1).all(|flag| b"itdPq".contains(&flag));
    !(option.contains('=') || ALONE.contains(&option) || is_short_flags)
}
