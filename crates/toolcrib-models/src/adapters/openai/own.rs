//! Rules for OpenAI's own models only. They are recognized by name: the server of a base URL cannot
//! be known, and gateways pass such names on.

/// Whether a name is one of OpenAI's own models. Its open models (`gpt-oss`) run on other servers.
pub(super) fn is_own(model: &str) -> bool {
    let reasons =
        model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    reasons
        || model.starts_with("chatgpt-")
        || (model.starts_with("gpt-") && !model.starts_with("gpt-oss"))
}

/// Whether a model is known not to reason, and so refuses a request for its reasoning.
pub(super) fn never_reasons(model: &str) -> bool {
    is_own(model)
        && (["gpt-3", "gpt-4", "chatgpt-"].iter().any(|family| model.starts_with(family))
            || model.contains("-chat-"))
}

/// Whether a model accepts tools only with reasoning disabled.
///
/// Applies to Chat Completions: models from GPT-5.6 on refuse a request with tools unless
/// `reasoning_effort` is `none`, which is not their default. Some of them always reason: the
/// Astras, and the Sols from 6.1 on. They accept no tools there in any case, and OpenAI's error
/// (use Responses) is clearer if the request does not disable what they cannot disable.
pub(super) fn must_not_reason_with_tools(model: &str) -> bool {
    generation(model).is_some_and(|generation| {
        let always_reasons =
            model.contains("-astra") || (model.contains("-sol") && generation >= (6, 1));
        generation >= (5, 6) && !always_reasons
    })
}

/// Whether a model loads tools that a search of its client has found. Applies to Responses.
pub(super) fn loads_tools(model: &str) -> bool {
    generation(model).is_some_and(|generation| generation >= (5, 4)) && !model.contains("-chat-")
}

/// The beginnings of the names of models that see no images.
const BLIND: [&str; 8] = [
    "gpt-3.5",
    "gpt-4-0",
    "gpt-4-32k",
    "gpt-oss",
    "o1-mini",
    "o1-preview",
    "o3-mini",
    "gpt-4o-audio",
];

/// Whether a model sees images; `None` if its name is not one of OpenAI's. A gateway's name for it has
/// the vendor before it, as `openai/gpt-5`.
pub(super) fn sees_images(model: &str) -> Option<bool> {
    let name = model.rsplit('/').next().unwrap_or(model);
    if name == "gpt-4" || BLIND.iter().any(|blind| name.starts_with(blind)) {
        return Some(false);
    }
    is_own(name).then_some(true)
}

/// The generation: `gpt-5.6-luna` has 5.6.
fn generation(model: &str) -> Option<(u32, u32)> {
    let generation = model.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = generation.split_once('.').unwrap_or((generation, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_never_reason_are_known_by_name() {
        for model in
            ["gpt-3.5-turbo", "gpt-4o-mini", "gpt-4.1", "chatgpt-4o-latest", "gpt-5.2-chat-latest"]
        {
            assert!(never_reasons(model), "{model}");
        }
        for model in ["gpt-5", "gpt-6.2-sol", "o3", "gpt-oss-120b", "qwen3-chat-8b", ""] {
            assert!(!never_reasons(model), "{model}");
        }
    }

    #[test]
    fn models_that_load_tools_are_known_by_name() {
        for model in ["gpt-5.4", "gpt-5.4-mini", "gpt-6.2-sol", "gpt-10"] {
            assert!(loads_tools(model), "{model}");
        }
        for model in
            ["gpt-5", "gpt-5.3-codex", "gpt-5.4-chat-latest", "gpt-oss-120b", "o3", "qwen3"]
        {
            assert!(!loads_tools(model), "{model}");
        }
    }

    #[test]
    fn models_that_see_images_are_known_by_name() {
        for model in ["gpt-4o-mini", "gpt-4.1", "gpt-4-turbo", "o3", "gpt-6.2-sol", "openai/gpt-5"]
        {
            assert_eq!(sees_images(model), Some(true), "{model}");
        }
        for model in ["gpt-3.5-turbo", "gpt-4", "gpt-4-0613", "o3-mini", "gpt-oss-120b"] {
            assert_eq!(sees_images(model), Some(false), "{model}");
        }
        for model in ["qwen3", "m", "olmo-3", ""] {
            assert_eq!(sees_images(model), None, "{model}");
        }
    }

    #[test]
    fn models_are_known_by_name() {
        // (name, one of OpenAI's own, takes tools only without reasoning)
        let table = [
            ("gpt-6-sol", true, true),
            ("gpt-6.1-terra", true, true),
            ("gpt-6-luna-2026-09-22", true, true),
            ("gpt-5.6", true, true),
            ("gpt-10", true, true),
            ("gpt-6-astra", true, false),
            ("gpt-6.2-astra", true, false),
            ("gpt-6.1-sol", true, false),
            ("gpt-6.2-sol", true, false),
            ("gpt-5.6-sol", true, true),
            ("gpt-5.5", true, false),
            ("gpt-5.4-mini", true, false),
            ("gpt-5", true, false),
            ("gpt-4o-mini", true, false),
            ("gpt-4.1", true, false),
            ("o3", true, false),
            ("o4-mini", true, false),
            ("chatgpt-4o-latest", true, false),
            ("gpt-oss-120b", false, false),
            ("gpt-oss:20b", false, false),
            ("openai/gpt-6-sol", false, false),
            ("olmo-3", false, false),
            ("qwen3", false, false),
            ("", false, false),
        ];
        for (model, own, must_not_reason) in table {
            assert_eq!(is_own(model), own, "{model}");
            assert_eq!(must_not_reason_with_tools(model), must_not_reason, "{model}");
        }
    }
}
