"""The six tools of execution sessions."""

import asyncio
import errno
import os
import tempfile

import anyio

from harness import PATIENCE, host, sessions, until
from protocol import raw

RECORD = {
    "sessionId", "agent", "command", "resolvedCommand", "args", "argsTruncated", "root", "cwd", "pid", "state", "createdAt",
    "lastActivityAt", "exitCode", "signal", "reason", "error", "backend", "task", "subtask",
}


async def a_session_is_opened_written_read_inspected_and_closed():
    async with host() as one:
        opened = await one.call("coordinate_agents_session_open", root=one.root, agent="shell")
        assert (opened["command"], opened["root"], opened["reused"]) == ("session.open", one.root, False)
        session, record = opened["sessionId"], opened["session"]
        assert session.startswith("session_") and RECORD <= set(record), record
        assert (record["agent"], record["command"], record["resolvedCommand"]) == ("shell", "bash", "/usr/bin/bash")
        assert (record["root"], record["backend"], record["exitCode"]) == (one.root, "pty", None)
        assert record["state"] in {"running", "busy", "idle"}, record
        assert "env" not in {key.lower()[:3] for key in record}
        written = await one.session("write", session, input="echo $((20 + 22)) words")
        assert (written["command"], written["submitted"]) == ("session.write", True)
        seen = await one.shows(session, "42 words")
        read = await one.session("read", session)
        assert (read["command"], read["ended"]) == ("session.read", False) and "42 words" in read["output"]
        assert read["untrusted"] == ["output"]
        inspected = await one.session("inspect", session, maxLines=1)
        assert inspected["command"] == "session.inspect" and inspected["session"]["sessionId"] == session
        # What bash prompts with may have come meanwhile.
        assert "42 words" in seen and "42 words" in (await one.session("inspect", session))["output"]
        # Not submitted until it is.
        await one.session("write", session, input="exit 3", submit=False)
        assert (await one.session("status", session))["session"]["exitCode"] is None
        await one.session("write", session, input="", submit=True)
        ended = await one.ends(session)
        assert (ended["state"], ended["exitCode"], ended["signal"], ended["reason"]) == ("exited", 3, None, "exit")
        closed = await one.session("close", session)
        assert closed["session"]["exitCode"] == 3, "closing what has ended changes nothing"


async def a_healthy_session_is_reused_and_an_ended_one_is_not():
    async with host() as one:
        first = await one.open()
        again = await one.call("coordinate_agents_session_open", root=one.root, agent="shell")
        assert again["reused"] is True and again["sessionId"] == first
        other = os.path.join(one.root, "other")
        os.mkdir(other)
        elsewhere = await one.call("coordinate_agents_session_open", root=other, agent="shell")
        assert elsewhere["reused"] is False and elsewhere["sessionId"] != first
        # It is no session of the other root.
        for verb in ["status", "inspect", "read", "close"]:
            message = await one.fails(
                f"coordinate_agents_session_{verb}", "SESSION_NOT_FOUND", root=other, sessionId=first)
            assert first in message
        await one.session("write", first, input="echo secretless; exit")
        await one.ends(first)
        new = await one.call("coordinate_agents_session_open", root=one.root, agent="shell")
        assert new["reused"] is False and new["sessionId"] != first
        # What ended is a fact that stays, and its input was not replayed.
        assert (await one.session("status", first))["session"]["state"] == "exited"
        assert "secretless" not in (await one.session("inspect", new["sessionId"]))["output"]


async def a_root_is_a_real_directory():
    async with host() as one:
        link, file = os.path.join(one.root, "link"), os.path.join(one.root, "file")
        os.symlink(one.root, link)
        open(file, "w").close()
        tool = "coordinate_agents_session_open"
        for root, why in [(link, "symbolic link"), (file, "not a directory"), (one.root + "/absent", "No such file"), ("relative", "absolute")]:
            message = await one.fails(tool, "SESSION_START_FAILED", root=root, agent="shell")
            assert why in message, message
        assert (await one.process("list"))["sessions"] == []


