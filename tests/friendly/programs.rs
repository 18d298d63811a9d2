//! Programs, and what they are to do: shell scripts that print the name of the program at last, if all went well.

/// One program.
pub struct Program {
    /// What it is.
    pub name: &'static str,
    /// The tool that runs its script.
    pub tool: &'static str,
    /// What it does, for `sh -e` in an empty workspace.
    pub script: &'static str,
    /// The tiers in which it cannot.
    pub broken_in: &'static [&'static str],
}

impl Program {
    /// As a tool that runs nothing but such scripts, under its profile.
    const fn under(mut self, tool: &'static str) -> Self {
        self.tool = tool;
        self
    }

    /// Where it cannot.
    const fn broken_in(mut self, tiers: &'static [&'static str]) -> Self {
        self.broken_in = tiers;
        self
    }
}

const fn works(name: &'static str, script: &'static str) -> Program {
    Program { name, tool: "command", script, broken_in: &[] }
}

/// The tools beside the shipped `command`: a name, and its file.
pub const TOOLS: &[(&str, &str)] = &[
    ("git-script", "title = 'git'\ncommand = ['timeout']\narguments = 'any'\nprofile = 'git'"),
    (
        "build-script",
        "title = 'build'\ncommand = ['timeout']\narguments = 'any'\nprofile = 'build'",
    ),
    (
        "agent-script",
        "title = 'agent'\ncommand = ['timeout']\narguments = 'any'\nprofile = 'agent'\ngrants.write = ['~/.coder']",
    ),
    (
        "terminal-script",
        "title = 'terminals'\ncommand = ['timeout']\narguments = 'any'\n[grants]\ndevices = ['/dev/ptmx']",
    ),
];

