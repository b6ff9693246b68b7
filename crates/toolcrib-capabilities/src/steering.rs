//! Files that run or steer code when a person opens a folder, enters it or uses version control in
//! it: the one list for the files that tools write and for the programs of sandboxes.
//!
//! Build files that a person runs on purpose, such as `Makefile` and `package.json`, are not in it, nor
//! are texts that only instruct a model, such as `AGENTS.md`.

use std::path::{Component, Path};

/// Names in sequence, as the end of a path or around it, each with the reason.
pub(crate) const STEERING: &[(&[&str], &str)] = &[
    // Shells and sessions.
    (&[".bashrc"], SHELL),
    (&[".bash_profile"], SHELL),
    (&[".bash_login"], SHELL),
    (&[".bash_logout"], SHELL),
    (&[".bash_aliases"], SHELL),
    (&[".profile"], SHELL),
    (&[".zshrc"], SHELL),
    (&[".zshenv"], SHELL),
    (&[".zprofile"], SHELL),
    (&[".zlogin"], SHELL),
    (&[".zlogout"], SHELL),
    (&[".kshrc"], SHELL),
    (&[".cshrc"], SHELL),
    (&[".tcshrc"], SHELL),
    (&[".login"], SHELL),
    (&[".logout"], SHELL),
    (&[".inputrc"], SHELL),
    (&[".xinitrc"], SHELL),
    (&[".xprofile"], SHELL),
    (&[".xsession"], SHELL),
    (&[".xsessionrc"], SHELL),
    (&[".pam_environment"], SHELL),
    (&[".config", "fish"], SHELL),
    (&[".config", "autostart"], SHELL),
    (&[".config", "systemd"], SHELL),
    (&[".config", "environment.d"], SHELL),
    (&["library", "launchagents"], SHELL),
    (&["library", "launchdaemons"], SHELL),
    (&[".tmux.conf"], SHELL),
    (&[".screenrc"], SHELL),
    // What runs when a folder is entered.
    (&[".envrc"], ENTER),
    (&[".autoenv"], ENTER),
    (&[".autoenv.zsh"], ENTER),
    (&[".rvmrc"], ENTER),
    (&[".mise.toml"], ENTER),
    (&["mise.toml"], ENTER),
    (&[".mise"], ENTER),
    (&[".config", "mise"], ENTER),
    (&[".config", "mise.toml"], ENTER),
    // Editors and debuggers.
    (&[".vimrc"], EDITOR),
    (&["_vimrc"], EDITOR),
    (&[".gvimrc"], EDITOR),
    (&[".exrc"], EDITOR),
    (&["_exrc"], EDITOR),
    (&[".nvimrc"], EDITOR),
    (&[".nvim.lua"], EDITOR),
    (&[".lazy.lua"], EDITOR),
    (&[".vim"], EDITOR),
    (&[".lvimrc"], EDITOR),
    (&[".config", "nvim"], EDITOR),
    (&[".emacs"], EDITOR),
    (&[".emacs.d"], EDITOR),
    (&[".dir-locals.el"], EDITOR),
    (&[".dir-locals-2.el"], EDITOR),
    (&[".vscode"], EDITOR),
    (&[".vscode-server"], EDITOR),
    (&["code", "user"], EDITOR),
    (&[".idea"], EDITOR),
    (&[".fleet"], EDITOR),
    (&[".vs"], EDITOR),
    (&[".zed"], EDITOR),
    (&[".config", "zed"], EDITOR),
    (&[".helix"], EDITOR),
    (&[".config", "helix"], EDITOR),
    (&[".kakrc"], EDITOR),
    (&[".devcontainer"], EDITOR),
    (&[".devcontainer.json"], EDITOR),
    (&[".gdbinit"], EDITOR),
    (&[".lldbinit"], EDITOR),
    // Version control; of `.git`, a sandbox protects only hooks and configuration.
    (&[".gitconfig"], VERSIONS),
    (&[".config", "git"], VERSIONS),
    (&[".gitmodules"], VERSIONS),
    (&[".husky"], VERSIONS),
    (&[".githooks"], VERSIONS),
    (&[".lefthook"], VERSIONS),
    (&["lefthook.yml"], VERSIONS),
    (&["lefthook.yaml"], VERSIONS),
    (&["lefthook.toml"], VERSIONS),
    (&["lefthook.json"], VERSIONS),
    (&[".lefthook.yml"], VERSIONS),
    (&[".lefthook.yaml"], VERSIONS),
    (&["lefthook-local.yml"], VERSIONS),
    (&[".pre-commit-config.yaml"], VERSIONS),
    (&[".pre-commit-config.yml"], VERSIONS),
    (&[".overcommit.yml"], VERSIONS),
    (&[".hg", "hgrc"], VERSIONS),
    (&[".hgrc"], VERSIONS),
    (&[".jj", "repo", "config.toml"], VERSIONS),
    (&[".sl", "config"], VERSIONS),
    // Agents and MCP clients.
    (&[".mcp.json"], AGENT),
    (&["mcp.json"], AGENT),
    (&[".claude"], AGENT),
    (&[".claude.json"], AGENT),
    (&["claude_desktop_config.json"], AGENT),
    (&[".cursor"], AGENT),
    (&[".codeium"], AGENT),
    (&[".windsurf"], AGENT),
    (&["cline_mcp_settings.json"], AGENT),
    (&[".cline"], AGENT),
    (&[".clinerules"], AGENT),
    (&[".roo"], AGENT),
    (&[".roomodes"], AGENT),
    (&[".kilocode"], AGENT),
    (&[".gemini"], AGENT),
    (&[".qwen"], AGENT),
    (&[".copilot"], AGENT),
    (&[".codex"], AGENT),
    (&["opencode.json"], AGENT),
    (&["opencode.jsonc"], AGENT),
    (&[".opencode"], AGENT),
    (&[".config", "opencode"], AGENT),
    (&[".continue"], AGENT),
    (&[".kiro"], AGENT),
    (&[".amazonq"], AGENT),
    (&[".junie"], AGENT),
    (&[".augment"], AGENT),
    (&[".trae"], AGENT),
    (&[".factory"], AGENT),
    (&[".goose"], AGENT),
    (&[".config", "goose"], AGENT),
    (&[".crush.json"], AGENT),
    (&["crush.json"], AGENT),
    (&[".aider.conf.yml"], AGENT),
    (&["toolcrib.toml"], "the declaration of a project, with its policy"),
    (&["tools.lock"], "the lock file of a project"),
    (&["toolcrib.lock"], "the lock file of a project"),
    // Continuous integration.
    (&[".github", "workflows"], CI),
    (&[".github", "actions"], CI),
    (&[".gitea", "workflows"], CI),
    (&[".forgejo", "workflows"], CI),
    (&[".gitlab-ci.yml"], CI),
    (&[".gitlab-ci.yaml"], CI),
    (&[".gitlab", "ci"], CI),
    (&[".circleci"], CI),
    (&[".travis.yml"], CI),
    (&[".drone.yml"], CI),
    (&[".drone.star"], CI),
    (&[".woodpecker"], CI),
    (&[".woodpecker.yml"], CI),
    (&[".woodpecker.yaml"], CI),
    (&[".buildkite"], CI),
    (&[".semaphore"], CI),
    (&[".teamcity"], CI),
    (&[".appveyor.yml"], CI),
    (&["appveyor.yml"], CI),
    (&[".cirrus.yml"], CI),
    (&[".builds"], CI),
    (&[".build.yml"], CI),
    (&["azure-pipelines.yml"], CI),
    (&["azure-pipelines.yaml"], CI),
    (&["bitbucket-pipelines.yml"], CI),
    (&["jenkinsfile"], CI),
    (&[".ci"], CI),
    // Programs that other programs run by themselves.
    (&[".ripgreprc"], RUNS),
    (&[".cargo", "config"], RUNS),
    (&[".cargo", "config.toml"], RUNS),
];

