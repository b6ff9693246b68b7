//! The imports between the files of a crate, and their circles.

use std::collections::{BTreeMap, BTreeSet};

/// Two files of which the first uses names of the second.
pub(super) type Edge = (String, String);

/// Which file uses which names of which other file.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) files: BTreeSet<String>,
    pub(super) edges: BTreeMap<Edge, BTreeSet<String>>,
}

impl Graph {
    /// The files of the circles, the largest first. Each file of a circle uses each other one, directly or
    /// through others; in terms of graphs, it is a strongly connected component.
    pub(super) fn circles(&self) -> Vec<BTreeSet<&str>> {
        self.circles_without(&BTreeSet::new())
    }

    /// The number of files in the largest circle; 1 if there is none.
    pub(super) fn largest(&self) -> usize {
        size(&self.circles())
    }

    /// Imports without which no circle is larger than `most`, and whether each of them suffices alone. If none
    /// does, all imports of few files are returned.
    pub(super) fn cuts(&self, most: usize) -> (Vec<&Edge>, bool) {
        let circles = self.circles();
        let is_within = |(from, to): &Edge| {
            circles.iter().any(|files| files.contains(&**from) && files.contains(&**to))
        };
        let within: Vec<&Edge> = self.edges.keys().filter(|edge| is_within(edge)).collect();
        let alone = within.iter().map(|edge| (size(&self.circles_without(&[*edge].into())), *edge));
        let alone: Vec<_> = alone.filter(|(left, _)| *left <= most).collect();
        // A new import is among those without which the circle has exactly its earlier size.
        if let Some(closest) = alone.iter().map(|(left, _)| *left).max() {
            let alone = alone.into_iter().filter(|(left, _)| *left == closest);
            return (alone.map(|(_, edge)| edge).collect(), true);
        }
        let mut removed = BTreeSet::new();
        while size(&self.circles_without(&removed)) > most {
            let of_file = |file: &String| {
                let mut more = removed.clone();
                more.extend(within.iter().copied().filter(|(from, _)| from == file));
                more
            };
            let sets = self.files.iter().map(of_file).filter(|more| more.len() > removed.len());
            let Some(best) =
                sets.min_by_key(|more| (size(&self.circles_without(more)), more.len()))
            else {
                break;
            };
            removed = best;
        }
        (removed.into_iter().collect(), false)
    }

    /// An import in words.
    pub(super) fn line(&self, edge: &Edge) -> String {
        let names = self.edges.get(edge).into_iter().flatten();
        let names: Vec<&str> = names.map(String::as_str).collect();
        format!("{} uses {}: {}", edge.0, edge.1, names.join(", "))
    }

    /// Tarjan's algorithm.
    fn circles_without(&self, removed: &BTreeSet<&Edge>) -> Vec<BTreeSet<&str>> {
        let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for edge in self.edges.keys().filter(|edge| !removed.contains(edge)) {
            uses.entry(&edge.0).or_default().push(&edge.1);
        }
        let mut search =
            Search { uses: &uses, numbers: BTreeMap::new(), open: Vec::new(), circles: Vec::new() };
        for file in &self.files {
            if !search.numbers.contains_key(&**file) {
                search.visit(file);
            }
        }
        search.circles.sort_by_key(|files| std::cmp::Reverse(files.len()));
        search.circles
    }
}

fn size(circles: &[BTreeSet<&str>]) -> usize {
    circles.first().map_or(1, BTreeSet::len)
}

struct Search<'a, 'b> {
    uses: &'b BTreeMap<&'a str, Vec<&'a str>>,
    /// In the order of the visits.
    numbers: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    circles: Vec<BTreeSet<&'a str>>,
}

impl<'a> Search<'a, '_> {
    /// Visits a file and all that it uses; returns the lowest number that is reached.
    fn visit(&mut self, file: &'a str) -> usize {
        let number = self.numbers.len();
        self.numbers.insert(file, number);
        let position = self.open.len();
        self.open.push(file);
        let mut lowest = number;
        for used in self.uses.get(file).into_iter().flatten().copied() {
            match self.numbers.get(used) {
                None => lowest = lowest.min(self.visit(used)),
                Some(other) if self.open.contains(&used) => lowest = lowest.min(*other),
                Some(_) => {}
            }
        }
        if lowest == number {
            let circle: BTreeSet<&str> = self.open.drain(position..).collect();
            if circle.len() > 1 {
                self.circles.push(circle);
            }
        }
        lowest
    }
}
