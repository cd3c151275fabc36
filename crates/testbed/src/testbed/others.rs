//! Ports that take frames for others: a port enters, what keeps it so leaves.

use std::any::Any;

use anyhow::Result;
use lab::Lab;
use wording::usage::misuse;
use xsk::{Interface, Others};

use super::Testbed;

impl Testbed {
    /// Whether a port can take frames for others.
    pub fn can_take_others(&self) -> bool {
        !self.is_in_user_space() && !self.has_testers()
    }

    /// Has a port take frames for `others`, as long as the result is kept: also after `kill -9` nothing stays.
    ///
    /// # Errors
    /// Where the port is none of the kernel's, or the kernel refuses.
    pub fn take_others(&self, port: usize, others: Others) -> Result<Box<dyn Any>> {
        if !self.can_take_others() {
            return Err(misuse("promiscuous mode and all multicast are of ports of the kernel alone"));
        }
        let name = &self.ports()[port % 2].name;
        let take = || Interface::find(name).and_then(|interface| interface.take(others));
        let kept = match self.lab().map(Lab::tester_namespace) {
            Some(namespace) => namespace.run(|| Ok(take()))?,
            None => take(),
        };
        Ok(Box::new(kept?))
    }
}