async def agents_are_exact_and_fail_closed():
    async with host() as one:
        tool = "coordinate_agents_session_open"
        for agent in ["shel", "Shell", "bash", "/bin/bash", "shell; true", ""]:
            await one.fails(tool, "INVALID_AGENT_CONFIG", root=one.root, agent=agent)
        # Declared, and not installed.
        message = await one.fails(tool, "EXECUTABLE_NOT_FOUND", root=one.root, agent="absent-agent")
        assert "no-such-program" in message
        await one.fails(tool, "EXECUTABLE_NOT_RUNNABLE", root=one.root, agent="unrunnable-agent")


async def a_language_is_passed_where_the_catalogue_lets_it():
    async with host() as one:
        opened = await one.call("coordinate_agents_session_open", root=one.root, agent="polyglot-agent", language="zh-CN")
        assert opened["languagePassed"] is True
        assert "zh_CN.UTF-8 zh_CN.UTF-8" in await one.everything(opened["sessionId"])
        opened = await one.call("coordinate_agents_session_open", root=one.root, agent="shell", language="en")
        assert opened["languagePassed"] is False


async def a_close_is_bounded_and_a_graceful_one_asks_first():
    async with host() as one:
        polite = "trap 'echo bye; exit 7' TERM HUP; echo ready; while :; do sleep 0.05; done"
        session = await one.start("sh", "-c", polite)
        await one.shows(session, "ready")
        closed = (await one.session("close", session, timeoutMs=5000))["session"]
        assert (closed["exitCode"], closed["reason"], closed["state"]) == (7, "closed-by-owner", "exited"), closed
        deaf = "trap '' TERM HUP; echo ready; while :; do sleep 0.05; done"
        for arguments in [{"timeoutMs": 100}, {"graceful": False}]:
            session = await one.start("sh", "-c", deaf)
            await one.shows(session, "ready")
            closed = (await one.session("close", session, **arguments))["session"]
            assert (closed["signal"], closed["state"], closed["survivors"]) == ("SIGKILL", "failed", 0), closed
            assert "SIGKILL" in closed["error"]


async def inspecting_and_reading_change_nothing():
    async with host() as one:
        session = await one.start("sh", "-c", "echo one; echo two; read x")
        await one.shows(session, "two")
        before = await one.session("read", session)
        for _ in range(3):
            await one.session("inspect", session)
            await one.session("status", session)
            await one.process("log", session)
            await one.call("screen", sessionId=session)
        assert await one.session("read", session) == before
        await one.process("kill", session)


async def unknown_sessions_are_unknown_to_every_call():
    async with host() as one:
        for id in ["session_nosuch", "nosuch", "session_", "../x", ""]:
            for verb in ["status", "inspect", "read", "close"]:
                await one.fails(f"coordinate_agents_session_{verb}", "SESSION_NOT_FOUND", root=one.root, sessionId=id)
            await one.fails("coordinate_agents_session_write", "SESSION_NOT_FOUND", root=one.root, sessionId=id, input="x")
            await one.fails("screen", "SESSION_NOT_FOUND", sessionId=id)
            for action, arguments in [
                ("poll", {}), ("log", {}), ("write", {"data": "x"}), ("send-keys", {"keys": ["a"]}),
                ("paste", {"text": "x"}), ("submit", {}), ("kill", {}), ("remove", {}),
            ]:
                await one.fails("process", "SESSION_NOT_FOUND", action=action, sessionId=id, **arguments)
        await one.fails("coordinate_agents_session_close", "SESSION_NOT_FOUND", root=one.root)
        await one.fails("process", "SESSION_NOT_FOUND", action="kill")
        session = await one.open()
        message = await one.fails(
            "coordinate_agents_session_read", "SESSION_RUNTIME_ERROR", root=one.root, sessionId=session, cursor=1 << 40)
        assert "beyond the end" in message