/// All of them.
pub const ALL: &[Program] = &[
    works(
        "git",
        "git init -q; echo a >file; git add file; git commit -qm first; git switch -qc other
         echo b >>file; git commit -qam second; git switch -q main; git merge -q other
         echo c >>file; git stash -q; git stash pop -q; git gc -q; git fsck; git worktree add -q ../$(basename $PWD)/tree
         printf 'y\\n' | git add -p >/dev/null; git diff --cached | grep '^+c'",
    )
    .under("git-script"),
    works(
        "vim",
        "echo first >letter; vim -es -u NONE -c 'normal osecond' -c wq letter; grep second letter",
    ),
    works("less", "seq 100 >long; LESSHISTFILE=- less -FX long </dev/null | grep -qx 100"),
    works("jobs", "sleep 1000 & kill $!; wait $! || test $? = 143"),
    works("pipes", "seq 3 >long; mkfifo pipe; (seq 9 >pipe &); sort -rn <pipe | head -1 | grep 9; xargs -P4 -n1 echo <long"),
    works(
        "python3: subprocess, threads, asyncio",
        "/usr/bin/python3 - <<'END'
import asyncio, subprocess, threading, tempfile, sqlite3
assert subprocess.run(['cat'], input=b'x', capture_output=True, check=True).stdout == b'x'
thread = threading.Thread(target=print); thread.start(); thread.join()
async def main():
    process = await asyncio.create_subprocess_exec('true')
    assert await process.wait() == 0
asyncio.run(main())
tempfile.TemporaryFile().write(b'x')
sqlite3.connect('data').execute('create table t (c)')
END",
    ),
    works(
        "python3: multiprocessing without semaphores",
        "/usr/bin/python3 - <<'END'
import multiprocessing as m
def answer(end): end.send(42)
here, there = m.Pipe()
process = m.get_context('fork').Process(target=answer, args=(there,)); process.start()
assert here.recv() == 42; process.join()
END",
    ),
    works(
        "python3: a pool of multiprocessing, whose semaphores are in /dev/shm",
        "/usr/bin/python3 - <<'END'
import multiprocessing as m
with m.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1]) == [1]
END",
    )
    .broken_in(&["resolve-unix", "seccomp"]),
    works(
        "node",
        "node -e '
const { execFileSync, fork } = require(\"child_process\"), { Worker } = require(\"worker_threads\");
require(\"fs\").writeFileSync(\"file\", execFileSync(\"cat\", { input: \"x\" }));
new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(1)\", { eval: true })
  .on(\"message\", () => setTimeout(() => process.exit(0), 1)).on(\"error\", () => process.exit(1));'",
    ),
    works(
        "make and cc",
        "printf 'int main(void) { return 0; }' >main.c; printf 'main: main.c\\n\\tcc -o main main.c\\n' >Makefile
         make -sj2; ./main",
    ),
    works("tar", "mkdir dir; seq 999 >dir/file; tar -czf dir.tar.gz dir; rm -r dir; tar -xzf dir.tar.gz; test -s dir/file"),
    works("a file watcher", "touch log; tail -F log >seen & echo line >>log; until grep line seen; do sleep 0.01; done; kill $!"),
    works("cargo: a crate with a dependency beside it and a vendored one", CARGO).under("build-script"),
    works(
        "npm: a package from a file, and its script",
        "mkdir dependency; cd dependency
         echo '{\"name\": \"dependency\", \"version\": \"1.0.0\", \"main\": \"main.js\"}' >package.json
         echo 'module.exports = 42' >main.js; npm pack --silent; cd ..
         echo '{\"name\": \"it\", \"version\": \"1.0.0\", \"scripts\": {\"answer\": \"node it.js >answer\"}}' >package.json
         echo 'console.log(require(\"dependency\"))' >it.js
         npm install --offline --no-audit --no-fund ./dependency/dependency-1.0.0.tgz
         npm run answer; grep -x 42 answer",
    )
    .under("build-script"),
    works(
        "an agent: a repository, its toolchains, a directory of its own",
        "git init -q; echo 'console.log(6 * 7)' >it.js; git add it.js; git commit -qm first
         node it.js >~/.coder/answer; grep -x 42 ~/.coder/answer; rm ~/.coder/answer
         cargo --version; /usr/bin/python3 -c 'import ssl'",
    )
    .under("agent-script"),
    works("tmux, which makes terminals and a server on a socket", TMUX)
        .under("terminal-script")
        .broken_in(&["resolve-unix", "seccomp"]),
    works("script, which makes a terminal of its own", SCRIPT)
        .under("terminal-script")
        .broken_in(&["resolve-unix", "seccomp"]),
    works("tmux without /dev/ptmx", TMUX).broken_in(&["resolve-unix", "mounts", "seccomp"]),
    works("script without /dev/ptmx", SCRIPT).broken_in(&["resolve-unix", "mounts", "seccomp"]),
];

const TMUX: &str = "
    tmux -S $TMPDIR/socket -f /dev/null new-session -d 'echo inside >from-tmux; sleep 9'
    until grep inside from-tmux; do sleep 0.01; done; tmux -S $TMPDIR/socket kill-server";

const SCRIPT: &str =
    "script -qec 'test -t 0 && tty && echo inside' typescript </dev/null; grep inside typescript";

const CARGO: &str = r#"
    mkdir -p src beside/src vendor/vendored/src .cargo
    echo 'fn main() { println!("{}", beside::HALF + vendored::HALF) }' >src/main.rs
    printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n' >Cargo.toml
    printf 'beside = { path = "beside" }\nvendored = "1"\n' >>Cargo.toml
    printf '[package]\nname = "beside"\nversion = "0.1.0"\nedition = "2021"\n' >beside/Cargo.toml
    printf '[package]\nname = "vendored"\nversion = "1.0.0"\nedition = "2021"\n' >vendor/vendored/Cargo.toml
    echo 'pub const HALF: i32 = 21;' | tee beside/src/lib.rs >vendor/vendored/src/lib.rs
    echo '{"files": {}}' >vendor/vendored/.cargo-checksum.json
    printf '[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "vendor"\n' >.cargo/config.toml
    cargo build --quiet --offline; ./target/debug/small | grep -x 42"#;
