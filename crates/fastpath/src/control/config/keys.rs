//! What stands after the colon of a device: text like `socket=/run/a,id=1` enters; its keys and values leave, or
//! what is wrong with them.

/// The most queues of a device.
const QUEUES: u16 = 64;

/// What stands after the colon.
pub(super) struct Keys<'a> {
    kind: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Keys<'a> {
    pub fn parse(kind: &'a str, text: &'a str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let Some((key, value)) = pair else {
                return Err(format!("'{part}' says nothing of {kind}: write key=value, with commas between"));
            };
            if pairs.iter().any(|(before, _)| *before == key) {
                return Err(format!("{kind} has {key} twice: keep one"));
            }
            pairs.push((key, value));
        }
        Ok(Self { kind, pairs })
    }

    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub fn number(&self, key: &str, usual: u32) -> Result<u32, String> {
        let Some(text) = self.get(key) else { return Ok(usual) };
        text.parse().map_err(|_| format!("{key}={text}: write a whole number"))
    }

    /// Whether something is to be, where it is said.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(format!("{key}={other}: write true or false")),
        }
    }

    /// Queues to receive from.
    pub fn queues(&self) -> Result<u16, String> {
        let queues = u16::try_from(self.number("queues", 1)?).ok();
        let queues = queues.filter(|queues| (1..=QUEUES).contains(queues));
        queues.ok_or(format!("so many queues are none or too many: write 1 to {QUEUES}"))
    }

    /// Whether all keys are among `known`.
    pub fn none_but(&self, known: &[&str]) -> Result<(), String> {
        match self.pairs.iter().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => {
                Err(format!("{} takes nothing after its name: leave '{key}' out", self.kind))
            }
            Some((key, _)) => Err(format!("{} has no '{key}': it has {}", self.kind, known.join(", "))),
        }
    }
}
