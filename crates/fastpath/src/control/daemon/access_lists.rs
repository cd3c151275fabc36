//! The access lists of a running router: rules enter by the names of their lists; what interfaces hold packets against
//! leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::control::config;
use crate::control::router::Router;
use crate::control::show::acl;
use crate::dataplane::acl::{AccessList, Filters, Rule};

/// The most rules of a list that are shown at once, where none is asked for by its name.
const MOST_RULES: usize = 1000;

/// By their names.
#[derive(Default)]
pub(super) struct AccessLists(BTreeMap<String, Arc<AccessList>>);

impl AccessLists {
    /// A list has these rules from now on, at all interfaces that have it; its counters begin anew.
    pub fn set(&mut self, router: &mut Router, name: &str, rules: Vec<Rule>) -> Result<()> {
        let list = AccessList::new(name, rules);
        router.replace_access_list(&list)?;
        self.0.insert(name.to_owned(), list);
        Ok(())
    }

    /// A list that no interface has is no longer there.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Those of an interface, by their names.
    pub fn filters(&self, named: &config::Filters) -> Result<Filters> {
        let list = |name: &Option<String>| name.as_ref().map(|name| self.get(name).cloned()).transpose();
        Ok(Filters { input: list(&named.input)?, output: list(&named.output)? })
    }

    /// What users see of all, or of the one of this name.
    pub fn show(&self, router: &Router, name: Option<&str>) -> Result<acl::AccessLists> {
        let forwarding = router.forwarding();
        Ok(match name {
            Some(name) => acl::access_lists([self.get(name)?], forwarding, usize::MAX),
            None => acl::access_lists(self.0.values(), forwarding, MOST_RULES),
        })
    }

    /// Counts from now on.
    pub fn clear(&self) {
        self.0.values().for_each(|list| list.clear());
    }

    fn get(&self, name: &str) -> Result<&Arc<AccessList>> {
        self.0
            .get(name)
            .with_context(|| format!("there is no access list '{name}': see fastpathctl show acl"))
    }
}
