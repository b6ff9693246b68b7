//! The commands within a chat.

use toolcrib_config::suggest;

/// The commands and their meanings.
pub(super) const HELP: &[(&str, &str)] = &[
    ("/menu", "the tools that the model sees in the next turn, and the withheld ones"),
    ("/why TOOL", "why a tool is offered or withheld, and what would reverse it"),
    ("/skill", "the skills of the project"),
    ("/skill NAME", "activates a skill from the next turn; `/skill NAME off` deactivates it"),
    ("/attach FILE", "attaches a file to the next message"),
    ("/approvals", "the calls that wait for approval, and the grants"),
    ("/usage", "the tokens and the cost of this chat, and the use of budgets"),
    ("/help", "this list"),
    ("/quit", "ends the chat, as Ctrl-D does"),
];

/// A command within a chat.
#[derive(Debug, PartialEq)]
pub(super) enum SlashCommand<'a> {
    Menu,
    Why(&'a str),
    Skills,
    Skill {
        name: &'a str,
        is_on: bool,
    },
    Attach(&'a str),
    Approvals,
    Usage,
    Help,
    Quit,
    /// Not a command, and why.
    Invalid(String),
}

impl<'a> SlashCommand<'a> {
    /// Parses a line; `None` for a message. A path, such as `/etc/hosts`, begins a message.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_prefix('/')?;
        if name.contains('/') {
            return None;
        }
        // A path may contain spaces.
        if let ("attach", Some((_, path))) = (name, line.trim().split_once(char::is_whitespace)) {
            return Some(Self::Attach(path.trim()));
        }
        let words: Vec<_> = words.collect();
        Some(match (name, words.as_slice()) {
            ("menu", []) => Self::Menu,
            ("why", [tool]) => Self::Why(tool),
            ("skill" | "skills", []) => Self::Skills,
            ("skill", [name]) => Self::Skill { name, is_on: true },
            ("skill", [name, "on"]) => Self::Skill { name, is_on: true },
            ("skill", [name, "off"]) => Self::Skill { name, is_on: false },
            ("approvals", []) => Self::Approvals,
            ("usage", []) => Self::Usage,
            ("help" | "?", []) => Self::Help,
            ("quit" | "exit", []) => Self::Quit,
            _ => Self::Invalid(invalid(name)),
        })
    }
}

/// The names of the commands, each once.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = HELP.iter().filter_map(|(usage, _)| usage.split(' ').next()).collect();
    names.dedup();
    names.into_iter()
}

fn invalid(name: &str) -> String {
    let written = format!("/{name}");
    let usages = HELP.iter().map(|(usage, _)| *usage);
    let usages: Vec<_> = usages.filter(|usage| usage.split(' ').next() == Some(&written)).collect();
    if usages.is_empty() {
        let help = suggest::help(&written, "commands", names());
        return format!("unknown command {}; {help}", suggest::quoted([&*written]));
    }
    format!("write {}", suggest::quoted(usages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_message() {
        assert_eq!(SlashCommand::parse("/why find_order"), Some(SlashCommand::Why("find_order")));
        assert_eq!(
            SlashCommand::parse("/skill billing off"),
            Some(SlashCommand::Skill { name: "billing", is_on: false })
        );
        assert_eq!(
            SlashCommand::parse("/attach ~/my notes.txt"),
            Some(SlashCommand::Attach("~/my notes.txt"))
        );
        assert_eq!(SlashCommand::parse("/etc/hosts is broken"), None);
        assert_eq!(SlashCommand::parse("what does /menu do?"), None);
        let problem = |line| match SlashCommand::parse(line) {
            Some(SlashCommand::Invalid(problem)) => problem,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(problem("/mneu"), "unknown command `/mneu`; did you mean `/menu`?");
        assert_eq!(problem("/nosuch").matches("/skill").count(), 1);
        assert_eq!(problem("/why"), "write `/why TOOL`");
        assert_eq!(problem("/skill a b"), "write `/skill`, `/skill NAME`");
    }
}
