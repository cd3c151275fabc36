//! A switch that the ports are plugged into, as a third witness beside the tester and the device: the address of its agent and two of its
//! interfaces enter; what it counted there leaves, by SNMP v2c (RFC 3416, RFC 2863).
//!
//! An answer that is late, forged or endless costs a second or two, and no memory. The community is a secret: nothing prints or
//! records it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use std::{env, fmt};

use anyhow::{Context, Result, bail};
use foreign::text::printable;
use lab::InterfaceCounters;
use results::Record;
use results::record::{self, Count};
use snmp2::{Oid, SyncSession, Value};
use wording::usage::misuse;

use crate::cross_check;
use crate::target::SwitchAt;

/// The variable of the environment that has the community.
const COMMUNITY: &str = "LINERATE_SNMP_COMMUNITY";
/// What agents are asked with where nothing else is said.
const USUAL: &str = "public";
/// The longest community, in bytes.
const LONGEST: usize = 255;
/// How long one answer may take, and how often a question is asked.
const PATIENCE: Duration = Duration::from_secs(1);
const ATTEMPTS: i32 = 3;
/// The most interfaces that are looked through for a name, the rows of one answer, and how long the search may take.
const MOST: usize = 4096;
const ROWS: u32 = 20;
const SEARCH: Duration = Duration::from_secs(10);
/// How old an agent's counters may be: Net-SNMP reads the kernel's every 15 seconds.
const REFRESH: Duration = Duration::from_secs(20);
/// The longest name or description that is kept, in characters.
const MOST_TEXT: usize = 200;

/// `sysDescr` of RFC 3418.
const DESCRIPTION: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 1, 0];
/// `ifName` and `ifDescr`, by which people know an interface.
const NAMES: [&[u64]; 2] = [&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2]];
/// `ifHCInUcastPkts`, `ifHCOutUcastPkts`, `ifInDiscards`, `ifOutDiscards`.
const COUNTERS: [&[u64]; 4] = [
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19],
];

/// A switch whose agent answers, and has both interfaces.
#[derive(Debug)]
pub struct Switch {
    agent: Agent,
    description: String,
    /// The interfaces' names and numbers (`ifIndex`).
    interfaces: [(String, u64); 2],
}

/// What a switch counted at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    received: u64,
    sent: u64,
    /// Of 32 bits, which begin anew at 0.
    receive_dropped: u32,
    send_dropped: u32,
}

impl Switch {
    /// The switch at `at`.
    ///
    /// # Errors
    /// That its agent does not answer, or does not have an interface or its counters, with the remedy.
    pub fn open(at: &SwitchAt) -> Result<Self> {
        let community = community(at.community.as_deref())?;
        let agent = Agent { name: at.agent(), address: at.address()?, community };
        let description = match agent.ask(&Question::Get(&[DESCRIPTION.to_vec()]))?.pop() {
            Some((_, Told::Text(text))) => text,
            _ => String::new(),
        };
        let [zero, one] = at.interfaces.each_ref().map(|name| agent.find(name));
        let switch = Self { agent, description, interfaces: [zero?, one?] };
        switch.counters()?;
        Ok(switch)
    }

    /// What it counted so far at both interfaces.
    ///
    /// # Errors
    /// That it does not answer, or has no such counters.
    pub fn counters(&self) -> Result<[Counted; 2]> {
        let [zero, one] = self.interfaces.each_ref().map(|(_, index)| *index);
        Ok([self.agent.counters(zero)?, self.agent.counters(one)?])
    }

    /// Adds to the record of a run what the switch counted since `before`, as soon as it says as much as the tester, or
    /// could have said so.
    pub fn testify(&self, before: Result<[Counted; 2]>, record: &mut Record) {
        let told = before.and_then(|before| {
            let agrees = |after: &[Counted; 2]| {
                let mut checks = record.cross_check.clone();
                checks.iter_mut().for_each(|check| check.agrees = true);
                cross_check::by_switch(&mut checks, &self.meanwhile(&before, after), &record.directions);
                checks.iter().all(|check| check.agrees)
            };
            Ok((before, cross_check::settled(REFRESH, || self.counters(), agrees)?))
        });
        match told {
            Ok((before, after)) => {
                let meanwhile = self.meanwhile(&before, &after);
                cross_check::by_switch(&mut record.cross_check, &meanwhile, &record.directions);
                record.switch = Some(Box::new(self.describe(&before, &after)));
            }
            Err(error) => record.notes.push(format!("what the switch counted is not known: {error:#}")),
        }
    }

