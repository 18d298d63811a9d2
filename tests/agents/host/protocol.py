"""The protocol: what is told, what is refused, what is waited for."""

import asyncio
import hashlib
import json
import os
import tempfile
from contextlib import asynccontextmanager

import anyio
from mcp.shared.exceptions import MCPError

from harness import INVALID_PARAMS, PATIENCE, ST2_TOOLS, host, phase, until

TOOLS = [
    *(f"coordinate_agents_session_{verb}" for verb in ["open", "status", "inspect", "write", "read", "close"]),
    "exec",
    "process",
    "screen",
]


async def every_tool_is_told_with_its_bounds():
    async with host() as one:
        tools = {tool.name: tool for tool in (await one.client.list_tools()).tools}
        assert list(tools) == TOOLS, list(tools)
        for tool in tools.values():
            assert tool.input_schema["type"] == "object" and tool.input_schema["additionalProperties"] is False
            assert len(tool.description) > 60
        properties = tools["coordinate_agents_session_read"].input_schema["properties"]
        assert properties["maxLines"] | {"description": 0} == {
            "type": "integer", "minimum": 1, "maximum": 200, "default": 100, "description": 0}
        assert properties["maxBytes"]["maximum"] == properties["maxBytes"]["default"] == 32 * 1024
        properties = tools["exec"].input_schema["properties"]
        assert (properties["yieldMs"]["minimum"], properties["yieldMs"]["maximum"]) == (10, 120_000)
        assert (properties["yieldMs"]["default"], properties["timeoutSec"]["default"]) == (10_000, 1800)
        properties = tools["coordinate_agents_session_close"].input_schema["properties"]
        assert [properties["timeoutMs"][key] for key in ["minimum", "default", "maximum"]] == [100, 2000, 30_000]


async def unknown_and_wrong_arguments_are_refused():
    async with host() as one:
        here = {"root": one.root}
        session = here | {"sessionId": "session_x"}
        right = {
            "open": here | {"agent": "shell"}, "status": session, "inspect": session,
            "write": session | {"input": "x"}, "read": session, "close": session,
        }
        right = {f"coordinate_agents_session_{verb}": arguments for verb, arguments in right.items()}
        right |= {"exec": {"command": ["true"]}, "screen": {"sessionId": "session_x"}}
        right |= {"process": {"action": "list"}}
        assert set(right) == set(TOOLS)
        for tool, arguments in right.items():
            assert "novel" in await one.refuses(tool, **arguments, novel=1)
            missing = dict(arguments)
            name = "command" if tool == "exec" else "action" if tool == "process" else next(iter(missing))
            del missing[name]
            assert name in await one.refuses(tool, **missing)
        for arguments in [
            {"maxLines": 0}, {"maxLines": 201}, {"maxBytes": 32 * 1024 + 1}, {"maxBytes": "9"}, {"cursor": -1},
        ]:
            await one.refuses("coordinate_agents_session_read", **session, **arguments)
        for arguments in [{"yieldMs": 9}, {"yieldMs": 120_001}, {"timeoutSec": -1}, {"command": []}, {"env": {"A": 1}}]:
            result = {"command": ["true"]} | arguments
            if arguments == {"command": []}:
                await one.fails("exec", "SESSION_START_FAILED", **result)
            else:
                await one.refuses("exec", **result)
        await one.refuses("process", action="restart")
        await one.refuses("process", action="poll", sessionId="session_x", timeout=120_001)
        await one.refuses("process", action="poll", sessionId="session_x", data="of another action")
        await one.refuses("coordinate_agents_session_open", root=one.root, agent="shell", language="tlh")
        await one.refuses("novel_tool")
        # Of two that exclude each other none is passed over.
        for more in [{"task": "t"}, {"subtask": "u"}]:
            assert "both" in await one.refuses("process", action="kill", sessionId="session_x", **more)
            assert "both" in await one.refuses("coordinate_agents_session_close", **session, **more)
        assert "neither a string nor a list" in await one.refuses("exec", command=7)


