//! Searches the weights over all sets of needs: `cargo xtask search-bench --choose`.
//!
//! For each catalog it also searches them without that catalog, and prints what they reach on it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a program for developers: it reads files, prints, and may stop at an error"
)]

mod corpora;

use toolcrib_search::Weights;

use self::corpora::{Catalog, Figures, Outcome};

/// Steps of each search.
const STEPS: usize = 200;

/// Larger sets are thinned to about this many needs.
const NEEDS: usize = 300;

/// The number of weights, and which of them are between 0 and 1.
const WEIGHTS: usize = 12;
const DISCOUNT: usize = 6;

fn main() -> Outcome<()> {
    let catalogs = corpora::all()?;
    for left_out in &catalogs {
        let others: Vec<&Catalog> =
            catalogs.iter().filter(|catalog| catalog.name != left_out.name).collect();
        let weights = choose(&others);
        let (present, of_others) =
            (left_out.search(Weights::CHOSEN, 1), left_out.search(weights, 1));
        for ((set, present), of_others) in left_out.sets.iter().zip(present).zip(of_others) {
            println!(
                "{}, {}: R@5 {:.3} with the present weights, {:.3} with those of the other catalogs",
                left_out.name, set.name, present.any.recall[2], of_others.any.recall[2]
            );
        }
    }
    println!("{:#?}", choose(&catalogs.iter().collect::<Vec<_>>()));
    Ok(())
}

/// What is maximized: the mean over the catalogs of recall at 5, and half as much the order within.
fn goal(catalogs: &[&Catalog], weights: Weights) -> f64 {
    let of_catalog = |catalog: &&Catalog| {
        let most = catalog.sets.iter().map(|set| set.needs.len()).max().unwrap_or_default();
        let figures = catalog.search(weights, most.div_ceil(NEEDS));
        let of_set = |Figures { any, .. }: &Figures| any.recall[2] + 0.5 * any.gain;
        figures.iter().map(of_set).sum::<f64>() / figures.len() as f64
    };
    catalogs.iter().map(of_catalog).sum::<f64>() / catalogs.len() as f64
}

/// The start of each search: no weight of the texts is known to matter more than another.
fn start() -> Weights {
    let mut weights = Weights::CHOSEN;
    weights.fields = [2.0, 1.0, 2.0, 1.0, 1.0, 1.0];
    (weights.discount, weights.saturation, weights.rarity) = (0.5, 1.0, 1.0);
    (weights.trigrams, weights.synonyms, weights.sentences) = (0.1, 0.3, 0.2);
    weights
}

/// Searches the weights: small random steps from the [`start`], each kept if it improves the goal.
/// The steps are the same in each run.
fn choose(catalogs: &[&Catalog]) -> Weights {
    let mut random = 1_u64;
    // Numerical Recipes' generator; the high bits are good enough for steps.
    let mut share = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 40) as f32 / (1_u32 << 24) as f32
    };
    let mut best = (goal(catalogs, start()), start());
    for _ in 0..STEPS {
        let mut weights = best.1;
        for _ in 0..1 + (share() * 3.0) as usize {
            let number = ((share() * WEIGHTS as f32) as usize).min(WEIGHTS - 1);
            let value = weight(&mut weights, number);
            *value = (*value + 0.02) * (0.5 + 1.5 * share());
            if number == DISCOUNT {
                *value = value.min(1.0);
            }
        }
        let reached = goal(catalogs, weights);
        if reached > best.0 {
            best = (reached, weights);
        }
    }
    best.1
}

fn weight(weights: &mut Weights, number: usize) -> &mut f32 {
    match number {
        0..6 => &mut weights.fields[number],
        6 => &mut weights.discount,
        7 => &mut weights.saturation,
        8 => &mut weights.trigrams,
        9 => &mut weights.synonyms,
        10 => &mut weights.sentences,
        _ => &mut weights.rarity,
    }
}