    /// What it counted between two readings, as interfaces have it.
    fn meanwhile(&self, before: &[Counted; 2], after: &[Counted; 2]) -> [InterfaceCounters; 2] {
        [0, 1].map(|at| {
            let (then, now) = (before[at], after[at]);
            InterfaceCounters {
                name: format!("the switch's {}", self.interfaces[at].0),
                received: now.received.saturating_sub(then.received),
                receive_dropped: now.receive_dropped.wrapping_sub(then.receive_dropped).into(),
                sent: now.sent.saturating_sub(then.sent),
                send_dropped: now.send_dropped.wrapping_sub(then.send_dropped).into(),
            }
        })
    }

    /// The same for the record.
    fn describe(&self, before: &[Counted; 2], after: &[Counted; 2]) -> record::Switch {
        let meanwhile = self.meanwhile(before, after);
        let interfaces = [0, 1].map(|at| record::SwitchInterface {
            name: self.interfaces[at].0.clone(),
            received: Count { before: before[at].received, after: after[at].received },
            sent: Count { before: before[at].sent, after: after[at].sent },
            receive_dropped: meanwhile[at].receive_dropped,
            send_dropped: meanwhile[at].send_dropped,
        });
        record::Switch {
            agent: self.agent.name.clone(),
            description: self.description.clone(),
            interfaces: interfaces.into(),
        }
    }
}

/// What agents are asked with: what `file` has, or the environment.
fn community(file: Option<&Path>) -> Result<String> {
    let text = match file {
        Some(file) => foreign::file::read_text(file, foreign::file::LONGEST_TEXT)
            .with_context(|| format!("cannot read the community of the switch from {}", file.display()))?,
        None => env::var(COMMUNITY).unwrap_or_else(|_| USUAL.to_owned()),
    };
    let community = text.trim();
    if community.is_empty() || community.len() > LONGEST {
        return Err(misuse(format!("the community of a switch has 1 to {LONGEST} bytes")));
    }
    Ok(community.to_owned())
}

/// Who answers for a switch.
struct Agent {
    name: String,
    address: SocketAddr,
    community: String,
}

