//! Circles of a directed graph.

use std::collections::BTreeSet;

type Edge = (usize, usize);

/// Groups of more than `size` nodes that all lead to each other. Returns the edges within each
/// group.
pub(super) fn larger_than(size: usize, edges: &BTreeSet<Edge>) -> Vec<Vec<Edge>> {
    let back: BTreeSet<_> = edges.iter().map(|(from, to)| (*to, *from)).collect();
    let mut left: BTreeSet<_> = edges.iter().map(|(from, _)| *from).collect();
    let mut circles = Vec::new();
    while let Some(node) = left.first().copied() {
        let group = &reached(node, edges) & &reached(node, &back);
        left = &left - &group;
        if group.len() > size {
            let within = edges.iter().filter(|(from, to)| group.contains(from) && group.contains(to));
            circles.push(within.copied().collect());
        }
    }
    circles
}

/// The nodes that this node leads to, itself included.
fn reached(node: usize, edges: &BTreeSet<Edge>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([node]);
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let next = edges.range((node, 0)..=(node, usize::MAX)).map(|(_, to)| *to);
        open.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_have_all_their_edges_and_no_others() {
        let edges = BTreeSet::from([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (5, 6), (6, 5)]);
        let three = vec![(1, 2), (2, 3), (3, 1)];
        assert_eq!(larger_than(1, &edges), [three.clone(), vec![(5, 6), (6, 5)]]);
        assert_eq!(larger_than(2, &edges), [three]);
        assert_eq!(larger_than(3, &edges), [[]; 0]);
    }

    #[test]
    fn circles_that_meet_are_one() {
        let star = BTreeSet::from([(0, 1), (1, 0), (0, 2), (2, 0)]);
        assert_eq!(larger_than(2, &star), [Vec::from_iter(star.clone())]);
    }
}
