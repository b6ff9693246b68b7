//! Words that people, planners and authors of tools use for the same thing.
//!
//! Only general words: the actions of tools and their usual objects. A word of one trade belongs in the
//! description of its tool.

use std::{collections::HashMap, sync::LazyLock};

use crate::stem::stem;

/// The words of a line are one concept. A word may have several concepts.
const CONCEPTS: &str = "\
    get fetch retrieve show read view display obtain load lookup give tell see
    list enumerate show overview all every
    search find lookup look query locate discover seek
    create add make new insert generate write put
    create open start begin launch setup initiate
    create register submit file raise report
    delete remove erase drop clear discard trash purge wipe rid empty destroy
    update change edit modify set adjust alter patch revise rewrite fix correct
    rename title name call
    replace substitute swap overwrite
    send post publish deliver share announce notify tell
    reply respond answer response
    write compose draft
    cancel abort stop halt terminate end kill interrupt
    run execute start launch trigger invoke kick play call
    retry rerun again repeat restart
    pause suspend freeze
    resume continue unpause
    close resolve finish complete done finalize
    open unlock
    copy duplicate clone replicate fork
    move transfer relocate migrate shift
    merge combine join unite concatenate
    split divide separate
    download export save store
    upload import attach
    save store keep remember record
    check verify validate test inspect lint valid
    analyze analysis audit evaluate assess inspect examine
    compare diff difference versus comparison
    calculate compute determine calculation calculator
    estimate predict forecast approximate
    count total sum number amount quantity
    average mean
    maximum max highest largest greatest
    minimum min lowest smallest
    convert transform translate conversion exchange
    translate translation language
    summarize summary summarise digest
    recommend recommendation suggest suggestion propose
    book reserve reservation booking appointment
    schedule plan arrange calendar
    buy purchase order acquire shop
    sell sale trade
    pay payment charge bill invoice receipt
    refund reimburse
    deposit fund
    withdraw withdrawal
    approve accept confirm authorize approval
    reject decline deny refuse dismiss
    assign assignee assigned responsible owner
    subscribe subscription follow follower watch watcher
    track monitor watch observe
    enable activate switch turn
    disable deactivate switch turn
    mute silence suppress
    block restrict restriction protect lock limit
    login authenticate authentication sign auth signin
    logout signout
    press push click tap
    navigate navigation route direction
    visit browse go navigate
    enter type fill input
    hide conceal
    sort order rank
    filter select choose pick
    rate rating review score
    play listen stream
    repository repo codebase
    document doc article page
    configuration config setting settings preference option
    message mail email msg chat
    folder directory dir
    user member person people who
    user account profile
    contact people person
    friend follower
    customer client
    employee staff worker colleague
    comment note remark reply annotation
    issue ticket bug defect card case
    task todo reminder
    picture image photo
    picture screenshot capture
    video clip film
    event meeting appointment
    database db
    organization organisation org company business
    permission permissions access right restriction role
    log logs history
    history past previous earlier
    recent latest last newest
    price cost fee fare rate expensive cheap
    budget spending expense
    weather forecast temperature climate
    place location address where
    city town
    near nearby nearest closest close around
    distance far length
    duration long time
    date day when time
    money fund cash balance currency
    stock share equity ticker
    spreadsheet sheet table
    file document
    tag label
    status state condition
    version release revision
    error failure exception crash fail
    metric metrics statistic statistics stats
    environment env
    information info detail details about
    identifier id
    list collection
    film movie cinema
    song track music
    book novel
    game match
    news headline article
    recipe meal dish food
    restaurant eat food dining
    flight plane airline airfare
    trip travel journey tour vacation
    car vehicle automobile auto
    hotel accommodation lodging
    shop store
    product item goods
    doctor physician medical
    medicine drug medication
    disease illness condition
    exercise workout fitness
    school university education course
    job work career position
    law legal
    house home property estate
    phone telephone mobile
    application app
    website web page site url link
    deploy deployment rollout
    outage incident
    alarm alert notification
    vacation holiday
    password secret credential
    team group
    part portion percentage percent
    size dimension
    quote saying
    joke fun";

/// The concepts of each stemmed word.
static OF_WORD: LazyLock<HashMap<String, Vec<u16>>> = LazyLock::new(|| {
    let mut of_word: HashMap<String, Vec<u16>> = HashMap::new();
    for (concept, line) in (0..).zip(CONCEPTS.lines()) {
        for word in line.split_whitespace() {
            let concepts = of_word.entry(stem(word.to_owned())).or_default();
            if !concepts.contains(&concept) {
                concepts.push(concept);
            }
        }
    }
    of_word
});

/// The concepts of a stemmed word.
pub(crate) fn concepts(word: &str) -> &'static [u16] {
    OF_WORD.get(word).map_or(&[], |concepts| concepts)
}
