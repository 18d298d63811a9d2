//! The official TypeScript SDK: another reading of the same protocol.

use std::fs;

use super::hosts::{Bench, directory, installed};

#[tokio::test]
async fn a_host_in_typescript_uses_every_tool() {
    let bench = Bench::new().await;
    // Node looks for modules beside the program that asks for them.
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(
        installed("mcp-node/node_modules"),
        place.path().join("node_modules"),
    )
    .unwrap();
    let program = place.path().join("host.mjs");
    fs::copy(directory().join("host.mjs"), &program).unwrap();
    bench.run("node", &[program.to_str().unwrap()], &[]).await;
}
