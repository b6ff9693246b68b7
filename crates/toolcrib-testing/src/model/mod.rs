//! Models for tests: a script or a function, with a record of requests.

mod answer;
mod hallucinating;
mod obedient;
mod ready;
mod request;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use toolcrib_core::{Model, ModelError, ModelErrorClass, ModelRequest, ModelStream};

pub use self::{
    answer::Answer,
    hallucinating::hallucinating,
    obedient::{gullible, obedient},
    ready::{failing, looping, slow, stalled},
    request::{call, results},
};
use self::{answer::StreamCount, request::described};
use crate::fail::fail;

/// A model that responds with scripted steps.
///
/// ```
/// use serde_json::json;
/// use toolcrib_testing::{call, model, results};
///
/// let model = model()
///     .then(call("list_charges", json!({ "order_id": 1042 })))
///     .then_with(|request| format!("I read {} result.", results(request).len()));
/// assert_eq!(model.steps_left(), 2);
/// ```
pub fn model() -> TestModel {
    TestModel { name: "test:model".into(), pause: Duration::ZERO, state: Arc::default() }
}

/// A test model: steps that are used one after the other, then an optional answer for all later
/// requests. It records its requests. Clones share it: give a clone to the agent and inspect the
/// other.
///
/// Steps are used in the order of requests, regardless of the run; to answer several runs alike,
/// use [`always_with`](Self::always_with). Neighbor: `ScriptedModel` of the models crate answers by
/// rules in a file, which have no memory.
#[derive(Clone)]
pub struct TestModel {
    name: Arc<str>,
    pause: Duration,
    state: Arc<State>,
}

type ScriptStep = Box<dyn FnOnce(&ModelRequest) -> Answer + Send>;
type Afterwards = Arc<dyn Fn(&ModelRequest) -> Answer + Send + Sync>;

#[derive(Default)]
struct State {
    steps: Mutex<VecDeque<ScriptStep>>,
    planned: AtomicUsize,
    afterwards: Mutex<Option<Afterwards>>,
    asked: Mutex<Vec<ModelRequest>>,
    streaming: Arc<AtomicUsize>,
}

impl TestModel {
    /// Adds a step: a text, a [call](call()), several calls, or an [`Answer`] with all its options.
    #[must_use]
    pub fn then(self, answer: impl Into<Answer>) -> Self {
        let answer = answer.into();
        self.then_with(move |_| answer)
    }

    /// Adds a step that computes its answer from the request. A panic in it, such as an `assert!`,
    /// fails the run as a panic of a real model would.
    #[must_use]
    pub fn then_with<A: Into<Answer>>(
        self,
        step: impl FnOnce(&ModelRequest) -> A + Send + 'static,
    ) -> Self {
        self.state.steps.lock().push_back(Box::new(move |request| step(request).into()));
        self.state.planned.fetch_add(1, Ordering::SeqCst);
        self
    }

    /// Sets the answer to all requests after the steps; without it they are an error. It also
    /// applies to the final request of a run, where calls are not allowed.
    #[must_use]
    pub fn always(self, answer: impl Into<Answer>) -> Self {
        let answer = answer.into();
        self.always_with(move |_| answer.clone())
    }

    /// As [`always`](Self::always), with a function of the request. Such a model has no memory and
    /// serves many runs at once.
    #[must_use]
    pub fn always_with<A: Into<Answer>>(
        self,
        answer: impl Fn(&ModelRequest) -> A + Send + Sync + 'static,
    ) -> Self {
        *self.state.afterwards.lock() = Some(Arc::new(move |request| answer(request).into()));
        self
    }

    /// Sets the name in events and errors. Default: `test:model`.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the wait before each piece of a response, on tokio's clock, unless the answer sets it.
    /// Default: none.
    #[must_use]
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The requests, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.asked.lock().clone()
    }

    /// The number of unused steps.
    pub fn steps_left(&self) -> usize {
        self.state.steps.lock().len()
    }

    /// The number of responses in progress: neither ended nor dropped. It is 0 after a run has
    /// ended.
    pub fn streaming(&self) -> usize {
        self.state.streaming.load(Ordering::SeqCst)
    }

    /// Fails unless every step was used, and there were no requests beyond them.
    ///
    /// # Panics
    /// With the requests.
    #[track_caller]
    pub fn assert_used_up(&self) {
        let (left, planned) = (self.steps_left(), self.state.planned.load(Ordering::SeqCst));
        let asked = self.requests();
        let beyond = asked.len().saturating_sub(planned);
        let problem = if left > 0 {
            format!("{left} of {planned} steps were not taken")
        } else if beyond > 0 && self.state.afterwards.lock().is_none() {
            format!("it has {planned} steps and received {beyond} more requests")
        } else {
            return;
        };
        let asked: String =
            asked.iter().map(|request| format!("\n- {}", described(request))).collect();
        let asked = if asked.is_empty() { "\n- nothing".to_owned() } else { asked };
        fail(format!(
            "the script of `{}` was not used up: {problem}; it was asked:{asked}",
            self.name
        ));
    }

    fn answer(&self, request: &ModelRequest) -> Answer {
        let step = self.state.steps.lock().pop_front();
        if let Some(step) = step {
            return step(request);
        }
        let afterwards = self.state.afterwards.lock().clone();
        if let Some(answer) = afterwards {
            return answer(request);
        }
        Answer::from(ModelError::new(
            ModelErrorClass::NoRule,
            format!(
                "the script has no step left of its {}; it was asked {}",
                self.state.planned.load(Ordering::SeqCst),
                described(request)
            ),
        ))
    }
}

impl Model for TestModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        self.state.asked.lock().push(request.clone());
        let streaming = StreamCount::begin(&self.state.streaming);
        self.answer(&request).stream(&request, self.pause, streaming)
    }
}

toolcrib_core::__internal::debug_fields!(
    TestModel,
    model,
    name = model.name,
    steps_left = model.steps_left(),
    asked = model.state.asked.lock().len(),
    ..
);
