//! How a device looks all over the page: its place among the devices enters; a colour leaves, and where
//! there are more devices than colours a shape too, as attributes that the style knows.

use std::fmt::{self, Display, Formatter};

/// Colours that the style defines.
const COLOURS: usize = 7;
/// Shapes that the style defines, beside none.
const SHAPES: usize = 4;

/// The look of one device; `page/src/theme.ts` gives the same to what it draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    colour: usize,
    /// 0 is none.
    shape: usize,
}

impl Look {
    /// Of the device in this place.
    pub fn of(device: usize) -> Self {
        Self { colour: device % COLOURS, shape: device / COLOURS % (SHAPES + 1) }
    }
}

impl Display for Look {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "data-colour=\"{}\"", self.colour)?;
        if self.shape > 0 { write!(f, " data-shape=\"{}\"", self.shape) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn many_devices_look_different() {
        assert_eq!(Look::of(6).to_string(), "data-colour=\"6\"");
        assert_eq!(Look::of(7).to_string(), "data-colour=\"0\" data-shape=\"1\"");
        let looks: BTreeSet<String> = (0..35).map(|device| Look::of(device).to_string()).collect();
        assert_eq!(looks.len(), 35);
    }
}
