//! Checks the caller and the initial skills of a turn: exactly those skills are active that
//! `read_skill` would activate for the same caller. Every way to begin with a skill uses this
//! check. Personality and policy decide before the turn begins, middleware before its next
//! iteration.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{Effect, Identity, SkillId};

use super::{Iteration, Turn, TurnError, TurnOptions, error::no_skill};
use crate::{
    parts::EngineParts,
    personality::{DEFAULT_PERSONALITY, Personality},
    policy::facts::Facts,
    skills::{Skills, read_skill_as_judged},
};

/// The admitted caller of a turn.
pub(super) struct AdmittedCaller {
    pub(super) personality: Arc<Personality>,
    pub(super) skills: Arc<Skills>,
    pub(super) roles: Vec<Arc<str>>,
    /// The roles that claims add.
    pub(super) roles_by_claims: Vec<Arc<str>>,
}

impl AdmittedCaller {
    /// Each skill is judged while those before it are active, as if a model read one after the
    /// other.
    pub(super) fn by(
        engine: &EngineParts,
        options: &TurnOptions,
        identity: &Identity,
    ) -> Result<Self, TurnError> {
        let id = options.personality.as_deref().unwrap_or(DEFAULT_PERSONALITY);
        let personalities = &engine.visibility.personalities;
        let Some(personality) = personalities.get(id).cloned() else {
            let known = personalities.iter().map(|known| Arc::clone(&known.id)).collect();
            return Err(TurnError::UnknownPersonality { personality: id.into(), known });
        };
        let personality = match options.parent.clone() {
            Some(parent) => Arc::new(parent.narrow(&personality)),
            None => personality,
        };
        let all_roles = &engine.visibility.policy.roles;
        let roles = all_roles.of(identity, &options.claims)?;
        let roles_by_claims = all_roles.by_claims(&options.claims)?;
        let skills = engine.skills_of(&personality);
        for (before, skill) in options.skills.iter().enumerate() {
            let facts = Facts {
                skills: options.skills.get(..before).unwrap_or_default(),
                steps: &[],
                roles: &roles,
                roles_by_claims: &roles_by_claims,
                tenant: identity.tenant.as_deref(),
                principal: identity.principal.as_deref(),
                personality: &personality,
                iteration: 1,
                tainted: options.tainted && !options.skills_admitted,
            };
            may_activate(engine, &skills, facts, skill, options.skills_admitted)?;
        }
        Ok(Self { personality, skills, roles, roles_by_claims })
    }
}

impl Turn {
    /// Shows the middleware the skills that no call activated, as calls of `read_skill`. No
    /// iteration begins until it has admitted all of them.
    pub(super) async fn ask_middleware(&mut self) -> Result<(), TurnError> {
        if self.unasked.is_empty() {
            return Ok(());
        }
        if let (false, Some(read_skill)) =
            (self.state.engine.middleware.is_empty(), read_skill_as_judged())
        {
            let iteration = Iteration::of_nothing(&self.state, self.iteration);
            for skill in &self.unasked {
                let asked = iteration.batch();
                let id = format!("skill_{skill}");
                let consulted = asked.consult(read_skill, &id, json!({ "id": skill })).await;
                if self.state.cancellation.is_cancelled() {
                    return Err(TurnError::Cancelled);
                }
                consulted.map_err(|reason| {
                    let reason = self.redactor().text(&reason).into();
                    TurnError::SkillRefused { skill: skill.clone(), reason }
                })?;
            }
        }
        self.unasked.clear();
        Ok(())
    }
}

/// Whether a call of `read_skill` with this id would activate the skill. A rule that wants the call
/// approved refuses it, unless it `is_approved`: no approval is requested here.
pub(super) fn may_activate(
    engine: &EngineParts,
    skills: &Skills,
    facts: Facts<'_>,
    skill: &SkillId,
    is_approved: bool,
) -> Result<(), TurnError> {
    let visibility = &engine.visibility;
    if skills.get(skill).is_none() {
        return Err(no_skill(skill.clone(), skills, &visibility.skills, facts.personality));
    }
    let refused = |reason: &str| {
        let reason = visibility.redactor.text(reason).into();
        Err(TurnError::SkillRefused { skill: skill.clone(), reason })
    };
    let Some(read_skill) = read_skill_as_judged() else {
        return refused("`read_skill` cannot be built");
    };
    if facts.personality.objection(read_skill).is_some() {
        return refused(&format!("personality `{}` excludes `read_skill`", facts.personality.id));
    }
    // A rule that denies or halts without evaluating arguments does so here too.
    let ruling = visibility.judge_call(read_skill, facts, &json!({ "id": skill }));
    let does = match ruling.effect() {
        Effect::Allow => return Ok(()),
        Effect::Ask if is_approved => return Ok(()),
        Effect::Ask => "requires approval of `read_skill` with this id, which is not possible here",
        Effect::Halt => "ends the run at a call of `read_skill` with this id",
        _ => "denies `read_skill` with this id",
    };
    let because = ruling.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
    refused(&format!("{} {does}{because}", ruling.label()))
}
