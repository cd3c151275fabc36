//! `--engine`: its words enter; an engine, and with `trex:` the servers that it consists of, leave.

use std::str::FromStr;

use testbed::target::{EngineName, TesterAddress};

/// What sends and receives, as it is written on the command line.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its name.
    pub name: EngineName,
    /// With [`EngineName::Trex`] the servers, else none.
    pub testers: Vec<TesterAddress>,
}

/// The most servers that share a load.
const MOST_TESTERS: usize = 64;

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(list) = text.strip_prefix("trex:") else {
            let name = text.parse::<EngineName>().map_err(|reason| format!("{reason}, and trex:HOST"))?;
            return Ok(Self { name, testers: Vec::new() });
        };
        let testers: Vec<TesterAddress> = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let twice = testers.iter().enumerate().find(|(at, tester)| testers[..*at].contains(tester));
        match twice {
            Some((_, tester)) => Err(format!("the tester {tester} is there twice: name each once")),
            None if testers.len() > MOST_TESTERS => {
                Err(format!("at most {MOST_TESTERS} testers share a load"))
            }
            None => Ok(Self { name: EngineName::Trex, testers }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn testers_are_named_with_the_engine() {
        let read = |text: &str| text.parse::<Engine>();
        assert_eq!(read("memif").unwrap().name, EngineName::Memif);
        let two = read("trex:a,10.0.0.1:4600").unwrap();
        let endpoints: Vec<String> = two.testers.iter().map(TesterAddress::endpoint).collect();
        assert_eq!(endpoints, ["tcp://a:4501", "tcp://10.0.0.1:4600"]);
        for (text, clue) in [
            ("trex", "trex:HOST"),
            ("trex:", "HOST:PORT"),
            ("trex:a,,b", "HOST:PORT"),
            ("trex:a,b,a:4501", "twice"),
            ("xpd", "there are auto"),
        ] {
            assert!(read(text).unwrap_err().contains(clue), "{text}");
        }
        let many: Vec<String> = (0..=MOST_TESTERS).map(|number| format!("h{number}")).collect();
        assert!(read(&format!("trex:{}", many.join(","))).unwrap_err().contains("at most"));
    }
}