async def nul_is_refused_where_the_bus_cannot_carry_it_and_costs_nothing():
    async with host() as one:
        script = "stty raw -echo; echo ready; head -c 9 | od -An -tx1; exec sleep 1000"
        session = await one.start("sh", "-c", script)
        await one.shows(session, "ready")
        nul = "a\0b"
        for arguments in [
            {"command": [nul]}, {"command": ["echo", nul]}, {"command": nul, "shell": True}, {"workdir": nul},
            {"env": {"A": nul}}, {"env": {nul: "x"}}, {"name": nul}, {"task": nul}, {"subtask": nul},
        ]:
            assert "NUL" in await one.refuses("exec", **({"command": ["true"], "pty": True} | arguments))
        for verb, arguments in [
            ("open", {"agent": nul}), ("open", {"agent": "shell", "task": nul}),
            ("open", {"agent": "shell", "subtask": nul}), ("open", {"agent": "argument-agent", "initialPrompt": nul}),
            ("open", {"agent": "terminal-agent", "initialPrompt": nul}), ("open", {"agent": "shell", "root": nul}),
            ("status", {"sessionId": nul}), ("close", {"task": nul}), ("close", {"sessionId": nul}),
        ]:
            assert "NUL" in await one.refuses(f"coordinate_agents_session_{verb}", **({"root": one.root} | arguments))
        for action, arguments in [
            ("kill", {"task": nul}), ("kill", {"subtask": nul}), ("kill", {"sessionId": nul}), ("list", {"task": nul}),
            ("send-keys", {"sessionId": session, "keys": ["\0"]}), ("send-keys", {"sessionId": session, "hex": ["\0\0"]}),
            ("paste", {"sessionId": session, "text": nul}),
        ]:
            assert "NUL" in await one.refuses("process", action=action, **arguments)
        assert "NUL" in await one.refuses("screen", sessionId=nul)
        # What goes as bytes may hold any; and the session of before is there still.
        await one.session("write", session, input=nul, submit=False)
        await one.process("write", session, data=nul)
        await one.process("send-keys", session, literal=nul)
        await one.shows(session, "61 00 62 61 00 62 61 00 62")
        assert phase(session) == "running"
        assert len((await one.process("list"))["sessions"]) == 1, "nothing else was opened"
        await one.process("kill", session)


async def a_size_is_refused_for_good_and_before_anything_is_done():
    async with host() as one:
        async def lasting(tool, **arguments):
            error = (await one.ask(tool, arguments)).structured_content["error"]
            assert (error["code"], error["recoverable"]) == ("SESSION_START_FAILED", False), error
            assert "argv_env_bytes" in error["message"], error

        await lasting("exec", command="#" * 131_072, shell=True, pty=True)
        opening = "coordinate_agents_session_open"
        await lasting(opening, root=one.root, agent="argument-agent", initialPrompt="x" * 200_000)
        assert "131073 bytes" in await one.refuses("exec", command="#" * 131_073, shell=True)
        assert "131073 bytes" in await one.refuses("exec", command=["echo", "#" * 131_073])
        # Labels are counted in bytes, as on the bus.
        assert "400 bytes" in await one.refuses("exec", command=["true"], task="é" * 200)
        labelled = await one.exec("true", task="é" * 128)
        assert labelled["session"]["task"] == "é" * 128
        session = await one.start("sh", "-c", "stty raw -echo; echo ready; head -c 65524 | sha256sum")
        await one.shows(session, "ready")
        text = "x" * 65_524
        assert "65525 bytes" in await one.refuses("process", action="paste", sessionId=session, text=text + "x")
        assert (await one.process("paste", session, text=text))["bytes"] == 65_524
        await one.shows(session, hashlib.sha256(text.encode()).hexdigest())


class Raw:
    """A host that says whatever it likes."""

    def __init__(self, process):
        self.process = process

    async def say(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.process.stdin.write(b"\n")
        await self.process.stdin.drain()

    async def hear(self):
        with anyio.fail_after(PATIENCE):
            return json.loads(await self.process.stdout.readline())

    async def begin(self):
        info = {"name": "raw", "version": "1"}
        parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        await self.say({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters})
        assert (await self.hear())["result"]["serverInfo"]["name"] == "st2-tools"
        await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, id, tool, **arguments):
        parameters = {"name": tool, "arguments": arguments}
        await self.say({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters})


async def raw(directory, **options):
    options = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE} | options
    return Raw(await asyncio.create_subprocess_exec(ST2_TOOLS, "mcp", cwd=directory, limit=1 << 24, **options))


