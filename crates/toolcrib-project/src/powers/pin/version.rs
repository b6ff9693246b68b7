//! Whether an argument of a launcher has a fixed version. An image's tag counts as one, though its
//! owner may move it.

/// A complete version number, or a commit; no range.
pub(super) fn is_fixed(version: &str) -> bool {
    let mut numbers = version.split(['-', '+']).next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let first = numbers.next().is_some_and(is_number);
    let others: Vec<_> = numbers.collect();
    let has_others = !others.is_empty()
        && others.iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    let is_range = version.contains(['^', '~', '*', '<', '>', '|', ' ', '$']);
    first && has_others && !is_range || is_commit(version)
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `name@1.2.3`, with a scope or without.
pub(super) fn npm_is_pinned(spec: &str) -> bool {
    let name_ends = spec.rfind('@').filter(|at| *at > 0);
    let version = name_ends.and_then(|at| spec.get(at + 1..)).unwrap_or_default();
    is_fixed(version) || is_commit(spec.rsplit('#').next().unwrap_or_default())
}

/// `name==1.2.3`, `name@1.2.3`, or a commit of a repository.
pub(super) fn python_is_pinned(spec: &str) -> bool {
    let version = spec.split_once("==").or(spec.rsplit_once('@')).map(|(_, version)| version);
    version.is_some_and(is_fixed)
}

/// `module@v1.2.3`. Without a version, `go.mod` decides.
pub(super) fn go_is_pinned(spec: &str) -> bool {
    let version = spec.split_once('@').map(|(_, version)| version);
    version.is_none_or(|version| is_fixed(version.strip_prefix('v').unwrap_or(version)))
}

/// A local file, or a URL with a version in it.
pub(super) fn url_is_pinned(spec: &str) -> bool {
    let schemes = ["npm:", "jsr:", "http:", "https:", "git+"];
    !schemes.iter().any(|scheme| spec.starts_with(scheme)) || spec.split('/').any(npm_is_pinned)
}

/// A flake at a commit.
pub(super) fn nix_is_pinned(spec: &str) -> bool {
    spec.split(['/', '#', '?', '=', '&']).any(is_commit)
}

/// A digest, or a tag that is not `latest`.
pub(super) fn image_is_pinned(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or(image);
    let tag = last.split_once(':').map(|(_, tag)| tag);
    image.contains("@sha256:") || tag.is_some_and(|tag| !matches!(tag, "" | "latest"))
}
