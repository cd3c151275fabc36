//! What VPP says: text of its command line enters, counters of interfaces and nodes leave.

use lab::InterfaceCounters;
use results::record::{NodeRuntime, NodeRuntimes};

/// What `interface` counted, by `show interface` and `show errors`; it is called `name` in the result.
///
/// What a full ring of the tester's refuses is among the packets that the interface sent, and an error of the
/// node that sends.
pub fn interface(shown: &str, errors: &str, interface: &str, name: String) -> InterfaceCounters {
    // Only what is not zero is shown: a counter on the interface's line, the others below, and so on.
    let mut ours = shown.lines().skip_while(|line| first_word(line) != interface);
    let head = ours.next().into_iter();
    let block: Vec<&str> = head.chain(ours.take_while(|line| line.starts_with(' '))).collect();
    let counter = |label: &str| {
        let counters = block.iter().filter_map(|line| line.split_once(label)?.1.trim().parse::<u64>().ok());
        counters.sum::<u64>()
    };
    let refused = refused(errors, &format!("{interface}-tx"));
    InterfaceCounters {
        name,
        received: counter("rx packets"),
        receive_dropped: counter("rx-miss"),
        sent: counter("tx packets").saturating_sub(refused),
        send_dropped: refused + counter("tx-error"),
    }
}

/// What the node `node` says in `show errors` that it could not send, on all threads.
fn refused(errors: &str, node: &str) -> u64 {
    let count = |line: &str| {
        let mut words = line.split_whitespace();
        let count: u64 = words.next()?.parse().ok()?;
        (words.next()? == node).then_some(count)
    };
    errors.lines().filter_map(count).sum()
}

fn first_word(line: &str) -> &str {
    if line.starts_with(' ') { "" } else { line.split_whitespace().next().unwrap_or_default() }
}

/// What `show runtime` says: on each thread, the nodes that were called.
///
/// Names are cut to 30 characters, after which the two nodes of an interface that has a long one are the same: the first of
/// them is its output, the second its tx, in the alphabet's order.
#[must_use]
pub fn runtime(shown: &str) -> NodeRuntimes {
    // With one thread alone, it is not named.
    let mut thread = "vpp_main".to_owned();
    let mut nodes = NodeRuntimes::new();
    for line in shown.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["Thread", _, name, ..] = words.as_slice() {
            thread = (*name).to_owned();
        } else if let Some((name, did)) = node(&words) {
            let key = |ending: &str| (thread.clone(), format!("{name}{ending}"));
            if let Some(first) = nodes.remove(&key("")) {
                nodes.insert(key("-output"), first);
                nodes.insert(key("-tx"), did);
            } else {
                nodes.insert(key(""), did);
            }
        }
    }
    nodes
}

