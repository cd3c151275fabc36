//! What the nodes of a device did that is a graph of them: a row for each that was given packets, of a run
//! or load by load of a bench.

use results::record::Node;
use wire::human::count;

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::nodes::{Table, in_order, label};

/// The rows, and what they are; nothing for other devices.
pub fn table(nodes: &[Node], colour: bool) -> String {
    let mut busy: Vec<_> = nodes.iter().filter_map(|node| Some((node, node.meanwhile()?))).collect();
    busy.sort_by(|(one, _), (other, _)| in_order(one).cmp(&in_order(other)));
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
        let name = format!("  {}", label(node));
        columns.row(Text::plain(&name), figures.map(|figure| Text::plain(&figure)));
    }
    columns.render(colour)
}

/// What a packet costs each node, load by load.
pub fn by_load(table: &Table, colour: bool) -> String {
    let mut columns = Columns::new(table.head.iter().map(|_| Align::Right));
    let faint = |text: &str| Text::new(text, Look::Faint);
    let title = format!("clocks by node, {}", table.device);
    columns.row(Text::new(&title, Look::Title), table.head.iter().map(|(name, _)| Text::plain(name)));
    columns.row(faint("  forwarded"), table.head.iter().map(|(_, forwarded)| faint(forwarded)));
    for line in table.nodes.iter().chain(&table.sums) {
        let name = Text::plain(&format!("  {}", line.name));
        columns.row(name, line.figures.iter().map(|figure| Text::plain(&figure.text)));
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
        let text = table(&[node("memif-input", 2500)], false);
        assert!(text.contains("vpp_wk_0 memif-input (with idle polling)"), "{text}");
    }
}
