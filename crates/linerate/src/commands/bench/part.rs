//! The part of a bench that is asked for: flags enter; which cells are to be run leaves. Pure.
//!
//! A shard holds whole groups of cells that are compared: only runs of one testbed compare.

use std::fmt;
use std::str::FromStr;

use testbed::bench::plan::Plan;
use wording::usage::misuse;

/// Which cells of a bench to run.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = "Bench files")]
#[group(skip)]
pub struct Part {
    /// Run only the cells whose name, DUT/PROFILE/DIRECTION, contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "quick")]
    only: Option<String>,
    /// Run one part of the bench, such as the third of eight (3/8); each part needs a testbed of its own
    #[arg(long, value_name = "K/N", conflicts_with = "quick")]
    pub shard: Option<Shard>,
}

/// One of several parts of a bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `of`.
    number: usize,
    of: usize,
}

impl Part {
    /// By cell of `plan`: whether it is asked for.
    pub fn chosen(&self, plan: &Plan) -> Vec<bool> {
        let is_meant = |label: &str| self.only.as_ref().is_none_or(|only| label.contains(only.as_str()));
        let mut chosen: Vec<bool> = plan.cells.iter().map(|cell| is_meant(&cell.label())).collect();
        for (_, cells) in
            plan.groups.iter().enumerate().filter(|(at, _)| self.shard.is_some_and(|shard| !shard.has(*at)))
        {
            cells.iter().for_each(|cell| chosen[*cell] = false);
        }
        chosen
    }

    /// Whether this can be a part of `plan`. A shard beyond the last test is one: it has nothing to do.
    ///
    /// # Errors
    /// When no cell has the name that is asked for.
    pub fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let Some(only) = &self.only else { return Ok(()) };
        let cells: Vec<String> = plan.cells.iter().map(|cell| cell.label()).collect();
        let quoted = || cells.iter().map(|cell| format!("'{cell}'")).collect::<Vec<_>>().join(", ");
        if cells.iter().any(|cell| cell.contains(only.as_str())) {
            return Ok(());
        }
        Err(misuse(format!("no cell's name contains '{only}'. There are: {}", quoted())))
    }
}

impl Shard {
    /// Whether the group at this place of the file, from 0, is part of it.
    fn has(self, group: usize) -> bool {
        group % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is no shard: give the number of the part and how many parts there are, such as 3/8"
            )
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let number: usize = number.parse().map_err(|_| wrong())?;
        let of: usize = of.parse().map_err(|_| wrong())?;
        if number == 0 || number > of {
            return Err(format!(
                "'{text}' is no shard: of {of} parts, the number is 1 to {of}, such as 1/{of}"
            ));
        }
        Ok(Self { number, of })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_says_what_is_wrong_with_it() {
        let shard = |text: &str| text.parse::<Shard>();
        assert_eq!(shard("3/8"), Ok(Shard { number: 3, of: 8 }));
        assert_eq!(shard("1/1").unwrap().to_string(), "1/1");
        for text in ["", "3", "3/", "/8", "a/8", "-1/8", "3/8/1", "0.5/2"] {
            assert!(shard(text).unwrap_err().contains("such as 3/8"), "{text}");
        }
        for text in ["0/8", "9/8"] {
            assert!(shard(text).unwrap_err().contains("1 to 8"), "{text}");
        }
    }

    #[test]
    fn each_test_is_part_of_one_shard() {
        for (of, test) in (1..12).flat_map(|of| (0..40).map(move |test| (of, test))) {
            let shards = (1..=of).map(|number| Shard { number, of });
            assert_eq!(shards.filter(|shard| shard.has(test)).count(), 1, "test {test} of {of} shards");
        }
    }
}
