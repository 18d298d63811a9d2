//! What of a Markdown file is looked at.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the checkout.
pub fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The fenced blocks of one language, in order.
pub fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let after = markdown.split(&fence).skip(1);
    after.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The targets of links: of `[text](target)`, and not within code.
pub fn links(markdown: &str) -> Vec<String> {
    let prose = markdown.split("```").step_by(2);
    let targets = prose.flat_map(|prose| prose.split("](").skip(1));
    targets.map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

/// Files beneath a directory of the checkout whose names end so; not what git ignores.
pub fn files(directory: &str, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root().join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && ![".git", "target"].contains(&name) {
                directories.push(path);
            } else if name.ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found
}
