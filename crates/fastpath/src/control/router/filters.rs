//! The access lists of interfaces: a list enters; what workers hold packets against, and which packets they hold
//! against any, leaves.

use std::sync::Arc;

use super::{Error, Router};
use crate::dataplane::acl::{AccessList, Filters};

impl Router {
    /// Holds packets at an interface against these lists from now on.
    ///
    /// # Errors
    /// [`Error::NoInterface`].
    pub fn set_filters(&mut self, interface: u16, filters: Filters) -> Result<(), Error> {
        self.set_interface(interface, |interface| interface.filters = filters)
    }

    /// Has this list take the place of those of its name, at all interfaces at once.
    pub fn replace_access_list(&mut self, list: &Arc<AccessList>) {
        for interface in &mut self.forwarding.interfaces {
            let Filters { input, output } = &mut interface.filters;
            for filter in [input, output].into_iter().flatten().filter(|filter| filter.name() == list.name())
            {
                *filter = Arc::clone(list);
            }
        }
        self.change();
    }

    /// Notes at which devices packets arrive that are to be held against a list.
    pub(super) fn note_filters(&mut self) {
        let interfaces = &self.forwarding.interfaces;
        let is_filtered = |number: u16| {
            interfaces.get(usize::from(number)).is_some_and(|interface| interface.filters.input.is_some())
        };
        for device in &mut self.forwarding.devices {
            let tagged = device.tagged.iter().map(|(_, interface)| *interface);
            device.filtered = tagged.chain([device.untagged]).any(is_filtered);
        }
    }
}
