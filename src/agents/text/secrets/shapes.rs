//! What keys and tokens look like that say by their beginning what they are.

/// Characters that a token goes on with, as a class of a regular expression.
const TOKEN: &str = r"[A-Za-z0-9_.+/=\x7e-]";

/// The shortest part of a prefix that is held back where the text ends in it.
const TELLING: usize = 4;

/// One kind.
struct Shape {
    prefixes: &'static [&'static str],
    /// What follows, as a class of a regular expression, and at least how often.
    follows: (&'static str, usize),
    /// Only at the beginning of a word: the prefix is the end of ordinary words, too.
    word: bool,
}

const SHAPES: &[Shape] = &[
    Shape::of(&["AKIA", "ASIA"], "[0-9A-Z]", 12),
    Shape::of(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "hf_"], "[A-Za-z0-9]", 16),
    Shape::of(&["github_pat_", "pypi-", "dckr_pat_"], "[A-Za-z0-9_-]", 16),
    Shape::of(&["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-"], "[A-Za-z0-9-]", 8),
    Shape::of(&["xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], "[A-Za-z0-9-]", 8),
    Shape::of(&["glpat-", "glrt-", "gldt-", "glptt-"], "[A-Za-z0-9_-]", 12),
    Shape::of(&["AIza", "ya29."], "[0-9A-Za-z_-]", 20),
    Shape::of(&["eyJ"], "[A-Za-z0-9_-]", 10),
    Shape::of(&["sk_live_", "sk_test_", "rk_live_", "rk_test_"], "[A-Za-z0-9]", 10),
    Shape::of(&["dop_v1_", "doo_v1_", "dor_v1_"], "[0-9a-f]", 20),
    Shape::of(&["AGE-SECRET-KEY-1"], "[0-9A-Z]", 20),
    Shape { word: true, ..Shape::of(&["sk-", "hvs.", "SG."], "[A-Za-z0-9_-]", 16) },
];

impl Shape {
    const fn of(prefixes: &'static [&'static str], class: &'static str, least: usize) -> Self {
        Self { prefixes, follows: (class, least), word: false }
    }

    fn beginning(&self) -> String {
        let prefixes: Vec<String> = self.prefixes.iter().map(|it| regex::escape(it)).collect();
        format!("{}(?:{})", if self.word { r"(?-u:\b)" } else { "" }, prefixes.join("|"))
    }
}

/// A regular expression of what is long enough to be one.
pub(super) fn whole() -> String {
    let shapes = SHAPES.iter().map(|shape| {
        let (class, least) = shape.follows;
        format!("{}{class}{{{least}}}", shape.beginning())
    });
    shapes.collect::<Vec<_>>().join("|")
}

/// A regular expression of what a text ends in that may become one.
pub(super) fn begun() -> String {
    let beginnings = SHAPES.iter().map(|shape| format!("{}{TOKEN}*", shape.beginning()));
    let prefixes = SHAPES.iter().flat_map(|shape| shape.prefixes);
    let parts = prefixes.flat_map(|prefix| {
        (TELLING..prefix.len()).rev().map(|length| regex::escape(&prefix[..length]))
    });
    format!("(?:{})$", beginnings.chain(parts).collect::<Vec<_>>().join("|"))
}