@asynccontextmanager
async def way_to_the_bus(path):
    """A socket that leads to the bus, until it is cut; gives what cuts it. No descriptor comes through."""
    bus = os.environ.get("DBUS_SESSION_BUS_ADDRESS", f"unix:path={os.environ.get('XDG_RUNTIME_DIR')}/bus")
    bus = bus.split(";")[0].removeprefix("unix:path=").split(",")[0]
    ends, pumps = [], []

    async def pump(reader, writer):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()

    async def accept(reader, writer):
        from_bus, to_bus = await asyncio.open_unix_connection(bus)
        ends.extend([writer, to_bus])
        pumps.extend([asyncio.create_task(pump(reader, to_bus)), asyncio.create_task(pump(from_bus, writer))])

    def cut():
        for end in ends:
            end.transport.abort()

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield cut
    finally:
        cut()
        server.close()
        await asyncio.gather(*pumps, return_exceptions=True)


async def malformed_messages_are_answered_and_the_server_lives_on():
    with tempfile.TemporaryDirectory() as directory:
        client = await raw(directory)
        # Before anything was agreed, too.
        await client.say(b"{")
        assert (await client.hear())["error"]["code"] == -32700
        await client.begin()
        wrong = [
            (b"not json", None, -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"', None, -32700),
            (b"\xff\xfe", None, -32700),
            (b"[]", None, -32600),
            (b'"text"', None, -32600),
            (b'{"id":5}', 5, -32600),
            (b'{"jsonrpc":"1.0","id":6,"method":"ping"}', 6, -32600),
            (b"[" * 100_000, None, -32700),
            (b"x" * (4 * 1024 * 1024 + 1), None, -32600),
        ]
        for line, id, code in wrong:
            await client.say(line)
            answer = await client.hear()
            assert (answer["id"], answer["error"]["code"]) == (id, code), (line[:80], answer)
        for method, parameters, code in [
            ("novel/method", {}, -32601), ("tools/call", {"name": 3}, INVALID_PARAMS), ("tools/call", None, INVALID_PARAMS),
            ("tools/call", {"name": "exec", "arguments": ["true"]}, INVALID_PARAMS),
            ("tools/call", {"name": "exec", "arguments": "true"}, INVALID_PARAMS),
        ]:
            await client.say({"jsonrpc": "2.0", "id": 8, "method": method, "params": parameters})
            answer = await client.hear()
            assert (answer["id"], answer["error"]["code"]) == (8, code), answer
        await client.ask(9, "process", action="list")
        assert (await client.hear())["result"]["structuredContent"]["sessions"] == []
        client.process.stdin.close()
        with anyio.fail_after(PATIENCE):
            assert await client.process.wait() == 0
            # All that was ever said there was protocol.
            assert await client.process.stdout.read() == b""


async def what_is_sent_without_waiting_is_typed_in_order():
    with tempfile.TemporaryDirectory() as directory:
        client = await raw(directory)
        await client.begin()
        words, long, id = [f"{n:02};" for n in range(20)], "a" * 200_000, 0
        script = f"stty raw -echo; echo ready; head -c {len(long) + 66} | tr '\\r' '!' | tr -s a; echo"
        for _ in range(5):
            await client.ask(id := id + 1, "exec", command=["sh", "-c", script], pty=True, background=True)
            started = (await client.hear())["result"]["structuredContent"]
            this, output = {"sessionId": started["sessionId"]}, started["output"]
            with anyio.fail_after(PATIENCE):
                while "ready" not in output:
                    await client.ask(id := id + 1, "process", action="poll", timeout=10_000, **this)
                    output += (await client.hear())["result"]["structuredContent"]["output"]
            first = id + 1
            for word in words:
                await client.ask(id := id + 1, "process", action="write", data=word, **this)
            # Several writes for the broker, between which nothing else comes.
            await client.ask(id := id + 1, "process", action="write", data=long, **this)
            await client.ask(id := id + 1, "coordinate_agents_session_write", root=directory, input="b", **this)
            await client.ask(id := id + 1, "process", action="send-keys", keys=["c", "d"], delayMs=1, **this)
            await client.ask(id := id + 1, "process", action="paste", text="e", **this)
            await client.ask(id := id + 1, "process", action="submit", **this)
            answers = [await client.hear() for _ in range(first, id + 1)]
            assert all(answer["result"]["structuredContent"]["ok"] for answer in answers), answers
            assert [answer["id"] for answer in answers] == list(range(first, id + 1)), "answered in order, too"
            output, expected = "", "".join(words) + "ab!cde!"
            with anyio.move_on_after(PATIENCE):
                while len(output) <= len(expected):
                    await client.ask(id := id + 1, "process", action="poll", timeout=10_000, **this)
                    output += (await client.hear())["result"]["structuredContent"]["output"]
            assert output == expected + "\n", output
        client.process.stdin.close()
        await client.process.wait()


async def a_server_whose_bus_is_gone_answers_what_was_asked_and_ends():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "bus")
        environment = dict(os.environ, DBUS_SESSION_BUS_ADDRESS=f"unix:path={path}")
        async with way_to_the_bus(path) as cut:
            client = await raw(directory, env=environment, stderr=asyncio.subprocess.PIPE)
            await client.begin()
            await client.ask(1, "exec", command=["sleep", "1000"], pty=True, background=True)
            session = (await client.hear())["result"]["structuredContent"]["sessionId"]
            await client.ask(2, "process", action="poll", sessionId=session, timeout=120_000)
            # Answered later than the poll was begun.
            await client.ask(3, "process", action="list")
            assert (await client.hear())["id"] == 3
            cut()
            answer = await client.hear()
            record = answer["result"]["structuredContent"]["session"]
            assert (answer["id"], record["state"]) == (2, "failed") and "gone" in record["error"], answer
            output, error = await client.process.communicate()
            assert (client.process.returncode, output) == (1, b""), (output, error)
            assert b"the connection to the broker is gone" in error, error
            # A host starts another, and the way is open again.
            again = await raw(directory, env=environment)
            await again.begin()
            await again.ask(1, "exec", command=["echo", "well"], pty=True)
            assert (await again.hear())["result"]["structuredContent"]["output"] == "well\n"
            again.process.stdin.close()
            assert await again.process.wait() == 0
        # One that nobody has said a word to yet ends, too.
        os.remove(path)
        async with way_to_the_bus(path) as cut:
            silent = await raw(directory, env=environment, stderr=asyncio.subprocess.PIPE)
            await silent.say(b"")
            await silent.say(b"{")
            assert (await silent.hear())["error"]["code"] == -32700
            cut()
            with anyio.fail_after(PATIENCE):
                assert (await silent.process.communicate())[0] == b"" and silent.process.returncode == 1


