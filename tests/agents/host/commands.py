"""The tool `exec`."""

import os
import pathlib
import re
import tempfile

from harness import host, phase


async def a_command_gives_its_output_and_how_it_ended():
    async with host() as one:
        done = await one.exec("sh", "-c", "echo out; exit 5")
        assert (done["command"], done["status"], done["output"]) == ("exec", "exited", "out\n")
        assert (done["session"]["exitCode"], done["session"]["reason"], done["truncated"]) == (5, "exit", False)
        # Nothing is left for the first poll.
        polled = await one.process("poll", done["sessionId"])
        assert (polled["output"], polled["ended"]) == ("", True)


async def a_list_is_read_by_no_shell_and_a_string_only_by_the_one_inside():
    async with host() as one:
        assert (await one.exec("echo", "$HOME;", "*"))["output"] == "$HOME; *\n"
        done = await one.call("exec", command="echo a b | tr a-z A-Z; cd /; pwd", shell=True, pty=True)
        assert done["output"] == "A B\n/\n"
        await one.fails("exec", "SESSION_START_FAILED", command="echo hello", pty=True)
        await one.fails("exec", "SESSION_START_FAILED", command=["echo"], shell=True, pty=True)
        await one.fails("exec", "SESSION_START_FAILED", command=[], pty=True)


async def what_takes_longer_goes_on():
    async with host() as one:
        running = await one.exec("sh", "-c", "echo begun; read x; echo ended $x", yieldMs=5000)
        assert running["status"] == "running" and "begun" in running["output"], running
        session = running["sessionId"]
        await one.process("write", session, data="well\r")
        seen = await one.shows(session, "ended well")
        assert seen.count("begun") == 1, "told once"
        assert (await one.ends(session))["exitCode"] == 0
        at_once = await one.exec("sh", "-c", "read x", background=True)
        assert at_once["status"] == "running"
        await one.process("kill", at_once["sessionId"])


async def a_workdir_is_an_existing_directory_and_the_only_one_that_is_seen():
    async with host() as one:
        assert (await one.exec("pwd"))["output"].strip() == one.root, "the server's own, without one"
        inner = os.path.join(one.root, "inner")
        os.mkdir(inner)
        open(os.path.join(one.root, "outside"), "w").close()
        done = await one.exec("sh", "-c", "pwd; ls ..; touch made; touch ../made", workdir=inner)
        assert done["output"].startswith(inner) and os.listdir(inner) == ["made"], done
        assert not os.path.exists(os.path.join(one.root, "made"))
        for workdir in [inner + "/absent", inner + "/made", "relative", "/proc/self/cwd"]:
            await one.fails("exec", "SESSION_START_FAILED", command=["pwd"], workdir=workdir, pty=True)


async def environment_is_passed_as_the_policy_lets_it():
    async with host() as one:
        message = await one.fails("exec", "SESSION_START_FAILED", command=["env"], env={"NOVEL": "x"}, pty=True)
        assert "NOVEL" in message
        for name in [
            "LD_PRELOAD", "PATH", "HOME", "TERM", "BASH_ENV", "ENV", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "PAGER",
            "EDITOR", "LOCPATH", "DBUS_SESSION_BUS_ADDRESS",
        ]:
            message = await one.fails("exec", "SESSION_START_FAILED", command=["env"], env={name: "x"}, pty=True)
            assert name in message
        # Those that the schema tells of.
        (tool,) = [tool for tool in (await one.client.list_tools()).tools if tool.name == "exec"]
        told = tool.input_schema["properties"]["env"]["description"]
        names = re.findall(r"\b[A-Z][A-Z_]+\b", told)
        assert {"LANG", "LC_ALL", "TZ", "NO_COLOR", "CI"} <= set(names), told
        wanted = {name: f"value {n}" for n, name in enumerate(names)}
        for pty in [True, False]:
            done = await one.call("exec", command=["env"], env=wanted, pty=pty)
            found = dict(line.split("=", 1) for line in done["output"].splitlines())
            assert wanted.items() <= found.items(), found


async def a_program_that_is_not_there_is_told_from_one_that_cannot_run():
    async with host() as one:
        await one.fails("exec", "EXECUTABLE_NOT_FOUND", command=["no-such-program"], pty=True)
        path = os.path.join(one.root, "file")
        with open(path, "w") as file:
            file.write("no program\n")
        os.chmod(path, 0o644)
        await one.fails("exec", "EXECUTABLE_NOT_RUNNABLE", command=[path], pty=True)


async def a_silence_is_ended_and_output_rearms_its_watchdog():
    async with host() as one:
        chatty = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done; sleep 1000"
        done = await one.exec("sh", "-c", chatty, silenceTimeoutSec=3)
        assert done["output"].split() == ["1", "2", "3", "4", "5", "6"], done
        assert (done["status"], done["session"]["reason"]) == ("failed", "silence-timeout"), done


