//! The access lists of interfaces: a list enters; what workers hold packets against, and which packets they hold
//! against any, leaves. Before the first list that keeps states of flows, each worker gets a table for them.

use std::sync::Arc;

use super::{Error, Router};
use crate::dataplane::acl::{AccessList, Filters};
use crate::dataplane::states::{Mailbox, Settings, Table, Timeouts};

impl Router {
    /// Holds packets at an interface against these lists from now on.
    ///
    /// # Errors
    /// [`Error::NoInterface`], [`Error::States`].
    pub fn set_filters(&mut self, interface: u16, filters: Filters) -> Result<(), Error> {
        self.give_tables(filters.keep_states())?;
        self.set_interface(interface, |interface| interface.filters = filters)
    }

    /// Has this list take the place of those of its name, at all interfaces at once. States of flows that it would let
    /// begin, too, live on.
    ///
    /// # Errors
    /// [`Error::States`].
    pub fn replace_access_list(&mut self, list: &Arc<AccessList>) -> Result<(), Error> {
        self.give_tables(list.keeps_states())?;
        for interface in &mut self.forwarding.interfaces {
            let Filters { input, output } = &mut interface.filters;
            for filter in [input, output].into_iter().flatten().filter(|filter| filter.name() == list.name())
            {
                *filter = Arc::clone(list);
            }
        }
        // What keeps states has packets of both directions looked at.
        self.note_filters();
        self.remake_adjacencies();
        Ok(())
    }

    /// How states of flows are kept: so many at most in tables to come, and as long, from now on.
    pub fn set_states(&mut self, settings: Settings) {
        self.states = settings;
        self.set_timeouts(settings.timeouts);
    }

    /// How long states of flows stay, from now on: the next packet of each counts.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.forwarding.timeouts = timeouts;
        self.change();
    }

    /// By worker: what it counts of states, and how it is asked for some. None before any are kept.
    #[must_use]
    pub fn states(&self) -> &[Arc<Mailbox>] {
        if self.has_tables { &self.mailboxes } else { &[] }
    }

    /// Has workers have tables for states, if they are wanted.
    fn give_tables(&mut self, wanted: bool) -> Result<(), Error> {
        if !wanted || self.has_tables {
            return Ok(());
        }
        for mailbox in &self.mailboxes {
            mailbox.give(Table::new(self.states.maximum).map_err(Error::States)?);
        }
        self.has_tables = true;
        Ok(())
    }

    /// For one more worker. If there is no memory for its table, what keeps states lets nothing pass there.
    pub(super) fn new_mailbox(&mut self) -> Arc<Mailbox> {
        let mailbox = Arc::<Mailbox>::default();
        self.mailboxes.push(Arc::clone(&mailbox));
        if let Some(table) = self.has_tables.then(|| Table::new(self.states.maximum)).and_then(Result::ok) {
            mailbox.give(table);
        }
        mailbox
    }

    /// Notes at which devices packets arrive that are to be held against a list.
    pub(super) fn note_filters(&mut self) {
        let interfaces = &self.forwarding.interfaces;
        let is_filtered = |number: u16| {
            interfaces.get(usize::from(number)).is_some_and(|interface| interface.filters.look_at_input())
        };
        for device in &mut self.forwarding.devices {
            let tagged = device.tagged.iter().map(|(_, interface)| *interface);
            device.filtered = tagged.chain([device.untagged]).any(is_filtered);
        }
    }
}
