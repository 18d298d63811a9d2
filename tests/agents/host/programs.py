"""Programs that a person uses, driven through MCP alone."""

import pathlib

from harness import git, host, repository


async def python_repl_is_driven():
    async with host() as one:
        session = await one.start("python3", "-q")
        await one.shows(session, ">>>")
        await one.process("write", session, data="def f(n):\r    return n * 2\r\r")
        await one.process("write", session, data="print('=', f(21))\r")
        await one.shows(session, "= 42")
        await one.process("send-keys", session, keys=["C-d"])
        assert (await one.ends(session))["exitCode"] == 0


async def a_pager_is_driven():
    async with host() as one:
        text = "".join(f"line {n}\n" for n in range(1, 501))
        (pathlib.Path(one.root) / "long.txt").write_text(text)
        session = await one.start("less", "long.txt")
        first = await one.draws(session, "line 1\n", "line 20\n")
        assert "line 450" not in first
        await one.process("send-keys", session, keys=["pagedown"])
        await one.draws(session, "line 45\n")
        await one.process("send-keys", session, literal="/line 321", keys=["enter"])
        await one.draws(session, "line 321\n")
        await one.process("send-keys", session, keys=["S-g"])
        await one.draws(session, "line 500\n")
        await one.process("send-keys", session, keys=["q"])
        assert (await one.ends(session))["exitCode"] == 0


async def git_add_patch_is_driven():
    async with host() as one:
        repository(one.root, fruit="apple\n" * 20)
        lines = ["apple\n"] * 20
        lines[0], lines[-1] = "pear\n", "plum\n"
        (pathlib.Path(one.root) / "fruit").write_text("".join(lines))
        session = await one.open(agent="git-add")
        await one.shows(session, "(1/2) Stage this hunk")
        await one.session("write", session, input="y")
        await one.shows(session, "(2/2) Stage this hunk")
        await one.session("write", session, input="n")
        assert (await one.ends(session))["exitCode"] == 0
        staged = git(one.root, "diff", "--cached")
        assert "+pear" in staged and "+plum" not in staged, staged


async def lazygit_is_driven():
    async with host() as one:
        repository(one.root, apples="one\n", pears="one\n")
        for name in ["apples", "pears"]:
            (pathlib.Path(one.root) / name).write_text("one\ntwo\n")
        session = await one.open(agent="lazygit")
        await one.draws(session, "M apples", "M pears", "first")
        assert git(one.root, "status", "--porcelain") == " M apples\n M pears\n"
        await one.process("send-keys", session, keys=["j", "space"])
        await one.draws(session, "M  apples")
        assert git(one.root, "status", "--porcelain") == "M  apples\n M pears\n"
        await one.process("send-keys", session, keys=["q"])
        assert (await one.ends(session))["exitCode"] == 0
