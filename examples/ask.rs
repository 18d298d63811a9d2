//! Asks a shell, in a workspace, something and prints what its terminal showed: `cargo run --example ask DIR`.

use st2_tools::client::{Client, ClientError, OpenOptions, READ_MAX, ReadOptions};
use zbus::Connection;

/// Types one command into a shell of its own, waits for the shell's end, and gives all that its terminal showed.
///
/// # Errors
/// Any [`ClientError`].
pub async fn ask_a_shell(workspace: &str, command: &str) -> Result<String, ClientError> {
    let client = Client::over(Connection::session().await?).await?;
    let options = OpenOptions { workspace: Some(workspace.into()), ..OpenOptions::default() };
    let session = client.open("shell", &options).await?.session;
    session.write(format!("{command}; exit\r").as_bytes()).await?;
    session.wait().await?;
    let shown = session.read(0, READ_MAX, &ReadOptions::default()).await?;
    Ok(String::from_utf8_lossy(&shown.data).into_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = std::env::args().nth(1).ok_or("usage: ask DIR")?;
    println!("{}", ask_a_shell(&workspace, "echo $((6 * 7))").await?);
    Ok(())
}
