"""One test for each defect that was seen elsewhere."""

import asyncio
import json
import os
import pathlib
import random
import signal
import tempfile

import anyio

from harness import PATIENCE, host, lives, phase, sessions, until


async def defect_cursors_count_bytes_and_a_limited_read_goes_on_where_it_stopped():
    async with host() as one:
        session = (await one.exec("seq", "1", "500"))["sessionId"]
        whole = "".join(f"{n}\n" for n in range(1, 501))
        seen, cursor, reads = "", 0, 0
        while True:
            piece = await one.session("read", session, cursor=cursor, maxLines=7)
            assert piece["output"].count("\n") <= 7 and piece["next"] >= cursor
            seen, cursor, reads = seen + piece["output"], piece["next"], reads + 1
            if piece["ended"]:
                break
            assert piece["more"] and piece["lost"] == 0
        assert seen == whole and reads > 70
        # The terminal's line ends are two bytes: cursors count what was written, and mean the same for ever.
        assert cursor == len(whole) + 500
        assert (await one.session("read", session, cursor=3, maxLines=1))["output"] == "2\n"


async def defect_no_byte_is_lost_over_random_read_sizes():
    """`read` and `poll` at any moment while the program writes: 10 000 calls, between which 20 lines come at a time."""
    randoms = random.Random(20)
    async with host() as one:
        script = (
            "stty -echo; echo ready; i=0; while read -r x && [ -z \"$x\" ]; do"
            " end=$((i+20)); while [ $i -lt $end ]; do echo \"$i\"; i=$((i+1)); done; done"
        )
        session = await one.start("sh", "-c", script)
        assert await one.shows(session, "ready\n") == "ready\n"
        text = {"read": "", "poll": "ready\n"}
        cursor, wanted, caught_up = 0, 0, 0

        def add(how, answer):
            text[how] += answer["output"]
            assert answer["lost"] == 0
            return answer["ended"]

        async def read():
            nonlocal cursor
            lines, size = randoms.randint(1, 6), randoms.randint(1024, 2048)
            piece = await one.session("read", session, cursor=cursor, maxLines=lines, maxBytes=size)
            assert piece["output"].count("\n") <= lines and len(piece["output"].encode()) <= size
            cursor = piece["next"]
            return add("read", piece), piece["more"]

        async def poll(timeout):
            return add("poll", await one.process("poll", session, timeout=timeout))

        for _ in range(10_000):
            match randoms.choices(["read", "poll", "more"], [75, 15, 10])[0]:
                case "read":
                    ended, more = await read()
                    caught_up += not more
                case "poll":
                    ended = await poll(randoms.choice([0, 0, 1]))
                case "more":
                    ended, wanted = False, wanted + 20
                    await one.process("write", session, data="\r")
            assert not ended, "it waits for more"
        # Reads at the end of what there was, and reads behind it.
        assert 500 < caught_up < 7000, caught_up
        await one.process("write", session, data="enough\r")
        while not (await read())[0]:
            pass
        while not await poll(1000):
            pass
        whole = "ready\n" + "".join(f"{n}\n" for n in range(wanted))
        assert wanted > 10_000
        for seen in text.values():
            assert seen == whole, difference(whole, seen)


async def defect_output_stays_after_the_exit():
    async with host() as one:
        session = (await one.exec("sh", "-c", "echo kept; exit 1"))["sessionId"]
        await until("the end", lambda: phase(session) == "closed")
        for _ in range(2):
            assert (await one.session("read", session))["output"] == "kept\n"
            assert (await one.session("inspect", session))["output"] == "kept\n"
            assert (await one.process("log", session))["output"] == "kept\n"


async def defect_a_kill_takes_the_whole_tree_and_is_not_told_as_an_exit():
    async with host() as one:
        tree = (
            "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; echo $$ >deep; exec sleep 1000' &"
            " (sleep 1000 & echo $! >orphan); echo ready; while :; do sleep 0.05; done"
        )
        session = await one.start("sh", "-c", tree)
        await one.shows(session, "ready")
        root = pathlib.Path(one.root)
        await until("the tree", lambda: all((root / name).exists() and (root / name).read_text() for name in ["deep", "orphan"]))
        hidden = [int((root / name).read_text()) for name in ["deep", "orphan"]]
        assert all(lives(pid) for pid in hidden), hidden
        killed = await one.process("kill", session)
        record = killed["sessions"][0]
        assert killed["confirmed"] and killed["killed"] == 1 and record["survivors"] == 0, killed
        assert (record["state"], record["signal"], record["reason"]) == ("failed", "SIGKILL", "killed-by-owner")
        assert not lives(record["pid"]) and not any(lives(pid) for pid in hidden), hidden
        again = (await one.process("kill", session))
        assert again["killed"] == 0 and again["sessions"][0]["reason"] == "killed-by-owner", "the first reason stays"


