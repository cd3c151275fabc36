//! What is compared within a bench: its cells enter; groups of them, in each of which one is the reference of the
//! others, leave.

use results::bench::{Compare, Dut};

use super::{Bench, Cell, way};
use crate::judgement::Judged;

/// Cells that are compared with one of them: the devices of a test, or the profiles of a device in one direction.
pub struct Contrast<'b, 'a> {
    /// What they share, like `64 B/both` or `kernel router/both`.
    pub name: String,
    /// The same for people, like `64 B, both ways`.
    pub title: String,
    /// The one that the others are compared with.
    pub reference: Member<'b, 'a>,
    /// The others, in the order of the bench.
    pub others: Vec<Member<'b, 'a>>,
}

/// A cell of a [`Contrast`].
#[derive(Clone, Copy)]
pub struct Member<'b, 'a> {
    /// What tells it from the others: its device, or its profile.
    pub name: &'a str,
    /// Its figures.
    pub cell: &'b Cell<'a>,
    /// Its test, and its device in that.
    pub(super) place: (usize, usize),
}

impl<'b, 'a> Contrast<'b, 'a> {
    /// `members` beside the one that is called `reference`; `None` where there is none or no other.
    fn new(name: String, title: String, mut members: Vec<Member<'b, 'a>>, reference: &str) -> Option<Self> {
        let at = members.iter().position(|member| member.name == reference)?;
        let reference = members.remove(at);
        (!members.is_empty()).then_some(Self { name, title, reference, others: members })
    }

    /// The others that have figures in common with the reference, and what these prove.
    pub fn judged(&self) -> impl Iterator<Item = (&Member<'b, 'a>, &'b Judged)> {
        self.others.iter().filter_map(|member| Some((member, member.cell.judged.as_ref()?)))
    }

    /// Each round that `member` and the reference have, and by what share its figure differs there.
    #[must_use]
    pub fn rounds(&self, member: &Member) -> Vec<(u32, f64)> {
        let rounds = self.reference.cell.common_rounds(member.cell);
        rounds
            .map(|(round, before, now)| (round, now / before - 1.0))
            .filter(|(_, by)| by.is_finite())
            .collect()
    }
}

impl<'a> Bench<'a> {
    /// All that is compared; nothing where there is no baseline.
    #[must_use]
    pub fn contrasts(&self) -> Vec<Contrast<'_, 'a>> {
        let Some(baseline) = &self.description.baseline else { return Vec::new() };
        match self.description.compare {
            Compare::Devices => self.of_devices(baseline),
            Compare::Profiles => self.of_profiles(baseline),
        }
    }

    fn of_devices(&self, baseline: &str) -> Vec<Contrast<'_, 'a>> {
        let mut contrasts = Vec::new();
        for (at, test) in self.tests.iter().enumerate() {
            let cells = test.cells.iter().enumerate();
            let members = cells.map(|(dut, cell)| Member { name: &cell.dut.name, cell, place: (at, dut) });
            contrasts.extend(Contrast::new(test.name(), test.title(), members.collect(), baseline));
        }
        contrasts
    }

    fn of_profiles(&self, baseline: &str) -> Vec<Contrast<'_, 'a>> {
        let duts = self.description.duts.iter().enumerate();
        duts.flat_map(|dut| ["one", "both"].map(|direction| self.of_device(dut, direction, baseline)))
            .flatten()
            .collect()
    }

    fn of_device(
        &self,
        (dut, named): (usize, &Dut),
        direction: &str,
        baseline: &str,
    ) -> Option<Contrast<'_, 'a>> {
        let tests = self.tests.iter().enumerate().filter(|(_, test)| test.direction == direction);
        let members = tests.filter_map(|(at, test)| {
            Some(Member { name: &test.profile.name, cell: test.cells.get(dut)?, place: (at, dut) })
        });
        let (name, title) =
            (format!("{}/{direction}", named.name), format!("{}, {}", named.name, way(direction)));
        Contrast::new(name, title, members.collect(), baseline)
    }
}
