//! The graph drawn: nodes and where their packets may go enter, a drawing leaves.

use std::fmt::Write;

use super::Node;

/// For Graphviz (`dot -Tsvg`). Ways to error-drop, which nearly all nodes have, are dotted.
#[must_use]
pub fn dot() -> String {
    let mut text = "digraph fastpath {\n  rankdir=LR\n  node [shape=box]\n".to_owned();
    for node in Node::ALL {
        for next in node.next() {
            let style = if *next == Node::ErrorDrop { " [style=dotted]" } else { "" };
            let _ = writeln!(text, "  \"{}\" -> \"{}\"{style}", node.name(), next.name());
        }
    }
    text.push_str("}\n");
    text
}

/// For people: a line for each node with those that its packets may go to.
#[must_use]
pub fn text() -> String {
    let width = Node::ALL.iter().map(|node| node.name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for node in Node::ALL.iter().filter(|node| !node.next().is_empty()) {
        let next: Vec<_> = node.next().iter().map(|next| next.name()).collect();
        let _ = writeln!(text, "{:width$} -> {}", node.name(), next.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_drawn() {
        let ways = Node::ALL.iter().map(|node| node.next().len()).sum::<usize>();
        let (dot, text) = (dot(), text());
        assert_eq!(dot.matches(" -> ").count(), ways);
        assert_eq!(text.matches([',', '>']).count(), ways);
        assert!(
            dot.contains("  \"l2-output\" -> \"tx\"\n  \"l2-output\" -> \"error-drop\" [style=dotted]\n")
        );
        assert!(
            text.lines().any(|line| line.starts_with("l2-output ") && line.ends_with(" -> tx, error-drop"))
        );
    }

    #[test]
    fn every_node_can_be_reached() {
        let mut reached = vec![Node::DeviceInput];
        let mut at = 0;
        while let Some(node) = reached.get(at) {
            let further: Vec<_> =
                node.next().iter().filter(|next| !reached.contains(next)).copied().collect();
            reached.extend(further);
            at += 1;
        }
        reached.sort_unstable();
        reached.dedup();
        assert_eq!(reached, Node::ALL);
    }
}
