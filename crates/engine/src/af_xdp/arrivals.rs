//! Who counts the frames that arrive at each port: ports and wishes enter; the kernel's program at the ports where it
//! costs less than sockets, and who counts at each port and why, leave.

use std::fmt;
use std::os::fd::BorrowedFd;

use genetlink::netdev;
use xsk::Copying;

use super::{Counting, Options};
use crate::user_space::Crew;
use crate::xdp::{PortRef, Receiver, in_namespace, indexes};

/// Who counts the frames that arrive at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountedBy {
    /// The kernel's program, in the driver or behind it: frames end there, and no worker has to do with them.
    Program {
        /// Whether it runs in the driver.
        native: bool,
    },
    /// Workers, by sockets, for this reason.
    Sockets(String),
}

impl fmt::Display for CountedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { native: true } => {
                formatter.write_str("arrivals counted by the XDP program in the driver")
            }
            Self::Program { native: false } => {
                formatter.write_str("arrivals counted by the XDP program behind the driver (generic)")
            }
            Self::Sockets(why) => write!(formatter, "arrivals counted by AF_XDP sockets, because {why}"),
        }
    }
}

/// Chooses who counts at each of two ports, and attaches the program where it does. Where that cannot be, sockets
/// remain, which are refused with their own reasons if they cannot be either.
pub fn choose(
    ports: &[&PortRef; 2],
    namespace: Option<BorrowedFd<'_>>,
    options: Options,
    crew: &Crew<'_>,
) -> (Option<Receiver>, [CountedBy; 2]) {
    let sockets = |why: &str| CountedBy::Sockets(why.to_owned());
    let by_sockets = |why: &str| (None, [sockets(why), sockets(why)]);
    if options.counting == Counting::Sockets {
        return by_sockets("they were asked for");
    }
    if !crew.receive_cores.is_empty() {
        return by_sockets("--receive-cores names cores for them");
    }
    let both = ports.map(Clone::clone);
    let workers = crew.send_cores.len();
    let mut program = match Receiver::load(indexes(&both), crew.table.streams(), workers, crew.table.apart) {
        Ok(program) => program,
        Err(error) => return by_sockets(&error.to_string()),
    };
    let counted_by = ports.map(|port| {
        if options.copying != Copying::Always && has_zero_copy(port, namespace) {
            return sockets("the driver has zero copy");
        }
        match program.attach_to(port, namespace) {
            Ok(native) => CountedBy::Program { native },
            Err(error) => CountedBy::Sockets(error.to_string()),
        }
    });
    let counts = counted_by.iter().any(|by| matches!(by, CountedBy::Program { .. }));
    (counts.then_some(program), counted_by)
}

/// Whether the driver says that its sockets need no copies. Kernels before 6.3 do not tell.
fn has_zero_copy(port: &PortRef, namespace: Option<BorrowedFd<'_>>) -> bool {
    let features = in_namespace(namespace, || Ok(netdev::xdp_features(port.index)));
    features.ok().flatten().is_some_and(|features| features & netdev::XSK_ZEROCOPY != 0)
}