/// Without the community.
impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// What an agent is asked.
enum Question<'a> {
    /// These values.
    Get(&'a [Vec<u64>]),
    /// The rows that follow this one.
    Next(&'a [u64]),
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Number(u64),
    Text(String),
    /// It does not have it, or it is of another kind.
    Other,
}

impl Agent {
    /// What is told, by name.
    fn ask(&self, question: &Question) -> Result<Vec<(Vec<u64>, Told)>> {
        let id = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos() / 2).cast_signed();
        let mut why = None;
        for attempt in 0..ATTEMPTS {
            // A socket of its own for each, so that a late answer to another question is none to this.
            let community = self.community.as_bytes();
            let mut session = SyncSession::new_v2c(self.address, community, Some(PATIENCE), id + attempt)
                .with_context(|| format!("cannot ask the switch {}", self.name))?;
            let answer = match question {
                Question::Get(names) => {
                    let names: Vec<Oid> = names.iter().map(|name| oid(name)).collect::<Result<_>>()?;
                    session.get_many(&names.iter().collect::<Vec<_>>())
                }
                Question::Next(name) => session.getbulk(&[&oid(name)?], 0, ROWS),
            };
            match answer {
                Ok(answer) if answer.error_status == 0 => {
                    let told = |(name, value): (Oid, Value)| Some((name.iter()?.collect(), told(&value)));
                    return Ok(answer.varbinds.filter_map(told).collect());
                }
                Ok(answer) => {
                    bail!("the switch {} refuses to tell (SNMP error {})", self.name, answer.error_status)
                }
                Err(error) => why = Some(error),
            }
        }
        let why = match why {
            Some(snmp2::Error::Receive) | None => "nothing answers".to_owned(),
            Some(error) => error.to_string(),
        };
        bail!(
            "the switch {} cannot be asked by SNMP v2c: {why}. Switch its agent on, let this host ask it, and set {COMMUNITY} \
             (or --switch-community) to its community",
            self.name
        )
    }

    /// The name and the number of the interface called `wanted`, or numbered so.
    fn find(&self, wanted: &str) -> Result<(String, u64)> {
        if let Ok(index) = wanted.parse() {
            return Ok((wanted.to_owned(), index));
        }
        let mut known = Vec::new();
        for table in NAMES {
            let rows = self.rows(table)?;
            if let Some((index, name)) = rows.iter().find(|(_, name)| name == wanted) {
                return Ok((name.clone(), *index));
            }
            known.extend(rows.into_iter().map(|(_, name)| name));
        }
        known.truncate(ROWS as usize);
        let known = if known.is_empty() { "it names none".to_owned() } else { known.join(", ") };
        Err(misuse(format!("the switch {} has no interface '{wanted}'. There are: {known}", self.name)))
    }

    /// The rows of a table of texts, by the numbers of the interfaces.
    fn rows(&self, table: &[u64]) -> Result<Vec<(u64, String)>> {
        let deadline = Instant::now() + SEARCH;
        let (mut after, mut rows) = (table.to_vec(), Vec::new());
        loop {
            let began = rows.len();
            for (name, told) in self.ask(&Question::Next(&after))? {
                let (Some(&[index]), Told::Text(text)) = (name.strip_prefix(table), told) else {
                    return Ok(rows);
                };
                // An agent that goes back would never come to an end.
                if name <= after {
                    return Ok(rows);
                }
                after = name;
                rows.push((index, text));
            }
            if rows.len() == began {
                return Ok(rows);
            }
            if rows.len() > MOST || Instant::now() > deadline {
                bail!(
                    "the switch {} has too many interfaces to look for a name: give their numbers (ifIndex)",
                    self.name
                );
            }
        }
    }

    fn counters(&self, index: u64) -> Result<Counted> {
        let names = COUNTERS.map(|column| [column, &[index]].concat());
        let told = self.ask(&Question::Get(&names))?;
        let number = |at: usize| match told.get(at) {
            Some((name, Told::Number(number))) if *name == names[at] => Some(*number),
            _ => None,
        };
        let (Some(received), Some(sent)) = (number(0), number(1)) else {
            bail!(
                "the switch {} has no counters of 64 bits for its interface {index} (ifHCInUcastPkts, RFC 2863)",
                self.name
            );
        };
        let dropped = |at: usize| number(at).unwrap_or(0) as u32;
        Ok(Counted { received, sent, receive_dropped: dropped(2), send_dropped: dropped(3) })
    }
}

fn oid(name: &[u64]) -> Result<Oid<'static>> {
    Oid::from(name).ok().context("a name in SNMP has at least two numbers")
}