async def a_session_of_the_same_name_is_replaced_where_that_is_asked_for():
    async with host() as one:
        first = await one.start("sleep", "1000", name="server")
        second = await one.start("sleep", "1000", name="server")
        assert phase(first) == phase(second) == "running"
        third = await one.exec("sleep", "1000", background=True, name="server", replaceExisting=True)
        assert phase(first) == phase(second) == "closed" and phase(third["sessionId"]) == "running"
        assert third["session"]["name"] == "server"
        await one.fails("exec", "SESSION_START_FAILED", command=["true"], replaceExisting=True, pty=True)
        await one.process("kill", third["sessionId"])


async def much_output_is_bounded_and_all_of_it_can_be_had():
    async with host() as one:
        done = await one.exec("seq", "1", "20000")
        assert done["truncated"] and len(done["output"]) <= 32 * 1024, len(done["output"])
        assert done["output"].endswith("19999\n20000\n")
        whole = await one.everything(done["sessionId"])
        assert whole == "".join(f"{n}\n" for n in range(1, 20001))


async def what_an_answer_leaves_out_is_told():
    async with host() as one:
        done = await one.call("exec", command=["seq", "1", "20000"])
        whole = "".join(f"{n}\n" for n in range(1, 20001))
        assert (done["status"], done["truncated"], done["more"]) == ("exited", True, False), done["session"]
        left_out = len(whole) - len(done["output"])
        assert whole.endswith(done["output"]) and left_out > 70_000 and done["next"] == len(whole)
        # The first poll tells of what nobody was shown; and once.
        for lost in [left_out, 0]:
            polled = await one.process("poll", done["sessionId"])
            assert (polled["output"], polled["lost"], polled["ended"]) == ("", lost, True), polled
        assert await one.everything(done["sessionId"]) == whole
        again = await one.process("poll", done["sessionId"], ack=0)
        assert (again["lost"], again["more"]) == (0, True) and whole.startswith(again["output"]), "it is kept"
        # One line, of which the end is shown.
        done = await one.call("exec", command=["printf", "%0100000d", "7"])
        assert (len(done["output"]), done["truncated"], done["more"]) == (32 * 1024, True, False), done["session"]
        assert (await one.process("poll", done["sessionId"]))["lost"] == 100_000 - 32 * 1024
        seen = await one.session("inspect", done["sessionId"])
        assert (len(seen["output"]), seen["truncated"], seen["more"]) == (16 * 1024, True, False), seen["session"]
        short = (await one.exec("echo", "all"))["sessionId"]
        seen = await one.session("inspect", short)
        assert (seen["output"], seen["truncated"], seen["more"]) == ("all\n", False, False), seen


async def a_default_watchdog_yields_to_that_of_the_catalogue_entry():
    with tempfile.TemporaryDirectory() as policy:
        settings = pathlib.Path(policy, "mcp.toml")
        # The entry ends what is silent for a second, and anything after ten minutes.
        settings.write_text('exec = "watched-command"\n')
        async with host(policy=policy) as one:
            done = await one.exec("echo", "hello")
            assert (done["output"], done["status"]) == ("hello\n", "exited")
            done = await one.exec("sh", "-c", "echo hello; exec sleep 1000")
            assert (done["status"], done["session"]["reason"]) == ("failed", "silence-timeout"), done
            # What is asked for does not.
            for arguments, name in [({"timeoutSec": 601}, "timeout_ms"), ({"timeoutSec": 0}, "timeout_ms"),
                                    ({"silenceTimeoutSec": 2}, "silence_timeout_ms"), ({"silenceTimeoutSec": 0}, "silence_timeout_ms")]:
                message = await one.fails("exec", "SESSION_START_FAILED", command=["true"], **arguments)
                assert name in message, message
            # Nor does a default hide why a command is refused.
            assert "NOVEL" in await one.fails("exec", "SESSION_START_FAILED", command=["true"], env={"NOVEL": "x"})
        settings.write_text('exec = "watched-command"\n[defaults]\ntimeout_sec = 1\nsilence_timeout_sec = 600\n')
        async with host(policy=policy) as one:
            done = await one.exec("sh", "-c", "while :; do echo hello; sleep 0.1; done")
            assert (done["status"], done["session"]["reason"]) == ("failed", "timeout"), done


async def pipes_keep_no_terminal_and_standard_input_is_closed_unless_asked():
    async with host() as one:
        done = await one.call("exec", command=["sh", "-c", "test -t 1 || echo none; cat; echo err >&2"])
        assert (done["session"]["backend"], done["status"]) == ("pipe", "exited"), done
        assert done["output"] == "none\nerr\n", done
        session = (await one.call("exec", command=["sort"], stdin=True, background=True))["sessionId"]
        await one.process("write", session, data="b\na\n")
        await one.process("submit", session)
        await one.process("write", session, eof=True)
        assert await one.everything(session) == "\na\nb\n"
        for action, arguments in [("send-keys", {"keys": ["a"]}), ("paste", {"text": "x"})]:
            running = (await one.call("exec", command=["cat"], stdin=True, background=True))["sessionId"]
            message = await one.fails("process", "SESSION_WRITE_FAILED", action=action, sessionId=running, **arguments)
            assert "terminal" in message
            await one.process("kill", running)
        message = await one.fails("screen", "SESSION_RUNTIME_ERROR", sessionId=session)
        assert "terminal" in message