async def a_mebibyte_of_input_arrives():
    async with host() as one:
        whole, piece = 1 << 20, 262_144
        script = f"stty raw -echo; echo ready; head -c {whole} | sha256sum; cat >rest"
        session = await one.start("sh", "-c", script)
        await one.shows(session, "ready")
        text = ("0123456789abcde\n" * (piece // 16))[:piece]
        for _ in range(whole // piece):
            assert (await one.process("write", session, data=text))["bytes"] == piece
        await one.shows(session, hashlib.sha256(text.encode() * 4).hexdigest())
        # One character more than an input may have.
        assert "262145" in await one.refuses("process", action="write", sessionId=session, data=text + "x")
        # A program that does not read: what is not taken is told.
        deaf = await one.start("sh", "-c", "stty raw; echo ready; exec sleep 1000")
        await one.shows(deaf, "ready")
        for _ in range(4):
            await one.process("write", deaf, data=text)
        message = await one.fails("process", "SESSION_WRITE_FAILED", action="write", sessionId=deaf, data=text)
        assert "limit" in message or "full" in message or "bytes" in message, message
        await one.process("kill", deaf)
        await one.process("kill", session)


async def a_cancelled_wait_ends_the_wait_and_not_the_session():
    with tempfile.TemporaryDirectory() as directory:
        client = await raw(directory)
        await client.begin()
        await client.ask(1, "exec", command=["sh", "-c", "read line; echo got $line; read line"], pty=True, background=True)
        session = (await client.hear())["result"]["structuredContent"]["sessionId"]
        await client.ask(2, "process", action="poll", sessionId=session, timeout=120_000)
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        # The wait is over: no answer to it is the next thing that is heard.
        await client.ask(3, "process", action="write", sessionId=session, data="word\r")
        answer = await client.hear()
        assert answer["id"] == 3 and answer["result"]["structuredContent"]["ok"], answer
        seen, id = "", 3
        while "got word" not in seen:
            id += 1
            await client.ask(id, "process", action="poll", sessionId=session, timeout=10_000)
            answer = await client.hear()
            assert answer["id"] == id
            seen += answer["result"]["structuredContent"]["output"]
        client.process.stdin.close()
        await client.process.wait()


async def what_a_poll_delivered_comes_again_until_it_is_acknowledged():
    async with host() as one:
        session = await one.start("sh", "-c", "echo one; read x; echo two")
        first = await one.shows(session, "one")
        start = 0
        again = await one.process("poll", session, ack=start)
        assert again["output"] == first, (first, again)
        await one.process("write", session, data="\r")
        await one.ends(session)
        again = await one.process("poll", session, ack=start)
        assert again["output"].startswith(first) and "two" in again["output"] and again["ended"], again
        assert (await one.process("poll", session, ack=again["next"]))["output"] == ""
        assert "beyond" in await one.fails(
            "process", "SESSION_RUNTIME_ERROR", action="poll", sessionId=session, ack=again["next"] + 1)


async def a_long_wait_is_told_of_where_the_client_asks():
    async with host() as one:
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        arguments = {"command": ["sleep", "1000"], "pty": True, "yieldMs": 2500}
        result = await one.ask("exec", arguments, progress_callback=progress)
        assert result.structured_content["status"] == "running"
        # Once a second; on a machine that stands still, less often.
        times = [done for done, _, _ in told]
        assert 1 <= len(told) <= 2 and times == sorted(times) and times[-1] < told[-1][1] == 2.5, told
        # Without a token nothing is told.
        before = len(told)
        session = result.structured_content["sessionId"]
        await one.process("poll", session, timeout=1500)
        assert len(told) == before
        await one.process("kill", session)


async def calls_beyond_the_limit_are_refused():
    with tempfile.TemporaryDirectory() as policy:
        with open(os.path.join(policy, "mcp.toml"), "w") as file:
            file.write("[limits]\ncalls = 2\n")
        async with host(policy=policy) as one:
            session = await one.start("sleep", "1000")

            async def busy(action="list", **arguments):
                try:
                    await one.process(action, **arguments)
                except MCPError as error:
                    assert error.code == -32000 and error.message.startswith("2 calls"), error
                    return True
                return False

            async def wait():
                # Until there is room.
                while await busy("poll", session=session, timeout=120_000):
                    pass

            async with anyio.create_task_group() as waiting:
                for _ in range(2):
                    waiting.start_soon(wait)
                with anyio.fail_after(PATIENCE):
                    while not await busy():
                        pass
                waiting.cancel_scope.cancel()
            # A call that nobody waits for any more makes room.
            with anyio.fail_after(PATIENCE):
                while await busy():
                    pass
            await one.process("kill", session)


async def every_lifecycle_of_the_protocol_works():
    for mode in ["legacy", "auto", "2026-07-28"]:
        async with host(mode=mode) as one:
            assert [tool.name for tool in (await one.client.list_tools()).tools] == TOOLS, mode
            assert "hello" in (await one.exec("echo", "hello"))["output"], mode


async def the_settings_say_what_a_host_is_shown_and_how_much_it_may_ask():
    with tempfile.TemporaryDirectory() as policy:
        settings = os.path.join(policy, "mcp.toml")

        def write(text):
            with open(settings, "w") as file:
                file.write(text)

        write('tools = ["exec", "process"]\n[defaults]\nyield_ms = 100\n[limits]\nwait_max_ms = 1000\ntimeout_max_sec = 1800\n')
        async with host(policy=policy) as one:
            tools = {tool.name: tool for tool in (await one.client.list_tools()).tools}
            assert list(tools) == ["exec", "process"]
            assert tools["exec"].input_schema["properties"]["yieldMs"]["maximum"] == 1000
            await one.refuses("screen", sessionId="session_x")
            running = await one.exec("sleep", "1000")
            assert running["status"] == "running"
            for arguments in [{"yieldMs": 1001}, {"timeoutSec": 0}, {"timeoutSec": 1801}]:
                result = await one.ask("exec", {"command": ["true"], "pty": True} | arguments)
                assert result.is_error and "mcp.toml" in result.structured_content["error"]["message"], result
            await one.process("kill", running["sessionId"])
        # What is not understood is not passed over.
        for text, why in [("tool = []\n", "tool"), ("[limits]\ncalls = 0\n", "calls"), ("tools = [", "mcp.toml")]:
            write(text)
            environment = dict(os.environ, ST2_TOOLS_POLICY_PATH=os.environ["ST2_TOOLS_POLICY_PATH"] + ":" + policy)
            started = await asyncio.create_subprocess_exec(
                ST2_TOOLS, "mcp", env=environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
            output, error = await started.communicate()
            assert started.returncode == 1 and output == b"" and why.encode() in error, (text, error)
        os.remove(settings)
