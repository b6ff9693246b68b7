//! A vendor's prompt cache, as far as a client can see it.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

use crate::Protocol;

/// A prompt in the order in which a vendor reads it: tools, system text, messages.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) blocks: Vec<Block>,
    /// How many blocks before a breakpoint are looked at for a prefix that was written earlier.
    pub(crate) lookback: usize,
}

/// A part of a prompt that is cached as a whole or not at all.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) text: String,
    /// Whether the prompt up to the end of this block is written to the cache.
    pub(crate) breakpoint: bool,
}

impl Prompt {
    /// A prompt of a vendor that caches by itself, wherever a block ends.
    pub(crate) fn cached_by_itself(blocks: impl IntoIterator<Item = String>) -> Self {
        let blocks = blocks.into_iter().map(|text| Block { text, breakpoint: true });
        Self { blocks: blocks.collect(), lookback: usize::MAX }
    }

    /// A prompt of a vendor that says nothing of a cache.
    pub(crate) fn uncached() -> Self {
        Self { blocks: Vec::new(), lookback: 0 }
    }
}

/// How much of a prompt came from the cache and went into it, as shares of its characters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CacheUse {
    pub(crate) read: f64,
    pub(crate) written: f64,
}

/// Remembers which prompts began how. Nothing in it expires, and there is no least length.
#[derive(Debug, Default)]
pub(crate) struct PromptCache(Mutex<HashSet<u64>>);

impl PromptCache {
    /// Reads the longest known beginning of a prompt, and writes what its breakpoints ask for.
    pub(crate) fn serve(&self, protocol: Protocol, prompt: &Prompt) -> CacheUse {
        let mut hasher = DefaultHasher::new();
        protocol.hash(&mut hasher);
        let (mut chars, mut ends) = (0, Vec::with_capacity(prompt.blocks.len()));
        for block in &prompt.blocks {
            block.text.hash(&mut hasher);
            chars += block.text.chars().count();
            ends.push((hasher.finish(), chars));
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let breakpoints = || {
            prompt.blocks.iter().enumerate().filter(|(_, block)| block.breakpoint).map(|(i, _)| i)
        };
        let within_reach = |i: usize| breakpoints().any(|at| i <= at && at - i <= prompt.lookback);
        let read = ends.iter().enumerate().rev();
        let read = read.filter(|(i, (hash, _))| known.contains(hash) && within_reach(*i));
        let read = read.map(|(_, (_, chars))| *chars).next().unwrap_or(0);
        let last = breakpoints().next_back().and_then(|at| ends.get(at));
        let written = last.map_or(0, |(_, chars)| chars.saturating_sub(read));
        known.extend(breakpoints().filter_map(|at| ends.get(at)).map(|(hash, _)| *hash));
        CacheUse { read: share(read, chars), written: share(written, chars) }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(blocks: &[(&str, bool)], lookback: usize) -> Prompt {
        let blocks = blocks.iter();
        let blocks = blocks
            .map(|(text, breakpoint)| Block { text: (*text).into(), breakpoint: *breakpoint });
        Prompt { blocks: blocks.collect(), lookback }
    }

    #[test]
    fn what_begins_alike_is_read_up_to_the_last_whole_block() {
        let cache = PromptCache::default();
        let serve = |texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            cache.serve(Protocol::OpenAi, &Prompt::cached_by_itself(texts))
        };
        assert_eq!(serve(&["tools", "hello"]), CacheUse { read: 0.0, written: 1.0 });
        assert_eq!(serve(&["tools", "hello"]).read, 1.0);
        assert_eq!(serve(&["tools", "other"]), CacheUse { read: 0.5, written: 0.5 });
        assert_eq!(serve(&["stool", "hello"]).read, 0.0);
    }

    #[test]
    fn with_breakpoints_only_what_was_written_and_is_near_is_read() {
        let cache = PromptCache::default();
        let serve = |blocks: &[(&str, bool)], lookback| {
            cache.serve(Protocol::Anthropic, &prompt(blocks, lookback))
        };
        assert_eq!(serve(&[("aa", false), ("bb", false)], 20), CacheUse::default());
        assert_eq!(serve(&[("aa", true), ("bb", false)], 20), CacheUse { read: 0.0, written: 0.5 });
        let longer = [("aa", false), ("bb", false), ("cccc", true)];
        assert_eq!(serve(&longer, 1), CacheUse { read: 0.0, written: 1.0 }, "out of reach");
        let again = [("aa", false), ("bb", true), ("dddd", false)];
        assert_eq!(serve(&again, 20), CacheUse { read: 0.25, written: 0.25 });
        let of_another = prompt(&[("aa", true)], 20);
        assert_eq!(cache.serve(Protocol::Gemini, &of_another).read, 0.0);
    }
}