/// A row: name, state, calls, vectors, suspends, clocks, vectors a call. The state may have two words, or none
/// of its own behind a long name.
fn node<'a>(words: &[&'a str]) -> Option<(&'a str, NodeRuntime)> {
    let [name, .., calls, vectors, suspends, clocks, per_call] = words else { return None };
    per_call.parse::<f64>().ok()?;
    Some((
        name,
        NodeRuntime {
            calls: calls.parse().ok()?,
            vectors: vectors.parse().ok()?,
            suspends: suspends.parse().ok()?,
            clocks: clocks.parse().ok()?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERFACES: &str = "\
              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count     \r
local0                            0     down          0/0/0/0       \r
memif1/0                          1      up          9000/0/0/0     rx packets               5000000\r
                                                                    rx bytes               300000000\r
                                                                    tx packets                   120\r
                                                                    tx bytes                    7200\r
                                                                    drops                          3\r
                                                                    ip4                      5000000\r
memif1/01                         3      up          9000/0/0/0     rx packets                     1\r
memif2/0                          2      up          9000/0/0/0     tx packets               4999997\r
                                                                    tx bytes               299999820\r
                                                                    tx-error                       2\r
";
    const ERRORS: &str =
        "   Count                  Node                              Reason               Severity\r
         3             ip4-input                ip4 ttl <= 1                                 error   \r
       100            memif2/0-tx               no free tx slots                             error   \r
        50            memif2/0-tx               no free tx slots                             error   \r
         9            memif1/0-output           interface is down                            error   \r
";

    #[test]
    fn an_interface_s_counters_are_its_own_and_what_it_could_not_send_is_told() {
        let [zero, one] =
            ["memif1/0", "memif2/0"].map(|name| interface(INTERFACES, ERRORS, name, String::new()));
        assert_eq!(
            (zero.received, zero.receive_dropped, zero.sent, zero.send_dropped),
            (5_000_000, 0, 120, 0)
        );
        assert_eq!((one.received, one.sent, one.send_dropped), (0, 4_999_847, 152));
        let none = interface("memif1/0   1   up   9000/0/0/0\n", "", "memif1/0", String::new());
        assert_eq!((none.received, none.sent), (0, 0), "nothing is shown before the first frame");
    }

    const RUNTIME: &str = "\
Thread 0 vpp_main (lcore 0)\r
Time 3.8, 10 sec internal node vector rate 0.00 loops/sec 1877.72\r
  vector rates in 0.0000e0, out 0.0000e0, drop 0.0000e0, punt 0.0000e0\r
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  \r
api-rx-from-ring                any wait                 0               0              52          8.96e4            0.00\r
memif-process                  event wait                0               0               2          1.08e3            0.00\r
    events pending, \r
unix-epoll-input                 polling              7037               0               0          1.25e6            0.00\r
---------------\r
Thread 1 vpp_wk_0 (lcore 1)\r
Time 3.8, 10 sec internal node vector rate 249.02 loops/sec 12361.21\r
  vector rates in 3.0852e6, out 3.0852e6, drop 0.0000e0, punt 0.0000e0\r
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  \r
acl-plugin-fa-worker-cleaner-pinterrupt wa               7               0               0          1.39e3            0.00\r
ip4-lookup                       active              47106        11721472               0          2.91e1          248.83\r
memif-input                      polling             61406        11721472               0          4.64e1          190.88\r
";

    #[test]
    fn nodes_are_told_apart_by_thread() {
        let nodes = runtime(RUNTIME);
        let told = |thread: &str, name: &str| nodes[&(thread.to_owned(), name.to_owned())];
        assert_eq!(nodes.len(), 6, "{nodes:?}");
        assert_eq!(
            told("vpp_wk_0", "ip4-lookup"),
            NodeRuntime { calls: 47_106, vectors: 11_721_472, suspends: 0, clocks: 29.1 }
        );
        assert_eq!(told("vpp_main", "api-rx-from-ring").suspends, 52);
        assert_eq!(told("vpp_wk_0", "acl-plugin-fa-worker-cleaner-pinterrupt").calls, 7);
    }

    /// Recorded by the author of "VPP on FreeBSD, part 2".
    const RECORDED: &str = include_str!("../../../../../tests/remote/show-runtime.txt");

    #[test]
    fn nodes_of_interfaces_whose_long_names_are_cut_are_told_apart() {
        let nodes = runtime(RECORDED);
        assert_eq!(nodes.len(), 3 * 9, "{nodes:?}");
        let of = |name: &str| nodes[&("vpp_wk_0".to_owned(), name.to_owned())];
        let interface = "TwentyFiveGigabitEthernet6/0/1";
        assert_eq!(of(&format!("{interface}-output")).clocks, 14.5);
        assert_eq!(of(&format!("{interface}-tx")).clocks, 134.0);
        assert_eq!(of("dpdk-input").vectors, 413_802_792);
    }

    #[test]
    fn with_one_thread_alone_the_nodes_are_the_main_thread_s() {
        let rows: Vec<&str> = RUNTIME.lines().filter(|line| !line.starts_with("Thread")).collect();
        let nodes = runtime(&rows.join("\n").replace("Clocks  ", "Packet-Clocks"));
        assert!(nodes.keys().all(|(thread, _)| thread == "vpp_main") && nodes.len() == 6, "{nodes:?}");
    }
}
