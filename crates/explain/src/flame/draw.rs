//! Drawing: folded stacks and what is to be said of them enter, an SVG leaves that can be searched
//! and zoomed in a browser. Pure.

use inferno::flamegraph::{self, Options, TextTruncateDirection};

use wire::human::count;

use super::Folded;

/// What a drawing says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captions {
    /// What is drawn.
    pub title: String,
    /// What it rests on, in one line.
    pub basis: String,
    /// What else a reader should know; kept in the file, not shown.
    pub notes: Vec<String>,
}

impl Captions {
    /// What a difference says of itself: that of `after` to `before`, each a name and its stacks.
    #[must_use]
    pub fn of_difference((before, one): (&str, &Folded), (after, other): (&str, &Folded)) -> Self {
        Self {
            title: format!("{after}, against {before}"),
            basis: format!(
                "red: more in the function itself than in {before}, blue: less; {} samples against {}, of which {:.1} % are in \
                 stacks not drawn",
                count(other.samples()),
                count(one.samples()),
                one.share_without(other) * 100.0
            ),
            notes: Vec::new(),
        }
    }
}

/// Draws one profile. Like functions have like colours, in every drawing the same.
///
/// # Errors
/// When there is nothing to draw.
pub fn single(folded: &Folded, captions: &Captions) -> Result<String, String> {
    draw(folded.to_string().lines(), captions)
}

/// Draws `after`, coloured by how it differs from `before`: red where a function itself, without what
/// it calls, takes a larger share of the samples than before, blue where a smaller one.
///
/// # Errors
/// When one of them has no samples.
pub fn difference(before: &Folded, after: &Folded, captions: &Captions) -> Result<String, String> {
    if before.samples() == 0 {
        return Err(nothing());
    }
    draw(before.beside(after).iter().map(String::as_str), captions)
}

fn draw<'a>(lines: impl Iterator<Item = &'a str>, captions: &Captions) -> Result<String, String> {
    let mut options = Options::default();
    options.title.clone_from(&captions.title);
    options.subtitle = Some(captions.basis.clone());
    // They become a comment of XML, where this would end it.
    options.notes = captions.notes.join("; ").replace("--", "- -");
    options.hash = true;
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines, &mut svg).map_err(|_| nothing())?;
    String::from_utf8(svg).map_err(|_| "a drawing that is no text".to_owned())
}

fn nothing() -> String {
    "there are no samples to draw".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captions() -> Captions {
        Captions {
            title: "a <device>".to_owned(),
            basis: "10 samples".to_owned(),
            notes: vec!["--dut a".to_owned(), "more".to_owned()],
        }
    }

    #[test]
    fn a_drawing_says_what_it_shows_and_is_the_same_again() {
        let folded = Folded::parse("t;outer;inner 30\nt;outer 10\n").unwrap();
        let svg = single(&folded, &captions()).unwrap();
        for text in ["a &lt;device&gt;", "10 samples", "- -dut a; more", "inner (30 samples, 75.00%)"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert_eq!(single(&folded, &captions()).unwrap(), svg);
        assert!(single(&Folded::default(), &captions()).is_err());
    }

    #[test]
    fn a_difference_is_of_shares() {
        let before = Folded::parse("t;a 5\nt;b 5\n").unwrap();
        let after = Folded::parse("t;a 75\nt;b 25\n").unwrap();
        let svg = difference(&before, &after, &captions()).unwrap();
        assert!(svg.contains("a (75 samples, 75.00%; +25.00%)"), "{svg}");
        assert!(svg.contains("b (25 samples, 25.00%; -25.00%)"), "{svg}");
        let nothing = Folded::default();
        assert!(difference(&nothing, &after, &captions()).is_err());
        assert!(difference(&before, &nothing, &captions()).is_err());
    }
}