async def defect_the_host_s_environment_is_not_inherited():
    os.environ["HOST_TOKEN"] = "of-the-host"
    async with host() as one:
        done = await one.exec("env")
        names = {line.partition("=")[0] for line in done["output"].splitlines()}
        assert "of-the-host" not in done["output"] and "HOST_TOKEN" not in names
        assert not names & {"DBUS_SESSION_BUS_ADDRESS", "ST2_TOOLS_POLICY_PATH", "PYTHONPATH", "ST2_TOOLS_BIN_DIR"}, names
        assert "of-the-host" not in str(await one.process("list"))


async def defect_an_unknown_key_is_an_error_and_nothing_is_sent():
    async with host() as one:
        script = "stty raw -echo; echo ready; dd bs=1 count=2 2>/dev/null | od -An -tx1"
        session = await one.start("sh", "-c", script)
        await one.shows(session, "ready")
        for arguments in [
            {"literal": "lost", "keys": ["a", "Entr"]},
            {"literal": "lost", "hex": ["0g"]},
            {"literal": "lost", "hex": ["1"], "keys": ["a"]},
            {"keys": ["C-C-c"]},
            {"literal": "lost", "keys": ["a"] * 3 + ["Hyper-x"], "delayMs": 1},
        ]:
            message = await one.fails("process", "SESSION_WRITE_FAILED", action="send-keys", sessionId=session, **arguments)
            assert "key" in message or "hex" in message, message
        await one.process("send-keys", session, keys=["o", "k"])
        await one.ends(session)
        assert "6f 6b" in await one.everything(session)


async def defect_timeouts_hold_in_the_background_and_leave_no_child():
    async with host() as one:
        script = "setsid sh -c 'trap \"\" TERM HUP; echo $$ >child; exec sleep 1000' & echo ready; sleep 1000"
        for arguments in [{"background": True}, {"yieldMs": 10}, {"yieldMs": 20_000}]:
            child = pathlib.Path(one.root) / "child"
            answer = await one.exec("sh", "-c", script, timeoutSec=4, **arguments)
            record = await one.ends(answer["sessionId"])
            assert (record["reason"], record["state"], record["survivors"]) == ("timeout", "failed", 0), record
            assert not lives(record["pid"]) and not lives(int(child.read_text()))
            child.unlink()


async def defect_an_aborted_request_leaves_its_session_running():
    async with host() as one:
        with anyio.move_on_after(5) as scope:
            await one.client.call_tool(
                "exec", {"command": ["sh", "-c", "echo begun; read x; echo after $x"], "pty": True, "yieldMs": 60_000})
        assert scope.cancelled_caught
        (record,) = (await one.process("list"))["sessions"]
        session = record["sessionId"]
        assert phase(session) == "running"
        # What was written is delivered to whoever asks next: nobody was told of it.
        await one.shows(session, "begun")
        await one.process("write", session, data="all\r")
        await one.shows(session, "after all")
        assert (await one.ends(session))["exitCode"] == 0


async def defect_paste_and_enter_are_writes_of_their_own():
    async with host() as one:
        reader = (
            "import os, sys, termios, tty\n"
            "tty.setraw(0); print('ready', flush=True)\n"
            "print([os.read(0, 4096) for _ in range(2)], flush=True)\n"
        )

        async def paste(session):
            await one.process("paste", session, text="several words")
            await one.process("submit", session)

        async def write(session):
            await one.session("write", session, input="several words")

        async def are_two_reads(typed):
            session = await one.start("python3", "-c", reader)
            await one.shows(session, "ready")
            await typed(session)
            seen = await one.shows(session, "words")
            if "[b'several words', b'\\r']" in seen:
                return True
            # Enter waits for a program that does not read, but not for ever: this one was kept from running.
            await one.process("kill", session)
            return False

        for typed in [paste, write]:
            for attempt in range(5):
                if await are_two_reads(typed):
                    break
            else:
                raise AssertionError(f"{typed.__name__} is never two reads")


async def defect_the_last_output_comes_before_the_exit():
    async with host() as one:
        for _ in range(20):
            done = await one.exec("sh", "-c", "head -c 8192 /dev/zero | tr '\\0' x; printf last")
            assert done["status"] == "exited" and done["output"] == "x" * 8192 + "last", done["output"][-20:]