async def a_session_whose_directory_is_gone_can_still_be_ended():
    with tempfile.TemporaryDirectory() as parent:
        root = os.path.join(parent, "worktree")
        os.mkdir(root)
        async with host() as one:
            session = await one.open(root=root)
            os.rename(root, root + "-gone")
            closed = await one.session("close", session, root=root)
            assert closed["session"]["state"] == "exited", closed
            assert os.listdir(root + "-gone") == []


async def a_state_follows_what_the_session_does():
    async with host() as one:
        session = await one.open()

        async def state():
            return (await one.session("status", session))["session"]["state"]

        with anyio.fail_after(PATIENCE):
            while await state() != "idle":
                pass
        await one.session("write", session, input="while :; do echo busy; sleep 0.02; done")
        with anyio.fail_after(PATIENCE):
            while await state() != "busy":
                pass
        await one.process("send-keys", session, keys=["C-c"])
        with anyio.fail_after(PATIENCE):
            while await state() != "idle":
                pass


async def a_first_prompt_is_given_as_the_catalogue_says_or_not_at_all():
    async with host() as one:
        # The catalogue says of no way.
        message = await one.fails(
            "coordinate_agents_session_open", "INVALID_AGENT_CONFIG", root=one.root, agent="shell", initialPrompt="echo x")
        assert "initialPrompt" in message
        assert (await one.process("list"))["sessions"] == [], "nothing was opened"
        for agent in ["argument-agent", "terminal-agent"]:
            asked = {"root": one.root, "agent": agent}
            tool = "coordinate_agents_session_open"
            opened = await one.call(tool, **asked, initialPrompt="do it")
            session = opened["sessionId"]
            assert opened["reused"] is False
            await one.shows(session, "given: do it")
            # Never both ways, and not to a session that is there.
            for more in [{"initialPrompt": "more"}, {}]:
                again = await one.call(tool, **asked, **more)
                assert (again["reused"], again["sessionId"]) == (True, session), again
            output = (await one.process("log", session))["output"]
            assert output.count("given:") == 1 and "more" not in output, output
            await one.session("close", session)


async def parallel_opens_give_one_session_and_one_prompt():
    async with host() as one:
        opens = [
            one.call(
                "coordinate_agents_session_open", root=one.root, agent="terminal-agent",
                initialPrompt=f"prompt{n}", task=f"task{n}")
            for n in range(5)
        ]
        opened = await asyncio.gather(*opens)
        assert len({answer["sessionId"] for answer in opened}) == 1, opened
        new = [n for n, answer in enumerate(opened) if not answer["reused"]]
        assert len(new) == 1, opened
        # It is of the task that it was opened for, whoever asks.
        assert {answer["session"]["task"] for answer in opened} == {f"task{new[0]}"}, opened
        session = opened[0]["sessionId"]
        await one.process("write", session, data="end\r")
        output = await one.everything(session)
        assert f"given: prompt{new[0]}" in output and output.count("prompt") == 2, output
        assert "end" in output, output


async def a_first_prompt_is_typed_though_its_open_is_cancelled():
    with tempfile.TemporaryDirectory() as root:
        client = await raw(root)
        await client.begin()
        asked = {"root": root, "agent": "quiet-agent", "initialPrompt": "do it"}
        await client.ask(1, "coordinate_agents_session_open", **asked)
        running = lambda: [row for row in sessions().values() if row["Tool"] == "quiet-agent" and row["Phase"] == "running"]
        await until("the session", running)
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        # What is written meanwhile comes after it.
        await client.ask(2, "coordinate_agents_session_open", **asked)
        opened = (await client.hear())["result"]["structuredContent"]
        assert opened["reused"] is True and opened["ok"], opened
        session, output, id = opened["sessionId"], "", 3
        await client.ask(3, "process", action="write", sessionId=session, data="more\r")
        assert (await client.hear())["result"]["structuredContent"]["ok"]
        ended = False
        while not ended:
            await client.ask(id := id + 1, "process", action="poll", sessionId=session, timeout=10_000)
            polled = (await client.hear())["result"]["structuredContent"]
            output, ended = output + polled["output"], polled["ended"]
        assert "given: do it\n" in output and "then: more\n" in output, output
        assert output.count("given:") == 1, output
        client.process.stdin.close()
        await client.process.wait()


