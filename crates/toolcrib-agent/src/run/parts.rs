//! The shared parts of all runs of an agent.

use std::{collections::HashMap, sync::Arc};

use toolcrib_engine::{Engine, Personality};

use super::prefix::Conversations;
use crate::{models::Models, options::Settings};

/// The shared parts of all runs of an agent.
pub(crate) struct AgentParts {
    pub(crate) engine: Engine,
    pub(crate) models: Models,
    /// The models of personalities that have their own, by personality.
    pub(crate) personality_models: PersonalityModels,
    pub(crate) settings: Settings,
    pub(crate) conversations: Arc<Conversations>,
}

pub(crate) type PersonalityModels = HashMap<Arc<str>, Models>;

impl AgentParts {
    /// The models of a personality; `None` if it names one that the agent does not have. A
    /// personality that names its model uses no other: its messages are not meant for the others.
    pub(crate) fn models_of(&self, personality: &Personality) -> Option<&Models> {
        match personality.model {
            None => Some(&self.models),
            Some(_) => self.personality_models.get(&personality.id),
        }
    }
}
