//! What a browser lets the page do (Content Security Policy): its script, its style and its drawings enter; a policy
//! leaves that allows these and no others, and nothing to be reached.
//!
//! Drawings are of other programs. Each is shown in a frame without the page's origin, which inherits the policy: what
//! each has of scripts and styles is allowed by itself.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// What `page/src/flame-graphs.ts` puts before the script of a drawing.
const BEFORE_DRAWING: &str = "history.replaceState = () => {};";

/// The policy of a page with these `drawings`, as SVG.
pub(super) fn policy<'a>(script: &str, style: &str, drawings: impl Iterator<Item = &'a str>) -> String {
    let (mut scripts, mut styles, mut handlers) =
        (BTreeSet::from([hash(script)]), BTreeSet::from([hash(style)]), BTreeSet::new());
    for drawing in drawings {
        scripts.insert(hash(BEFORE_DRAWING));
        scripts.extend(contents(drawing, "script").iter().map(|text| hash(text)));
        styles.extend(contents(drawing, "style").iter().map(|text| hash(text)));
        handlers.extend(on_load(drawing).map(|text| hash(&text)));
    }
    let frames = if scripts.len() > 1 { "; frame-src blob:" } else { "" };
    if !handlers.is_empty() {
        handlers.insert("'unsafe-hashes'".to_owned());
    }
    format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src blob:; style-src {}; script-src {}{frames}",
        list(styles),
        list(scripts.union(&handlers).cloned())
    )
}

fn list(sources: impl IntoIterator<Item = String>) -> String {
    sources.into_iter().collect::<Vec<_>>().join(" ")
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The text of each element `name` of `svg`, as a browser reads it.
fn contents(svg: &str, name: &str) -> Vec<String> {
    let (begin, end) = (format!("<{name}"), format!("</{name}"));
    let mut found = Vec::new();
    let mut rest = svg;
    while let Some((_, after)) = rest.split_once(&begin) {
        let Some((attributes, inside)) = after.split_once('>') else { break };
        // Another name that begins so, or an empty element.
        if !attributes.is_empty()
            && (attributes.ends_with('/') || !attributes.starts_with(char::is_whitespace))
        {
            rest = inside;
            continue;
        }
        let mut text = String::new();
        rest = inside;
        while !rest.is_empty() && !rest.starts_with(&end) {
            if let Some(data) = rest.strip_prefix("<![CDATA[") {
                let (data, after) = data.split_once("]]>").unwrap_or((data, ""));
                text += data;
                rest = after;
            } else {
                let length = rest.char_indices().skip(1).find(|(_, letter)| *letter == '<');
                let (plain, after) = rest.split_at(length.map_or(rest.len(), |(at, _)| at));
                text += &decoded(plain);
                rest = after;
            }
        }
        found.push(text);
    }
    found
}

/// What `svg` does when it is shown.
fn on_load(svg: &str) -> Option<String> {
    let (_, after) = svg.split_once("<svg")?;
    let (attributes, _) = after.split_once('>')?;
    let (_, value) = attributes.split_once("onload=\"")?;
    Some(decoded(value.split_once('"')?.0))
}

/// XML's text without the letters that stand for others.
fn decoded(text: &str) -> String {
    const LETTERS: [(&str, &str); 5] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    LETTERS.iter().fold(text.to_owned(), |text, (coded, letter)| text.replace(coded, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "<svg onload=\"init(evt)\"><style type=\"text/css\">\na &gt; b {}</style>\
        <script type=\"text/ecmascript\"><![CDATA[if (1 < 2]]><![CDATA[) f();]]></script><scripts/><style/></svg>";

    #[test]
    fn scripts_and_styles_of_a_drawing_are_read_as_a_browser_does() {
        assert_eq!(contents(DRAWING, "script"), ["if (1 < 2) f();"]);
        assert_eq!(contents(DRAWING, "style"), ["\na > b {}"]);
        assert_eq!(on_load(DRAWING).as_deref(), Some("init(evt)"));
        for broken in ["<script", "<script>", "<script><![CDATA[x", "<script>x<", "<svg onload=\"x"] {
            assert!(contents(broken, "script").len() <= 1 && on_load(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn nothing_is_allowed_that_is_not_of_the_page() {
        let plain = policy("f()", "a {}", [].into_iter());
        assert!(!plain.contains("unsafe") && !plain.contains("frame-src"), "{plain}");
        let drawn = policy("f()", "a {}", [DRAWING, DRAWING].into_iter());
        assert!(!drawn.contains("unsafe-inline") && drawn.contains("frame-src blob:"), "{drawn}");
        for allowed in ["init(evt)", "if (1 < 2) f();", "\na > b {}", BEFORE_DRAWING, "f()", "a {}"] {
            assert_eq!(drawn.matches(&hash(allowed)).count(), 1, "{allowed}");
        }
    }
}
