//! The shared parts of all runs of an agent.

use std::{collections::HashMap, sync::Arc};

use toolcrib_core::{SessionStore, UsageStore};
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
    pub(crate) store: Option<AgentStore>,
    pub(crate) conversations: Arc<Conversations>,
}

/// A store, by its two ports.
#[derive(Clone)]
pub(crate) struct AgentStore {
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) usage: Arc<dyn UsageStore>,
}

pub(crate) type PersonalityModels = HashMap<Arc<str>, Models>;

impl AgentParts {
    /// The models of a personality. One that names its model uses no other: its messages are not
    /// meant for the others.
    ///
    /// # Errors
    /// It names a model that the agent does not have.
    pub(crate) fn models_of(&self, personality: &Personality) -> Result<&Models, String> {
        match personality.model {
            None => Ok(&self.models),
            Some(_) => {
                self.personality_models.get(&personality.id).ok_or_else(|| no_model(personality))
            }
        }
    }
}

/// The reason why a personality's model cannot be used.
pub(crate) fn no_model(personality: &Personality) -> String {
    format!(
        "personality `{}` has the model `{}`, which this agent does not have; set it with \
         `AgentBuilder::personality_model`",
        personality.id,
        personality.model.as_deref().unwrap_or_default()
    )
}
