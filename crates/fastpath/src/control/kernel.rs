//! The kernel beside the router: frames and routes pass between them.
//!
//! ```text
//! frames that the router leaves to the kernel ──► Tap ──► kernel, routing daemons
//! frames that these send                      ◄── Tap ◄──
//! what the kernel's tables hold ──► Watcher ──► Change ──► Importer ──► Router
//!                                   a thread
//! ```
//!
//! A [`Tap`] makes the kernel see an interface of the router. A [`Watcher`] follows the kernel's main
//! table, its neighbours and its addresses, and says what changed. An [`Importer`] brings the routes
//! among these changes into a [`crate::control::router::Router`].

mod candidates;
mod change;
mod error;
mod hosts;
mod importer;
mod message;
mod mirror;
mod netlink;
mod path;
mod tap;
mod watcher;

pub use self::change::{Change, RouteChange};
pub use self::error::Error;
pub use self::importer::Importer;
pub use self::path::{Hop, Path, Towards};
pub use self::tap::{Settings, Tap, TapCounters};
pub use self::watcher::{Health, Watcher};

/// What a datagram of the kernel changes in tables that are empty, message by message; what is no message is passed
/// over. For fuzz targets: a [`Watcher`] does the same with what it receives.
#[must_use]
pub fn changes_in(datagram: &[u8]) -> Vec<Change> {
    let (mut mirror, mut changes) = (mirror::Mirror::new(), Vec::new());
    for told in netlink::messages(datagram).filter_map(|message| message::read(&message).ok()) {
        mirror.notified(told, &mut changes);
    }
    changes
}
