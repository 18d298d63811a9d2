"""What a task runner needs: tasks over worktrees, followed and ended."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
from functools import partial

import anyio

from harness import PATIENCE, ST2_TOOLS, git, host, lives, phase, repository, sessions


async def two_subtasks_in_two_worktrees_are_never_mixed():
    async with host(root=None) as one:
        main = os.path.join(one.root, "repository")
        os.mkdir(main)
        repository(main, file="common\n")
        worktrees = {}
        for subtask in ["left", "right"]:
            worktrees[subtask] = os.path.join(one.root, subtask)
            git(main, "worktree", "add", "--quiet", worktrees[subtask], "-b", subtask)

        answers = {}

        async def work(subtask):
            root, labels = worktrees[subtask], {"task": "merge", "subtask": subtask}
            session = await one.open(root=root, **labels)
            run = await one.exec(
                "sh", "-c", f"for i in $(seq 50); do echo {subtask} $i; done; echo {subtask} >only; pwd",
                workdir=root, **labels)
            await one.session("write", session, root=root, input=f"git add only; git commit -qm {subtask}; echo done-$?")
            await one.shows(session, "done-0")
            answers[subtask] = (session, run)

        async with anyio.create_task_group() as together:
            for subtask in worktrees:
                together.start_soon(work, subtask)

        for subtask, other in [("left", "right"), ("right", "left")]:
            session, run = answers[subtask]
            assert other not in run["output"] and run["output"].count(subtask) == 51, run["output"]
            for record in [run["session"], (await one.session("status", session, root=worktrees[subtask]))["session"]]:
                assert (record["task"], record["subtask"], record["root"]) == ("merge", subtask, worktrees[subtask])
            assert git(worktrees[subtask], "log", "--format=%s", "-1").strip() == subtask
            assert (pathlib.Path(worktrees[subtask]) / "only").read_text() == f"{subtask}\n"
            listed = (await one.process("list", task="merge", subtask=subtask))["sessions"]
            assert {record["subtask"] for record in listed} == {subtask} and len(listed) == 2
            assert sessions()[session.removeprefix("session_")]["Labels"]["subtask"] == subtask
            await one.fails(
                "coordinate_agents_session_status", "SESSION_NOT_FOUND", root=worktrees[other], sessionId=session)

        # The end of one part is not that of the other; nothing of git's is touched.
        before = git(main, "worktree", "list") + git(main, "branch", "--list")
        left, right = answers["left"][0], answers["right"][0]
        killed = await one.process("kill", task="merge", subtask="left")
        assert (killed["killed"], killed["confirmed"]) == (1, True), killed
        assert phase(left) == "closed" and phase(right) == "running"
        closed = await one.call("coordinate_agents_session_close", root=worktrees["right"], task="merge")
        assert closed["closed"] == 1 and phase(right) == "closed"
        assert git(main, "worktree", "list") + git(main, "branch", "--list") == before


async def a_task_is_recovered_from_facts():
    async with host("--task", "nightly") as one:
        session = await one.open(subtask="a")
        status = (await one.session("status", session))["session"]
        assert (status["task"], status["subtask"], status["exitCode"]) == ("nightly", "a", None), "healthy"
        resumed = await one.call("coordinate_agents_session_open", root=one.root, agent="shell", subtask="a")
        assert resumed["reused"] and resumed["sessionId"] == session, "resumed"
        await one.session("write", session, input="exit 9")
        await one.ends(session)
        status = (await one.session("status", session))["session"]
        assert (status["state"], status["exitCode"], status["reason"]) == ("exited", 9, "exit"), "ended"
        await one.fails(
            "coordinate_agents_session_status", "SESSION_NOT_FOUND", root=one.root, sessionId="session_before")
        assert len((await one.process("list"))["sessions"]) == 1, "nothing was restarted"


async def a_task_is_ended_within_a_bounded_time_whatever_it_does():
    async with host() as one:
        deaf = "trap '' TERM HUP INT; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done"
        ids = [
            await one.start("sh", "-c", deaf, task="t", subtask=str(n)) for n in range(4)
        ]
        other = await one.start("sleep", "1000", task="other")
        for id in ids:
            await one.shows(id, "ready")
        marker = pathlib.Path(one.root) / "kept"
        marker.write_text("kept")
        with anyio.fail_after(5):
            closed = await one.call("coordinate_agents_session_close", root=one.root, task="t", timeoutMs=300)
        assert closed["closed"] == 4 and all(record["survivors"] == 0 for record in closed["sessions"])
        assert all(not lives(record["pid"]) for record in closed["sessions"])
        assert marker.read_text() == "kept" and phase(other) == "running"
        again = await one.call("coordinate_agents_session_close", root=one.root, task="t")
        assert again["closed"] == 0, "ending what has ended is no error"
        await one.process("kill", other)


async def an_end_that_is_not_confirmed_is_told():
    async with host() as one:
        ids = [await one.start("sleep", "1000", task="t") for _ in range(3)]
        broker = int(os.environ["ST2_TEST_BROKER"])
        messages = {}

        async def end(id, tool, **arguments):
            messages[id] = await one.fails(tool, "SESSION_CLOSE_FAILED", sessionId=id, **arguments)

        os.kill(broker, signal.SIGSTOP)
        try:
            # Its bound: the time to end gently, and ten seconds.
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as together:
                    together.start_soon(partial(end, ids[0], "coordinate_agents_session_close", root=one.root, timeoutMs=100))
                    together.start_soon(partial(end, ids[1], "process", action="kill"))
                    together.start_soon(partial(end, ids[2], "process", action="remove"))
        finally:
            os.kill(broker, signal.SIGCONT)
        assert all(id in messages[id] and "not confirmed" in messages[id] for id in ids), messages
        # The same call again tells how it ended; what was to be removed is still known.
        closed = await one.session("close", ids[0])
        assert closed["session"]["survivors"] == 0 and not lives(closed["session"]["pid"]), closed
        assert (await one.process("kill", ids[1]))["confirmed"]
        assert (await one.process("remove", ids[2]))["removed"]


async def events_carry_task_and_subtask():
    async with host() as one:
        done = await one.exec("true", task="graph", subtask="leaf")
        listed = subprocess.run([ST2_TOOLS, "--json", "events"], check=True, capture_output=True, timeout=PATIENCE)
        rows = [json.loads(line) for line in listed.stdout.splitlines()]
        mine = [row for row in rows if row["session"] == done["sessionId"].removeprefix("session_")]
        assert [row["kind"] for row in mine][0] == "session-starting", mine
        assert "session-exited" in [row["kind"] for row in mine], mine
        assert all(row["labels"]["task"] == "graph" and row["labels"]["subtask"] == "leaf" for row in mine), mine
        assert [row["seq"] for row in mine] == sorted({row["seq"] for row in mine})


async def an_identity_attributes_every_session_and_names_the_workspace():
    with tempfile.TemporaryDirectory() as catalog, tempfile.TemporaryDirectory(prefix="workspace") as workspace:
        declared = pathlib.Path(catalog, "agents/demo/planner/agent.kdl")
        declared.parent.mkdir(parents=True)
        text = f'agent "planner" {{ workspace "{workspace}"; }}\n'
        declared.write_text(text)
        os.environ["ST2_TOOLS_CATALOG"] = catalog
        async with host("--agent", "demo.planner", "--label", "purpose=test") as one:
            done = await one.exec("pwd")
            assert done["output"].strip() == done["root"] == workspace, done
            labels = sessions()[done["sessionId"].removeprefix("session_")]["Labels"]
            assert labels == {"host": "demo", "agent": "planner", "purpose": "test"}, labels
        assert declared.read_text() == text and len(list(pathlib.Path(catalog).rglob("*"))) == 4, "nothing is written there"
