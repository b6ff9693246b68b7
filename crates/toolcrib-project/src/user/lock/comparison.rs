//! The comparison of the definitions of a source with the pinned ones.

use std::{mem, sync::Arc, sync::atomic::Ordering};

use serde_json::Value;
use toolcrib_core::{Digest, MissingReason, PinKind, PinRefusal, PinnedDefinition};

use super::{
    Lock, LockEvent, LockMode, MOST_PINS, PinChange, State, Verdict,
    pin::{Pin, PinName, Pins},
};

/// The definitions of one source and kind, as far as they are compared.
pub(super) struct Comparison<'a> {
    lock: &'a Lock,
    state: &'a mut State,
    source: Arc<str>,
    kind: PinKind,
    /// Whether new definitions are withheld.
    asks: bool,
    /// The number of pinned definitions of the source.
    pinned: usize,
    places: Vec<PinName>,
    reasons: Vec<Option<PinRefusal>>,
    /// The definitions that are pinned now.
    fresh: Pins,
    events: Vec<LockEvent>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        lock: &'a Lock,
        state: &'a mut State,
        source: Arc<str>,
        kind: PinKind,
    ) -> Self {
        let asks = lock.0.mode == LockMode::Pin
            && lock.0.asks.load(Ordering::Acquire)
            && state.has_listed(&source, kind);
        let pinned = state.own.keys().filter(|place| place.source == source).count();
        let (places, reasons, fresh, events) = Default::default();
        Self { lock, state, source, kind, asks, pinned, places, reasons, fresh, events }
    }

    /// Compares the next definition, and notes why it is withheld, if it is.
    ///
    /// # Errors
    /// Why the whole source is not used.
    pub(super) fn compare(&mut self, definition: PinnedDefinition) -> Result<(), Arc<str>> {
        let PinnedDefinition { name, definition, is_offered } = definition;
        let place = PinName { source: Arc::clone(&self.source), kind: self.kind, name };
        self.places.push(place.clone());
        let digest = Digest::of_json(&definition);
        let mode = self.lock.0.mode;
        let reason = match self.state.verdict(mode, &place, digest) {
            Verdict::Same => None,
            Verdict::First if !is_offered => None,
            verdict if mode == LockMode::Review => {
                self.remember(place, verdict, definition);
                None
            }
            Verdict::Changed(_) => {
                let reason = self.lock.changed(&place);
                if mode == LockMode::Locked {
                    return Err(reason);
                }
                self.announce(LockEvent::Changed(place.clone()), place, digest);
                Some((MissingReason::Changed, reason))
            }
            Verdict::First if mode == LockMode::Locked => return Err(self.lock.unpinned(&place)),
            // The project's digest is part of the record too.
            Verdict::First if self.asks && !self.state.shared.contains_key(&place) => {
                let reason = self.lock.new_since(&place);
                self.announce(LockEvent::New(place.clone()), place, digest);
                Some((MissingReason::New, reason))
            }
            Verdict::First if self.pinned >= MOST_PINS => {
                let text = format!("its source has {MOST_PINS} pinned definitions already");
                Some((MissingReason::New, text.into()))
            }
            Verdict::First => {
                self.pinned += 1;
                self.fresh.insert(place, Pin::of(&definition, digest));
                None
            }
        };
        self.reasons.push(reason);
        Ok(())
    }

    /// Pins the new definitions: why each definition is withheld, if it is, and the news.
    pub(super) fn finish(mut self) -> (Vec<Option<PinRefusal>>, Vec<LockEvent>) {
        if self.lock.0.mode == LockMode::Pin {
            self.state.listed.insert((Arc::clone(&self.source), self.kind));
            self.state.own.extend(self.fresh.clone());
            if self.lock.0.writes && !self.fresh.is_empty() {
                self.save();
            }
        }
        (self.reasons, self.events)
    }

    /// Writes the new pins.
    fn save(&mut self) {
        let (source, kind, count) = (Arc::clone(&self.source), self.kind, self.fresh.len());
        self.events.push(LockEvent::Pinned { source, kind, count });
        match self.lock.0.files.save(&self.fresh, false) {
            Ok(saved) => {
                // Another process may have pinned another definition first.
                let lost = |place: &PinName| {
                    let first = saved.own.get(place)?;
                    Some(first.digest != self.fresh.get(place)?.digest)
                };
                for (place, reason) in self.places.iter().zip(&mut self.reasons) {
                    if lost(place) == Some(true) {
                        *reason = Some((MissingReason::Changed, self.lock.changed(place)));
                    }
                }
                self.state.take(saved);
            }
            Err(error) if !mem::replace(&mut self.state.has_reported_unsaved, true) => {
                self.events.push(LockEvent::Unsaved(error.to_string().into()));
            }
            Err(_) => {}
        }
    }

    /// Remembers a definition that is not pinned as it is, for a review.
    fn remember(&mut self, place: PinName, verdict: Verdict, after: Value) {
        let before = self.state.own.get(&place).and_then(Pin::value);
        let pinned = match verdict {
            Verdict::Changed(pinned) => Some(pinned),
            Verdict::First | Verdict::Same => None,
        };
        if self.state.changes.len() < MOST_PINS {
            let change = PinChange { place: place.clone(), pinned, before, after };
            self.state.changes.insert(place, change);
        }
    }

    /// Reports a withheld definition, once for each.
    fn announce(&mut self, event: LockEvent, place: PinName, digest: Digest) {
        let reported = &mut self.state.reported;
        if reported.len() < MOST_PINS && reported.insert((place, digest)) {
            self.events.push(event);
        }
    }
}