async def a_first_prompt_that_is_not_taken_names_the_session():
    async with host() as one:
        # Its program ends before it is up.
        asked = {"root": one.root, "agent": "brief-agent", "initialPrompt": "do it"}
        result = await one.ask("coordinate_agents_session_open", asked)
        error = result.structured_content["error"]
        [record] = (await one.process("list"))["sessions"]
        assert (error["code"], error["recoverable"], record["exitCode"]) == ("SESSION_NOT_HEALTHY", False, 3), error
        assert error["message"].startswith(f"session {record['sessionId']} was not given its initialPrompt: "), error


async def a_line_feed_at_the_end_is_taken_for_enter():
    async with host() as one:
        session = await one.open()
        written = await one.session("write", session, input="exit 4\n")
        assert (written["bytes"], written["submitted"]) == (len("exit 4"), True), written
        assert (await one.ends(session))["exitCode"] == 4
        # Of a program on pipes it is the end of a line already.
        session = (await one.call("exec", command=["cat"], stdin=True, background=True))["sessionId"]
        written = await one.session("write", session, input="line\n")
        assert (written["bytes"], written["submitted"]) == (len("line\n"), False), written
        await one.process("write", session, eof=True)
        assert await one.everything(session) == "line\n"


async def pipes_take_the_place_of_a_terminal_where_none_is_free_and_that_is_allowed():
    async with host() as one:
        opening = {"root": one.root, "agent": "piped-agent"}
        opened = await one.call("coordinate_agents_session_open", **opening, ioFallback=True)
        assert opened["session"]["backend"] == "pty", "where one is free"
        await one.session("close", opened["sessionId"])
        taken = terminals()
        try:
            for _ in range(2):
                message = await one.fails("coordinate_agents_session_open", "SESSION_START_FAILED", **opening)
                assert "pty" in message and "No space left" in message, message
            message = await one.fails("exec", "SESSION_START_FAILED", command=["true"], pty=True)
            assert "pty" in message, message
            # An entry that knows no pipes takes none.
            await one.fails("coordinate_agents_session_open", "INVALID_AGENT_CONFIG", root=one.root, agent="shell", ioFallback=True)
            opened = await one.call("coordinate_agents_session_open", **opening, ioFallback=True)
            session = opened["sessionId"]
            assert opened["session"]["backend"] == "stdio-fallback", opened
            await one.shows(session, "no terminal")
            assert (await one.session("write", session, input="typed"))["submitted"] is True
            await one.shows(session, "got typed")
            record = await one.ends(session)
            assert (record["exitCode"], record["backend"]) == (0, "stdio-fallback"), record
            done = await one.exec("sh", "-c", "test -t 1 || echo none", ioFallback=True)
            assert (done["output"], done["session"]["backend"]) == ("none\n", "stdio-fallback"), done
        finally:
            for pty in taken:
                os.close(pty)
        opened = await one.call("coordinate_agents_session_open", **opening, ioFallback=True)
        assert (opened["session"]["backend"], opened["reused"]) == ("pty", False), opened
        await one.session("close", opened["sessionId"])


def terminals():
    """Takes every free pseudoterminal; the bed of this layer has few."""
    taken = []
    while len(taken) < 200:
        try:
            taken.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            return taken
    raise AssertionError("the bed has no bound on pseudoterminals: use tests/run")
