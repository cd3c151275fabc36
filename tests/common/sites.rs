//! What stands between two real ports, made with `ip`, `sysctl` and `ethtool` alone.

use super::namespace::Namespace;

/// The MAC addresses of `eth1` and `eth2`.
pub const PORT_MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 2], [2, 0, 0, 0, 2, 2]];

/// A tester's namespace with `eth1` and `eth2`, whose other ends `far1` and `far2` are elsewhere.
pub struct Site {
    pub tester: Namespace,
    pub far: Namespace,
}

impl Site {
    /// Two cables that end in nothing: `far1` and `far2` receive frames and have no use for them.
    /// A veth transmits redirected frames only if its other end has NAPI, which GRO switches on;
    /// it looks for that when it goes up itself, hence the order.
    pub fn cables() -> Self {
        let site = Self { tester: Namespace::new(), far: Namespace::new() };
        let far = site.far.path();
        for number in [1, 2] {
            site.tester.run(&format!(
                "ip link add eth{number} address 02:00:00:00:0{number}:02 type veth \
                     peer name far{number} address 02:00:00:00:0{number}:01 netns {far}"
            ));
            site.far.run(&format!(
                "sysctl -qw net.ipv6.conf.far{number}.accept_dad=0
                 ethtool -K far{number} rx off tx off gro on
                 ip link set far{number} up"
            ));
            site.tester.run(&format!(
                "sysctl -qw net.ipv6.conf.eth{number}.accept_dad=0
                 ethtool -K eth{number} rx off tx off
                 ip link set eth{number} up"
            ));
        }
        site
    }

    /// A router between the ports: the addresses and routes that the README asks for.
    pub fn router() -> Self {
        let site = Self::cables();
        for number in [1, 2] {
            site.tester.run(&format!(
                "ip address add 100.65.{number}.2/24 dev eth{number}
                 ip address add 2001:2:0:{number}::2/64 dev eth{number} nodad"
            ));
            site.far.run(&format!(
                "ip address add 100.65.{number}.1/24 dev far{number}
                 ip address add 2001:2:0:{number}::1/64 dev far{number} nodad"
            ));
        }
        site.far.run(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
             ip route add 16.0.0.0/8 via 100.65.1.2
             ip route add 48.0.0.0/8 via 100.65.2.2
             ip route add 2001:2:0:16::/64 via 2001:2:0:1::2
             ip route add 2001:2:0:48::/64 via 2001:2:0:2::2",
        );
        site
    }

    /// A bridge between the ports.
    pub fn bridge() -> Self {
        let site = Self::cables();
        site.far.run(
            "ip link add bridge type bridge
             ip link set far1 master bridge
             ip link set far2 master bridge
             ip link set bridge up",
        );
        site
    }
}