/// Ends of names of files of editors.
pub(crate) const STEERING_ENDS: &[(&str, &str)] =
    &[(".code-workspace", EDITOR), (".sublime-project", EDITOR), (".sublime-workspace", EDITOR)];

const SHELL: &str = "programs run it at their start";
const ENTER: &str = "it may run when a person enters the folder";
const EDITOR: &str = "an editor or a debugger may run what it says when a person opens the folder";
const VERSIONS: &str = "version control may run what it says";
const AGENT: &str = "it decides what agents and MCP clients run";
const CI: &str = "it decides what runs in continuous integration";
const RUNS: &str = "it decides which programs run";

/// Why a path is protected by its last names, if it is; `names` are folded.
pub(crate) fn steers(names: &[String]) -> Option<&'static str> {
    let last = names.last()?;
    let by_names = STEERING.iter().find(|(rule, _)| {
        let from = names.len().checked_sub(rule.len());
        from.and_then(|from| names.get(from..)).is_some_and(|end| end == *rule)
    });
    let by_end = || STEERING_ENDS.iter().find(|(end, _)| last.ends_with(end));
    by_names.map(|(_, reason)| *reason).or_else(|| by_end().map(|(_, reason)| *reason))
}

/// Why a path, or a folder around it, steers code, if it does.
pub fn steering(path: &Path) -> Option<&'static str> {
    let names = folded_names(path);
    (1..=names.len()).find_map(|end| steers(names.get(..end)?))
}

/// The names of a path as the least strict file system compares them. The root is an empty name, so
/// that absolute rules match only at the beginning.
pub(crate) fn folded_names(path: &Path) -> Vec<String> {
    let folded = path.components().filter_map(|component| match component {
        Component::Prefix(_) | Component::CurDir => None,
        Component::RootDir => Some(String::new()),
        Component::ParentDir => Some("..".to_owned()),
        Component::Normal(name) => Some(folded(&name.to_string_lossy())),
    });
    folded.collect()
}

/// A name without case, without characters that some file systems ignore, without trailing dots and
/// spaces and without the name of a stream.
pub(crate) fn folded(name: &str) -> String {
    let is_ignored = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    // To upper case first: `ſ` and `ı` have no lower case of their own, but fold to `s` and `i`.
    let folded: String = name
        .chars()
        .filter(|c| !is_ignored(c))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    let without_stream = folded.split(':').next().unwrap_or_default();
    without_stream.trim_end_matches(['.', ' ']).to_owned()
}
