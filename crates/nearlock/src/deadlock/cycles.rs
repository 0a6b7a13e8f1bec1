//! The cycles of a graph.

/// Returns the sets of nodes, each of which can be reached from each other node of its set. Of a
/// set with one node, the node has an edge to itself. `edges` has for each node those that it leads
/// to.
pub(super) fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut is_left = vec![true; edges.len()];
    let backwards = reversed(edges);
    // The nodes that are left lead to cycles, and are reached from cycles. Most often there are
    // none.
    trim(edges, &backwards, &mut is_left);
    trim(&backwards, edges, &mut is_left);
    let mut sets = Vec::new();
    for node in 0..edges.len() {
        if is_left[node] {
            let there = reached_from(node, edges, &is_left);
            let back = reached_from(node, &backwards, &is_left);
            let set: Vec<usize> = (0..edges.len()).filter(|other| there[*other] && back[*other]).collect();
            set.iter().for_each(|member| is_left[*member] = false);
            is_left[node] = false;
            sets.extend(Some(set).filter(|set| !set.is_empty()));
        }
    }
    sets
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate() {
        to.iter().for_each(|to| reversed[*to].push(from));
    }
    reversed
}

/// Removes nodes that lead to no node that is left, again and again.
fn trim(edges: &[Vec<usize>], backwards: &[Vec<usize>], is_left: &mut [bool]) {
    let leads_to = |node: &usize| edges[*node].iter().filter(|to| is_left[**to]).count();
    let mut degrees: Vec<usize> = (0..edges.len()).map(|node| leads_to(&node)).collect();
    let mut ends: Vec<usize> =
        (0..edges.len()).filter(|node| is_left[*node] && degrees[*node] == 0).collect();
    while let Some(end) = ends.pop() {
        is_left[end] = false;
        for from in &backwards[end] {
            degrees[*from] -= 1;
            if degrees[*from] == 0 && is_left[*from] {
                ends.push(*from);
            }
        }
    }
}

/// The nodes that are reached from this one by one or more edges.
fn reached_from(node: usize, edges: &[Vec<usize>], is_left: &[bool]) -> Vec<bool> {
    let mut is_reached = vec![false; edges.len()];
    let mut next = vec![node];
    while let Some(node) = next.pop() {
        for to in &edges[node] {
            if is_left[*to] && !is_reached[*to] {
                is_reached[*to] = true;
                next.push(*to);
            }
        }
    }
    is_reached
}

#[cfg(test)]
mod tests {
    use super::cycles;

    #[test]
    fn a_chain_has_no_cycle() {
        assert!(cycles(&[]).is_empty());
        assert!(cycles(&[vec![1], vec![2], vec![]]).is_empty());
        assert!(cycles(&[vec![1, 2], vec![2], vec![]]).is_empty());
    }

    #[test]
    fn each_cycle_is_found_once_without_those_that_lead_to_it() {
        assert_eq!(cycles(&[vec![0]]), [[0]]);
        assert_eq!(cycles(&[vec![1], vec![2], vec![1]]), [[1, 2]]);
        assert_eq!(cycles(&[vec![1], vec![2], vec![0], vec![0], vec![3]]), [[0, 1, 2]]);
        // Two cycles, and a way from one to the other.
        let two = cycles(&[vec![1], vec![0, 2], vec![3], vec![4], vec![3]]);
        assert_eq!(two, [[0, 1], [3, 4]]);
        // Two cycles with a common node are one set.
        assert_eq!(cycles(&[vec![1], vec![0, 2], vec![1]]), [[0, 1, 2]]);
    }

    /// Against the closure of the graph.
    #[test]
    fn random_graphs_have_the_sets_of_their_closure() {
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let nodes = 1 + random(7) as usize;
            let mut edges = vec![Vec::new(); nodes];
            for _ in 0..random(9) {
                edges[random(nodes as u64) as usize].push(random(nodes as u64) as usize);
            }
            let mut reach = vec![vec![false; nodes]; nodes];
            (0..nodes).for_each(|from| edges[from].iter().for_each(|to| reach[from][*to] = true));
            for by in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        reach[from][to] |= reach[from][by] && reach[by][to];
                    }
                }
            }
            let mut expected: Vec<Vec<usize>> = Vec::new();
            for node in (0..nodes).filter(|node| reach[*node][*node]) {
                if !expected.iter().any(|set| set.contains(&node)) {
                    expected.push((0..nodes).filter(|to| reach[node][*to] && reach[*to][node]).collect());
                }
            }
            assert_eq!(cycles(&edges), expected, "{edges:?}");
        }
    }
}
