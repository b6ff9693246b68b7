//! A search finds the words of users and models, in the owner's sessions only.

use toolcrib_core::{
    Message, SessionOwner, SessionRecord, SessionSearch, SessionStore, SessionStoreError,
};

use super::{LONG, StoreViolations, began, ended, new, owner, write};

fn words(words: &[&str]) -> SessionSearch {
    let words = words.iter().map(|word| (*word).into()).collect();
    SessionSearch { words, without: None, limit: 10 }
}

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let (mine, other) = (owner(), owner());
    let written = |owner: &SessionOwner, name: &str, said: &str, answer: &str| {
        let info = store.create(&new(owner, Some(name)))?;
        let lease = store.acquire(owner, &info.id, LONG)?;
        let answer = Message::Assistant { text: answer.into(), calls: [].into(), vendor: None };
        let said = SessionRecord::Message(Message::user(said));
        write(store, &lease, &[began(), said, SessionRecord::Message(answer), ended()])?;
        store.release(&lease)?;
        Ok::<_, SessionStoreError>(info.id)
    };
    let garden = written(&mine, "garden", "Which roses like shade?", "Few: \"Alba\" roses do.")?;
    written(
        &mine,
        "kitchen",
        "How long do eggs boil?",
        "Seven minutes; roses have no part in it.",
    )?;
    written(&other, "theirs", "Which roses like shade?", "None of them.")?;

    let found = store.search(&mine, &words(&["shade", "ROSES"]))?;
    let is_it = found.len() == 1
        && found.iter().all(|one| {
            one.session == garden
                && one.name.as_deref() == Some("garden")
                && (one.turn, &*one.role) == (1, "user")
                && one.excerpt.contains("roses like shade")
                && one.at_ms > 0
        });
    broken.unless(is_it, "a search must find the messages with all words");
    let all = store.search(&mine, &words(&["roses"]))?;
    broken.unless(all.len() == 3, "a search must find what users and models have written");
    let few = store.search(&mine, &SessionSearch { limit: 2, ..words(&["roses"]) })?;
    broken.unless(few.len() == 2, "a search must keep its limit");
    for without in ["garden", &*garden] {
        let search = SessionSearch { without: Some(without.into()), ..words(&["roses"]) };
        let rest = store.search(&mine, &search)?;
        let is_left_out = rest.len() == 1 && rest.iter().all(|one| one.session != garden);
        broken.unless(is_left_out, "a session that is left out must not be found");
    }
    for nothing in [&["rose"][..], &["eggs", "shade"], &[], &["NOT", "roses\" OR \"eggs"]] {
        let found = store.search(&mine, &words(nothing))?;
        broken.unless(found.is_empty(), &format!("a search must not find {nothing:?}"));
    }
    let theirs = store.search(&SessionOwner::default(), &words(&["roses", "shade"]))?;
    let is_isolated = theirs.iter().all(|one| one.session != garden);
    broken.unless(is_isolated, "a search must not find sessions of other owners");
    store.remove(&mine, &garden)?;
    let gone = store.search(&mine, &words(&["shade"]))?;
    broken.unless(gone.is_empty(), "a removed session must not be found");
    Ok(())
}
