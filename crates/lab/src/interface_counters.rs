//! What the kernel counted at interfaces: names enter, their packet counters leave. They are
//! independent of our own, and tell where frames went that ours miss.

use std::fs;

use crate::error::{Error, Needs, Result};

/// Packets at one interface since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// The interface.
    pub name: String,
    /// Packets that came, as the driver counts them.
    pub received: u64,
    /// Packets that came and were dropped for want of room.
    pub receive_dropped: u64,
    /// Packets that left.
    pub sent: u64,
    /// Packets that were to leave and were dropped, like those a veth's full ring refuses.
    pub send_dropped: u64,
}

impl InterfaceCounters {
    /// What was counted since `earlier`, of the same interface.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name.clone(),
            received: self.received.saturating_sub(earlier.received),
            receive_dropped: self.receive_dropped.saturating_sub(earlier.receive_dropped),
            sent: self.sent.saturating_sub(earlier.sent),
            send_dropped: self.send_dropped.saturating_sub(earlier.send_dropped),
        }
    }

    /// Those of a tap with a program that counts what arrives and keeps it, which the kernel's driver calls dropped (`tun_xdp_act`).
    #[must_use]
    pub(crate) fn of_tap(self) -> Self {
        Self { received: self.received + self.receive_dropped, receive_dropped: 0, ..self }
    }
}

/// The counters of the interfaces `names` in the calling thread's network namespace.
///
/// # Errors
/// [`Error`], when one of them is not there, or the kernel does not say.
pub fn read<const N: usize>(names: [&str; N]) -> Result<[InterfaceCounters; N]> {
    let path = "/proc/thread-self/net/dev";
    let text = fs::read_to_string(path).map_err(|cause| {
        Error::kernel(format!("cannot read {path}"), cause, Needs::NetAdmin, "Is /proc mounted?")
    })?;
    let missing = |name: &str| Error::Unexpected(format!("the interface {name} is not counted any more"));
    let mut counters = [const { None }; N];
    for (counters, name) in counters.iter_mut().zip(names) {
        *counters = Some(find(&text, name).ok_or_else(|| missing(name))?);
    }
    Ok(counters.map(Option::unwrap_or_default))
}

/// The line of `name` in a text like `/proc/net/dev` (proc(5)).
fn find(text: &str, name: &str) -> Option<InterfaceCounters> {
    let line = text.lines().find_map(|line| {
        let (found, numbers) = line.split_once(':')?;
        (found.trim() == name).then_some(numbers)
    })?;
    let numbers: Vec<u64> = line.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    let number = |at: usize| numbers.get(at).copied();
    Some(InterfaceCounters {
        name: name.to_owned(),
        received: number(1)?,
        receive_dropped: number(3)?,
        sent: number(9)?,
        send_dropped: number(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       1    0    0    0     0          0         0        0       2    0    0    0     0       0          0
 port0: 6000000  100000    0    7    0     0          0         0 12000000  200000    0   42    0     0       0          0
";

    #[test]
    fn a_line_is_found_by_its_name() {
        let port = InterfaceCounters {
            name: "port0".to_owned(),
            received: 100_000,
            receive_dropped: 7,
            sent: 200_000,
            send_dropped: 42,
        };
        assert_eq!(find(TEXT, "port0"), Some(port.clone()));
        assert_eq!(find(TEXT, "port1"), None);
        assert_eq!(find("port0: 1 2 3", "port0"), None);
        let earlier = InterfaceCounters { sent: 150_000, ..port.clone() };
        assert_eq!(port.since(&earlier).sent, 50_000);
    }

    #[test]
    fn this_machine_has_a_loopback() {
        assert!(read(["lo"]).is_ok());
        assert!(read(["no-such-interface"]).is_err());
    }
}
