//! What the nodes of a device did that is a graph of them: a row for each that was given packets.

use results::record::Node;
use wire::human::count;

use super::Look;
use super::columns::{Align, Columns, Text};

/// The rows, and what they are; nothing for other devices.
pub fn table(nodes: &[Node], colour: bool) -> String {
    let busy: Vec<_> = nodes.iter().filter_map(|node| Some((node, node.meanwhile()?))).collect();
    let mut busy = busy.into_iter().filter(|(_, did)| did.vectors > 0).peekable();
    if busy.peek().is_none() {
        return String::new();
    }
    let mut columns = Columns::new([Align::Right; 4]);
    let head = ["packets", "calls", "packets a call", "clocks a packet"];
    columns
        .row(Text::new("  nodes of the device", Look::Faint), head.map(|name| Text::new(name, Look::Faint)));
    for (node, did) in busy {
        let figures = [
            count(did.vectors),
            count(did.calls),
            format!("{:.1}", did.vectors_per_call()),
            format!("{:.0}", did.clocks),
        ];
        let name = format!("  {} {}", node.thread, node.name);
        columns.row(Text::plain(&name), figures.map(|figure| Text::plain(&figure)));
    }
    columns.render(colour)
}

#[cfg(test)]
mod tests {
    use results::record::NodeRuntime;

    use super::*;

    #[test]
    fn nodes_that_were_given_packets_have_rows() {
        let node = |name: &str, vectors| Node {
            thread: "vpp_wk_0".to_owned(),
            name: name.to_owned(),
            before: NodeRuntime::default(),
            after: NodeRuntime { calls: 10, vectors, suspends: 0, clocks: 20.4 },
        };
        let text = table(&[node("ip4-lookup", 2500), node("unix-epoll-input", 0)], false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[1], ["vpp_wk_0", "ip4-lookup", "2,500", "10", "250.0", "20"]);
        assert_eq!(table(&[node("unix-epoll-input", 0)], false), "");
    }
}
