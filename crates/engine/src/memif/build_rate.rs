//! How fast frames are built in the ring of a memif: cores enter, what each of them built and a sink at the
//! other end took out leaves.

use std::time::Duration;

use memif::{Role, Socket};
use traffic::FrameTable;

use super::{Anyone, End, open};
use crate::Error;
use crate::build_rate::Built;
use crate::user_space::build_rate::{send_in_turns, send_to_sinks};
use crate::user_space::{longest, socket_name};

/// Builds frames as [`crate::build_rate::in_memory`], on each of `cores` in a ring of one memif. Its other end
/// counts them and gives their places back: on as many `sinks`, or, without any, on the same cores in turns
/// with building. No file is made.
///
/// # Errors
/// When the two ends cannot be opened, or a core not used; when there are some sinks, but fewer than cores.
pub fn through_memif(
    table: &FrameTable,
    cores: &[usize],
    sinks: &[usize],
    duration: Duration,
) -> Result<Vec<Built>, Error> {
    let socket = Socket::Abstract(socket_name());
    let end = |name: &str, role| End {
        name: name.to_owned(),
        role,
        socket: socket.clone(),
        id: 0,
        secret: String::new(),
        unsealed: false,
    };
    // Who builds brings the memory, as the tester does: payloads stand there already.
    let (far, near) = (end("sink", Role::Server), end("build-rate", Role::Client));
    let (_controlled, [far, near]) = open([&far, &near], cores.len(), longest(table), table.fill)?;
    let queues = (near.transmit, far.receive);
    if sinks.is_empty() {
        return send_in_turns(table, cores, duration, queues, &Anyone);
    }
    send_to_sinks(table, cores, sinks, duration, queues, &Anyone)
}

#[cfg(test)]
mod tests {
    use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
    use wire::MacAddress;

    use super::super::RING;
    use super::*;

    fn table() -> FrameTable {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let endpoints = Endpoints([Endpoint { source: mac, destination: mac }; 2]);
        let tunables = Tunables { vm: "var2".parse().ok(), ..Tunables::default() };
        Profile::builtin("bench", &tunables).unwrap().table(&endpoints, Directions::Forward)
    }

    #[test]
    fn what_is_built_in_the_ring_comes_out_in_turns_or_on_another_core() {
        let duration = Duration::from_millis(200);
        // More than the ring holds: places do come back.
        let enough = 2 * u64::from(RING);
        let built = through_memif(&table(), &[0], &[], duration).unwrap();
        assert!(built.len() == 1 && built[0].frames > enough, "{built:?}");
        let two = through_memif(&table(), &[0, 0], &[], duration).unwrap();
        assert!(two.len() == 2 && two.iter().all(|built| built.frames > 0), "{two:?}");
        if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
            println!("skipped: there is one core");
            return;
        }
        let built = through_memif(&table(), &[0], &[1], duration).unwrap();
        assert!(built.len() == 1 && built[0].frames > enough, "{built:?}");
    }

    #[test]
    fn fewer_sinks_than_cores_are_refused() {
        let refused = through_memif(&table(), &[0, 0], &[1], Duration::ZERO).unwrap_err().to_string();
        assert!(refused.contains("use fewer cores"), "{refused}");
    }
}