async def defect_ended_sessions_keep_no_descriptors():
    async with host() as one:
        await one.exec("true")
        # The size of this directory is the number of descriptors (proc_pid_fd(5), since Linux 6.2).
        count = lambda: os.stat(f"/proc/{os.environ['ST2_TEST_BROKER']}/fd").st_size
        before = count()
        for _ in range(20):
            await one.exec("echo", "words")
        # A scope that is forgotten a moment later has a descriptor until then.
        await until("no descriptor of an ended session", lambda: count() <= before)


async def defect_a_write_to_an_ended_session_says_how_it_ended():
    async with host() as one:
        session = (await one.exec("sh", "-c", "exit 6"))["sessionId"]
        for tool, arguments in [
            ("coordinate_agents_session_write", {"root": one.root, "input": "x"}),
            ("process", {"action": "write", "data": "x"}),
            ("process", {"action": "send-keys", "keys": ["a"]}),
            ("process", {"action": "send-keys", "literal": "a"}),
            ("process", {"action": "paste", "text": "x"}),
            ("process", {"action": "submit"}),
        ]:
            message = await one.fails(tool, "SESSION_NOT_HEALTHY", sessionId=session, **arguments)
            assert "exited with code 6" in message, message


async def defect_hosts_neither_see_nor_end_each_other_s_sessions():
    async with host() as one, host() as other:
        mine = await one.open(task="same")
        theirs = (await other.exec("sleep", "1000", background=True, task="same"))["sessionId"]
        assert [session["sessionId"] for session in (await one.process("list"))["sessions"]] == [mine]
        assert [session["sessionId"] for session in (await other.process("list"))["sessions"]] == [theirs]
        for action, arguments in [
            ("poll", {}), ("log", {}), ("write", {"data": "x"}), ("send-keys", {"keys": ["a"]}), ("paste", {"text": "x"}),
            ("submit", {}), ("kill", {}), ("remove", {}),
        ]:
            await other.fails("process", "SESSION_NOT_FOUND", action=action, sessionId=mine, **arguments)
        for verb, arguments in [("status", {}), ("inspect", {}), ("write", {"input": "x"}), ("read", {}), ("close", {})]:
            await other.fails(
                f"coordinate_agents_session_{verb}", "SESSION_NOT_FOUND", root=one.root, sessionId=mine, **arguments)
        await other.fails("screen", "SESSION_NOT_FOUND", sessionId=mine)
        # Nor by a label that both use, nor by clearing, nor by opening the same agent at the same root.
        assert (await other.process("kill", task="same"))["killed"] == 1
        await other.process("clear")
        opened = await other.call("coordinate_agents_session_open", root=one.root, agent="shell")
        assert opened["reused"] is False and opened["sessionId"] != mine
        assert phase(mine) == "running"
    await until("the end of both", lambda: phase(mine) != "running")


async def the_sessions_of_a_killed_host_are_gone_after_the_grace():
    with tempfile.TemporaryDirectory() as policy:
        pathlib.Path(policy, "mcp.toml").write_text("grace_ms = 700\n")
        for victim in ["host", "server"]:
            with tempfile.TemporaryDirectory() as root:
                script = (
                    "import json, os, sys\n"
                    "import anyio\n"
                    "from harness import host\n"
                    "async def main():\n"
                    f"    async with host(root={root!r}, policy={policy!r}) as one:\n"
                    "        session = await one.open()\n"
                    "        deaf = \"trap '' TERM HUP; setsid sleep 1000 & while :; do sleep 0.05; done\"\n"
                    "        other = await one.exec('sh', '-c', deaf, background=True)\n"
                    "        print(json.dumps([session, other['sessionId'], other['session']['pid']]), flush=True)\n"
                    "        await anyio.sleep_forever()\n"
                    "anyio.run(main)\n"
                )
                killed = await asyncio.create_subprocess_exec(
                    "/usr/bin/python3", "-c", script, stdout=asyncio.subprocess.PIPE)
                with anyio.fail_after(PATIENCE):
                    session, other, pid = json.loads(await killed.stdout.readline())
                servers = pathlib.Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
                assert len(servers) == 1, servers
                if victim == "server":
                    os.kill(int(servers[0]), signal.SIGKILL)
                else:
                    killed.kill()
                    await killed.wait()
                assert lives(pid)
                await until("the end of both", lambda: phase(session) == phase(other) == "closed")
                assert not lives(pid)
                reasons = {sessions()[id.removeprefix("session_")]["Outcome"]["reason"] for id in [session, other]}
                assert reasons == {"owner-vanished"}, reasons
                if victim == "server":
                    killed.kill()
                    await killed.wait()


def difference(whole, seen):
    """Where two texts begin to differ."""
    at = len(os.path.commonprefix([whole, seen]))
    return at, whole[max(at - 20, 0):at + 20], seen[max(at - 20, 0):at + 20]
