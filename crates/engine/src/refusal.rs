//! What no engine sends, and what ends any run, whatever its means: a frame table and an engine's limits, or a port,
//! enter; words with cause and remedy leave.

use traffic::FrameTable;
use wire::size::FCS;
use xsk::Interface;

use crate::Error;

fn refuse(text: String) -> Result<(), Error> {
    Err(Error::Refused(text))
}

/// Bytes of the page that a frame must fit in with engines that use the kernel's.
const PAGE: usize = 4096;

/// Refuses a table without frames, and frames beyond `most` bytes or below what Ethernet carries, FCS
/// included.
pub fn frames(table: &FrameTable, engine: &str, most: usize) -> Result<(), Error> {
    let largest = table.rows.iter().map(|row| usize::from(row.length) + usize::from(FCS)).max().unwrap_or(0);
    if table.rows.is_empty() {
        return refuse("the profile has no frames".into());
    }
    if largest > most {
        return refuse(format!(
            "frames of {largest} bytes are too large: the {engine} engine sends at most {most} bytes{}; \
             choose a smaller --size",
            if most < PAGE { ", because it keeps a frame in one page of memory" } else { "" }
        ));
    }
    if table.rows.iter().any(|row| row.length < 60) {
        return refuse("the profile has frames under 64 bytes, the least that Ethernet carries".into());
    }
    Ok(())
}

/// What to say when the program that receives is not at interface `name` any more.
pub fn program_removed(name: &str) -> String {
    format!(
        "Linerate's XDP program is no more at interface {name}: the interface vanished, or somebody removed the \
         program, so that frames that arrive are not counted; see that neither happens and measure again"
    )
}

/// A port whose MTU must stay what it was: many cards restart when it changes, and drop what is longer.
pub struct Mtu(usize);

impl Mtu {
    /// That of `interface` now.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn of(interface: &Interface) -> Result<Self, Error> {
        Ok(Self(interface.mtu()?))
    }

    /// Fails when it is another one by now.
    ///
    /// # Errors
    /// That, with the command that sets it back.
    pub fn check(&self, interface: &Interface) -> Result<(), Error> {
        let (name, was, is) = (interface.name(), self.0, interface.mtu()?);
        if is == was {
            return Ok(());
        }
        Err(Error::Failed(format!(
            "the MTU of interface {name} was changed from {was} to {is} during the run: see what changes it, set it \
             back (ip link set {name} mtu {was}), and measure again"
        )))
    }
}

/// Refuses to share the rows of a table among more workers than there are rows.
pub fn shares(table: &FrameTable, workers: usize) -> Result<(), Error> {
    if workers > table.rows.len() {
        return refuse(format!(
            "{workers} workers share a table of {} frames: use fewer cores, or a profile with more flows",
            table.rows.len()
        ));
    }
    Ok(())
}
