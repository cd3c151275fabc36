//! Field programs as a profile writes them: TOML values enter, linked [`Field`]s leave.
//!
//! A value is fixed (`64`, `"16.0.0.1"`) or a table with one of `increment`, `decrement`,
//! `random` or `list`; `with` or `after` name another field of the same stream.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::MacAddress;

use crate::error::Error;
use crate::field::Field;
use crate::reader::{Node, Section};

/// The most values of a list.
const MAX_LIST: usize = 1 << 16;

/// What the values of a field look like.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A number from this one to that one.
    Number(u128, u128),
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
}

/// How a field is linked to another.
#[derive(Clone, Copy)]
enum Link<'a> {
    /// Advances together with it.
    With(&'a str),
    /// Advances when it wraps.
    After(&'a str),
}

/// A field, not yet linked.
struct Program<'a> {
    name: String,
    field: Field,
    link: Option<(Link<'a>, Node<'a>)>,
}

/// The fields of one stream by name, like `ipv4.source`.
#[derive(Default)]
pub(crate) struct Programs<'a> {
    unlinked: Vec<Program<'a>>,
    ready: Vec<(String, Field)>,
}

impl<'a> Programs<'a> {
    /// Reads the program under `key`, if there is one, and calls it `path.key`.
    pub fn read(
        &mut self,
        section: &mut Section<'a>,
        path: &str,
        key: &'static str,
        kind: Kind,
    ) -> Result<(), Error> {
        let Some(node) = section.get(key) else { return Ok(()) };
        let name = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        self.read_node(name, node, kind)
    }

    /// Reads the program at `node` and calls it `name`.
    pub fn read_node(&mut self, name: String, node: Node<'a>, kind: Kind) -> Result<(), Error> {
        let program = if node.is_table() {
            read_program(name, node, kind)?
        } else {
            Program { name, field: Field::fixed(kind.read(node)?), link: None }
        };
        self.unlinked.push(program);
        Ok(())
    }

    /// Links all fields that were read.
    ///
    /// # Errors
    /// When a link names no other field, leads back to itself, or cannot hold.
    pub fn link(&mut self) -> Result<(), Error> {
        let names: Vec<String> = self.unlinked.iter().map(|program| program.name.clone()).collect();
        while !self.unlinked.is_empty() {
            let before = self.unlinked.len();
            for program in std::mem::take(&mut self.unlinked) {
                self.link_one(program, &names)?;
            }
            if let Some(Program { name, link: Some((_, node)), .. }) =
                self.unlinked.first().filter(|_| self.unlinked.len() == before)
            {
                return Err(node.error(format!("{name} waits for itself: break the circle of links")));
            }
        }
        Ok(())
    }

    /// Links `program` if what it is linked to is ready.
    fn link_one(&mut self, program: Program<'a>, names: &[String]) -> Result<(), Error> {
        let Some((link, node)) = program.link else {
            self.ready.push((program.name, program.field));
            return Ok(());
        };
        let (Link::With(target) | Link::After(target)) = link;
        if !names.iter().any(|name| name == target) {
            return Err(
                node.error(format!("no field '{target}' in this stream: it has {}", names.join(", ")))
            );
        }
        let Some((_, other)) = self.ready.iter().find(|(name, _)| name == target) else {
            self.unlinked.push(program);
            return Ok(());
        };
        let linked = match link {
            Link::With(_) => program.field.with(other),
            Link::After(_) => program.field.after(other),
        };
        self.ready.push((program.name, linked.map_err(|error| node.error(error))?));
        Ok(())
    }

    /// The linked field called `name`, if there is one.
    pub fn take(&mut self, name: &str) -> Option<Field> {
        let index = self.ready.iter().position(|(own, _)| own == name)?;
        Some(self.ready.swap_remove(index).1)
    }

    /// The linked field called `name`, or `default`, always.
    pub fn take_or(&mut self, name: &str, default: u128) -> Field {
        self.take(name).unwrap_or(Field::fixed(default))
    }
}

impl Kind {
    /// Reads one value.
    fn read(self, node: Node<'_>) -> Result<u128, Error> {
        let expected = match self {
            Self::Number(min, max) => return node.number(min, max),
            Self::Mac => "a MAC address, like \"02:00:00:00:00:01\"",
            Self::Ipv4 => "an IPv4 address, like \"16.0.0.1\"",
            Self::Ipv6 => "an IPv6 address, like \"2001:2:0:16::1\"",
        };
        let text = node.text().map_err(|_| node.wrong(expected))?;
        let value = match self {
            Self::Mac => text.parse().ok().map(|MacAddress([a, b, c, d, e, f])| {
                u128::from(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
            }),
            Self::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits())),
            Self::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            Self::Number(..) => None,
        };
        value.ok_or_else(|| node.error(format!("'{text}' is not {expected}")))
    }

    /// Reads the two ends of a range.
    fn read_range(self, node: Node<'_>) -> Result<(u128, u128), Error> {
        match node.items()?.as_slice() {
            [first, last] => Ok((self.read(*first)?, self.read(*last)?)),
            items => {
                Err(node.error(format!("a range has two ends, not {}: write [first, last]", items.len())))
            }
        }
    }
}

/// Reads a table like `{ increment = [1, 9], step = 2, after = "udp.source" }`.
fn read_program<'a>(name: String, node: Node<'a>, kind: Kind) -> Result<Program<'a>, Error> {
    let mut section = node.section(name.as_str())?;
    let (operation, values) = section.one_of(&["increment", "decrement", "random", "list"])?;
    let field = match operation {
        "random" => {
            let (first, last) = kind.read_range(values)?;
            let seed = section.get("seed").map_or(Ok(0), |node| node.number(0, u64::MAX.into()))?;
            let repeat =
                section.get("repeat-after").map(|node| node.number(1, u64::MAX.into())).transpose()?;
            Field::random(first, last, seed as u64, repeat.map(|count| count as u64))
        }
        "list" => {
            let items = values.items()?;
            if items.len() > MAX_LIST {
                return Err(
                    values.error(format!("a list has at most {MAX_LIST} values, not {}", items.len()))
                );
            }
            Field::list(items.into_iter().map(|item| kind.read(item)).collect::<Result<_, _>>()?)
        }
        _ => {
            let (first, last) = kind.read_range(values)?;
            let step = section.get("step").map_or(Ok(1), |node| node.number(1, u128::MAX))?;
            if operation == "increment" {
                Field::increment(first, last, step)
            } else {
                Field::decrement(first, last, step)
            }
        }
    };
    let field = field.map_err(|error| values.error(error))?;
    let (with, after) = (section.get("with"), section.get("after"));
    let link = match (with, after) {
        (None, None) => None,
        (Some(with), None) => Some((Link::With(with.text()?), with)),
        (None, Some(after)) => Some((Link::After(after.text()?), after)),
        (Some(_), Some(after)) => return Err(after.error("with and after exclude each other: keep one")),
    };
    section.finish()?;
    Ok(Program { name, field, link })
}
