//! What a placement does not get right: threads of one physical core, and cores that are far from the cards. Roles with
//! their cores enter, sentences for a reader of the results leave.

use super::{Placement, numbers};

impl Placement {
    /// Which cores of these roles are threads of one physical core. Of each two roles the first pair is named.
    pub(super) fn siblings(&self, roles: &[(&str, &[usize])]) -> Vec<String> {
        let has_others = self.host.physical().len() >= roles.iter().map(|(_, cores)| cores.len()).sum();
        let remedy = match has_others {
            true => "name cores of different physical cores",
            false => "use a host with more physical cores",
        };
        let mut notes = Vec::new();
        for (at, (role, cores)) in roles.iter().enumerate() {
            for (other, others) in roles.iter().skip(at) {
                let pairs = cores.iter().flat_map(|one| others.iter().map(move |two| (*one, *two)));
                let mut pairs = pairs.filter(|(one, two)| role != other || one < two);
                if let Some((one, two)) = pairs.find(|(one, two)| self.host.are_siblings(*one, *two)) {
                    notes.push(format!(
                        "WARNING: {role} (core {one}) and {other} (core {two}) are threads of one physical core and slow \
                         each other: {remedy}"
                    ));
                }
            }
        }
        notes
    }

    /// Which of the tester's cores are not on the node of its cards.
    pub(super) fn far_from_cards(&self) -> Option<String> {
        let node = self.node?;
        let is_far = |core: &&usize| self.host.node(**core).is_some_and(|its| its != node);
        let far: Vec<usize> =
            self.generate.iter().chain(&self.receive_cores).filter(is_far).copied().collect();
        let near: Vec<usize> =
            self.host.cores.iter().filter(|core| core.node == Some(node)).map(|core| core.number).collect();
        let (cores, are) = if far.len() == 1 { ("core", "is") } else { ("cores", "are") };
        (!far.is_empty()).then(|| {
            format!(
                "WARNING: {cores} {} {are} not on NUMA node {node} of the ports: frames cross between nodes, and rates are \
                 lower (cores of that node: {})",
                numbers(&far),
                if near.is_empty() { "none".to_owned() } else { numbers(&near) }
            )
        })
    }
}