fn told(value: &Value) -> Told {
    match value {
        Value::Counter64(number) => Told::Number(*number),
        Value::Counter32(number) => Told::Number((*number).into()),
        Value::OctetString(bytes) => {
            let text: String = String::from_utf8_lossy(bytes).chars().take(MOST_TEXT).collect();
            Told::Text(printable(text.trim()).into_owned())
        }
        _ => Told::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;

    use snmp2::{Pdu, asn1, snmp};

    use super::*;

    /// How an agent answers.
    #[derive(Clone, Copy, PartialEq)]
    enum Manner {
        Well,
        /// Its rows never end.
        Endless,
        Garbage,
        Silent,
        /// Without counters of 64 bits.
        Old,
    }

    /// An agent with the interfaces `ge-0` (7) and `ge-1` (9), which counts questions of counters as frames; where it listens.
    fn agent(manner: Manner) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            let (mut bytes, mut asked) = ([0; 2048], 0);
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                let question = Pdu::from_bytes(&bytes[..length]).unwrap();
                let names: Vec<Vec<u64>> =
                    question.varbinds.clone().map(|(name, _)| name.iter().unwrap().collect()).collect();
                asked += 1;
                match manner {
                    Manner::Silent => {}
                    Manner::Garbage => drop(socket.send_to(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], from)),
                    _ if question.community != b"secret" => {}
                    _ => {
                        let answer = answer(&names, question.req_id, manner, asked);
                        socket.send_to(&answer, from).unwrap();
                    }
                }
            }
        });
        address.to_string()
    }

    /// What the agent answers when it was asked for the `names`.
    fn answer(names: &[Vec<u64>], id: i32, manner: Manner, asked: u64) -> Vec<u8> {
        let rows: Vec<(Vec<u64>, Option<String>)> = names
            .iter()
            .flat_map(|name| {
                let of = |index: u64, text: &str| ([NAMES[0], &[index]].concat(), Some(text.to_owned()));
                match name.as_slice() {
                    name if name == DESCRIPTION => {
                        vec![(name.to_vec(), Some("a \u{1b}[2Jswitch".to_owned()))]
                    }
                    name if name.starts_with(NAMES[0]) && manner == Manner::Endless => {
                        let last = name.get(NAMES[0].len()).copied().unwrap_or(0);
                        (1..=20).map(|next| of(last + next, "no")).collect()
                    }
                    name if name == NAMES[0] => vec![of(7, "ge-0"), of(9, "ge-1"), (vec![1, 3, 7], None)],
                    name if name.starts_with(NAMES[1]) => vec![(vec![1, 3, 7], None)],
                    name => vec![(name.to_vec(), None)],
                }
            })
            .collect();
        let row = |(name, text): &(Vec<u64>, Option<String>)| {
            let value = match text {
                Some(text) => tlv(asn1::TYPE_OCTETSTRING, text.as_bytes()),
                None if manner == Manner::Old => tlv(snmp::SNMP_NOSUCHINSTANCE, &[]),
                None => tlv(snmp::TYPE_COUNTER64, &(asked * 1000).to_be_bytes()),
            };
            let name = tlv(asn1::TYPE_OBJECTIDENTIFIER, oid(name).unwrap().as_bytes());
            tlv(asn1::TYPE_SEQUENCE, &[name, value].concat())
        };
        let rows = tlv(asn1::TYPE_SEQUENCE, &rows.iter().flat_map(row).collect::<Vec<u8>>());
        let integer = |number: i32| tlv(asn1::TYPE_INTEGER, &number.to_be_bytes());
        let response = tlv(snmp::MSG_RESPONSE, &[integer(id), integer(0), integer(0), rows].concat());
        let community = tlv(asn1::TYPE_OCTETSTRING, b"secret");
        tlv(asn1::TYPE_SEQUENCE, &[integer(1), community, response].concat())
    }

    /// A value in BER: its type, its length in two bytes, itself.
    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[kind, 0x82], &length[..], value].concat()
    }

    fn open(manner: Manner, interfaces: &str) -> Result<Switch> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("community");
        std::fs::write(&file, "secret\n").unwrap();
        let mut at: SwitchAt = format!("{},{interfaces}", agent(manner)).parse().unwrap();
        at.community = Some(file);
        Switch::open(&at)
    }

    #[test]
    fn interfaces_are_found_by_name_or_number_and_counted() {
        let switch = open(Manner::Well, "ge-1,7").unwrap();
        assert_eq!(switch.interfaces, [("ge-1".to_owned(), 9), ("7".to_owned(), 7)]);
        assert_eq!(switch.description, "a \\u{1b}[2Jswitch");
        let (before, after) = (switch.counters().unwrap(), switch.counters().unwrap());
        let [zero, one] = switch.meanwhile(&before, &after);
        assert_eq!((zero.name.as_str(), zero.received, one.sent), ("the switch's ge-1", 2000, 2000));
        assert!(!format!("{switch:?}").contains("secret"));
    }

    #[test]
    fn counters_that_begin_anew_go_on() {
        let switch = open(Manner::Well, "7,9").unwrap();
        let of = |dropped| [Counted { send_dropped: dropped, ..Counted::default() }; 2];
        let [zero, _] = switch.meanwhile(&of(u32::MAX), &of(4));
        assert_eq!(zero.send_dropped, 5);
    }

    #[test]
    fn what_an_agent_lacks_is_told_with_the_remedy() {
        let refused = |manner, interfaces: &str| format!("{:#}", open(manner, interfaces).unwrap_err());
        let missing = refused(Manner::Well, "ge-0,ge-5");
        assert!(missing.contains("no interface 'ge-5'. There are: ge-0, ge-1"), "{missing}");
        let old = refused(Manner::Old, "7,9");
        assert!(old.contains("no counters of 64 bits for its interface 7"), "{old}");
        let endless = refused(Manner::Endless, "ge-0,ge-1");
        assert!(endless.contains("give their numbers"), "{endless}");
        let garbage = refused(Manner::Garbage, "7,9");
        assert!(garbage.contains("cannot be asked by SNMP v2c") && garbage.contains(COMMUNITY), "{garbage}");
        let silent = refused(Manner::Silent, "7,9");
        assert!(silent.contains("nothing answers") && !silent.contains("secret"), "{silent}");
    }
}
