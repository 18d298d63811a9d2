//! Programs, and what they are to do: shell scripts that print the name of the program at last, if all went well.

/// One program.
pub struct Program {
    /// What it is.
    pub name: &'static str,
    /// What it does, for `sh -e` in an empty workspace.
    pub script: &'static str,
    /// The tiers in which it cannot.
    pub broken_in: &'static [&'static str],
}

const fn works(name: &'static str, script: &'static str) -> Program {
    Program { name, script, broken_in: &[] }
}

/// All of them.
pub const ALL: &[Program] = &[
    works(
        "git",
        "git init -q; echo a >file; git add file; git commit -qm first; git switch -qc other
         echo b >>file; git commit -qam second; git switch -q main; git merge -q other
         echo c >>file; git stash -q; git stash pop -q; git gc -q; git fsck; git worktree add -q ../$(basename $PWD)/tree
         printf 'y\\n' | git add -p >/dev/null; git diff --cached | grep '^+c'",
    ),
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
    Program {
        name: "python3: a pool of multiprocessing, whose semaphores are in /dev/shm",
        script: "/usr/bin/python3 - <<'END'
import multiprocessing as m
with m.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1]) == [1]
END",
        broken_in: &["seccomp"],
    },
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
    Program {
        name: "tmux, which makes terminals and a server on a socket",
        script: "tmux -S $TMPDIR/socket -f /dev/null new-session -d 'sleep 9'; tmux -S $TMPDIR/socket kill-server",
        broken_in: &["resolve-unix", "mounts", "seccomp"],
    },
    Program {
        name: "script, which makes a terminal of its own",
        script: "script -qec true typescript </dev/null",
        broken_in: &["resolve-unix", "mounts", "seccomp"],
    },
];
