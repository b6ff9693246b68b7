//! An encoder that the host brings, beside the words.

use std::{
    collections::HashMap,
    error::Error,
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use parking_lot::Mutex;
use toolcrib_core::{Digest, Tool};

use crate::{
    fields::bare_name,
    index::{Hit, Index, ScoredTool},
    need::{shortened, terms_of},
};

/// Texts of one call of an encoder.
const BATCH: usize = 64;

/// Vectors of tools that are kept beyond those of the index that was searched last.
const SPARE: usize = 1_000;

/// Turns texts into vectors, of which those of texts with like meanings have a large cosine: an
/// embedding model, for example.
///
/// It is called in the thread of a search, with the need, and once with the name and description of
/// each tool.
pub trait Encoder: Send + Sync {
    /// A vector for each text, in their order. All vectors of an encoder have the same length.
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>>;
}

/// An encoder and the vectors of the tools that it has encoded.
pub struct Encoded {
    encoder: Arc<dyn Encoder>,
    weight: f32,
    /// Each of length 1, or zero.
    of_tool: Mutex<HashMap<Digest, Arc<[f32]>>>,
}

impl Encoded {
    /// `weight` is what a cosine of 1 adds to the score of the words, of which the best is 1.
    pub fn new(encoder: Arc<dyn Encoder>, weight: f32) -> Self {
        Self { encoder, weight, of_tool: Mutex::default() }
    }

    /// The vectors of texts, of length 1.
    fn encode(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, EncodeError> {
        let vectors = self.encoder.encode(texts).map_err(EncodeError::Failed)?;
        if vectors.len() != texts.len() {
            return Err(EncodeError::Count { texts: texts.len(), vectors: vectors.len() });
        }
        vectors.into_iter().map(normalized).collect()
    }

    /// The vectors of tools. Those that are not known are encoded, not under the lock.
    fn of_tools(&self, tools: &[&Tool]) -> Result<Vec<Arc<[f32]>>, EncodeError> {
        let mut found: Vec<Option<Arc<[f32]>>> = {
            let known = self.of_tool.lock();
            tools.iter().map(|tool| known.get(&tool.digest()).cloned()).collect()
        };
        let mut missing: Vec<_> =
            tools.iter().zip(&mut found).filter(|(_, vector)| vector.is_none()).collect();
        for batch in missing.chunks_mut(BATCH) {
            let texts: Vec<String> = batch.iter().map(|(tool, _)| text(tool)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            for ((_, found), vector) in batch.iter_mut().zip(self.encode(&texts)?) {
                **found = Some(vector);
            }
        }
        let new = missing.len();
        let found: Vec<_> = found.into_iter().flatten().collect();
        if new > 0 {
            let mut known = self.of_tool.lock();
            if known.len() + new > tools.len() + SPARE {
                known.clear();
            }
            known.extend(tools.iter().map(|tool| tool.digest()).zip(found.iter().cloned()));
        }
        Ok(found)
    }
}

toolcrib_core::__internal::debug_fields!(Encoded { weight, .. });

/// Why an encoder's vectors cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The encoder failed.
    Failed(Box<dyn Error + Send + Sync>),
    /// It returned another number of vectors than of texts.
    Count {
        /// The number of texts.
        texts: usize,
        /// The number of vectors.
        vectors: usize,
    },
    /// A vector has another length than the need's.
    Length,
    /// A vector has a number that is not finite.
    NotFinite,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the encoder failed: {error}"),
            Self::Count { texts, vectors } => {
                write!(f, "the encoder returned {vectors} vectors for {texts} texts")
            }
            Self::Length => f.write_str("the vectors of the encoder differ in length"),
            Self::NotFinite => f.write_str("a vector of the encoder is not finite"),
        }
    }
}

impl Error for EncodeError {}

impl Index {
    /// [`search_among`](Self::search_among) with an encoder: the score of the words, of which the
    /// best is 1, plus the weighted cosine of the need and the tool. So it also finds tools without a
    /// word of the need.
    pub fn search_encoded(
        &self,
        encoded: &Encoded,
        need: &str,
        limit: usize,
        admits: impl Fn(&Tool) -> bool,
    ) -> Result<Vec<Hit>, EncodeError> {
        let wanted = encoded.encode(&[shortened(need)])?;
        let wanted = wanted.first().cloned().unwrap_or_default();
        // All tools, admitted or not: else each filter would forget the vectors of the others.
        let slots: Vec<_> = self.slots.iter().flatten().collect();
        let vectors = encoded.of_tools(&slots.iter().map(|slot| &slot.tool).collect::<Vec<_>>())?;
        if vectors.iter().any(|vector| vector.len() != wanted.len()) {
            return Err(EncodeError::Length);
        }
        let by_words = self.scored(&terms_of(need), &admits);
        let best = by_words.iter().map(|found| found.score).fold(f32::MIN_POSITIVE, f32::max);
        let by_words: HashMap<u32, f32> =
            by_words.iter().map(|found| (found.slot.position, found.score / best)).collect();
        let sums = slots.into_iter().zip(&vectors).filter(|(slot, _)| admits(&slot.tool));
        let sums = sums.map(|(slot, vector)| {
            let cosine: f32 = vector.iter().zip(&*wanted).map(|(one, other)| one * other).sum();
            let words = by_words.get(&slot.position).copied().unwrap_or_default();
            ScoredTool { slot, score: words + encoded.weight * cosine.max(0.0) }
        });
        Ok(Self::best(sums.filter(|found| found.score > 0.0).collect(), limit))
    }
}

/// The text of a tool for an encoder.
fn text(tool: &Tool) -> String {
    let text = format!("{}: {}", bare_name(tool).replace('_', " "), tool.description());
    shortened(&text).to_owned()
}

fn normalized(vector: Vec<f32>) -> Result<Arc<[f32]>, EncodeError> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_finite() {
        return Err(EncodeError::NotFinite);
    }
    let length = length.max(f32::MIN_POSITIVE);
    Ok(vector.into_iter().map(|number| number / length).collect())
}
