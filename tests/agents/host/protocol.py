"""The protocol: what is told, what is refused, what is waited for."""

import asyncio
import hashlib
import json
import os
import tempfile

import anyio

from harness import INVALID_PARAMS, PATIENCE, ST2_TOOLS, host

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


async def raw(directory):
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    return Raw(await asyncio.create_subprocess_exec(ST2_TOOLS, "mcp", cwd=directory, limit=1 << 24, **pipes))


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
        for method, id, code in [("novel/method", 7, -32601), ("tools/call", 8, None)]:
            await client.say({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": 3}})
            answer = await client.hear()
            assert answer["id"] == id and "error" in answer and code in (None, answer["error"]["code"]), answer
        await client.ask(9, "process", action="list")
        assert (await client.hear())["result"]["structuredContent"]["sessions"] == []
        client.process.stdin.close()
        with anyio.fail_after(PATIENCE):
            assert await client.process.wait() == 0
            # All that was ever said there was protocol.
            assert await client.process.stdout.read() == b""


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
        assert len(told) == 2 and told[0][0] < told[1][0] < told[1][1] == 2.5, told
        # Without a token nothing is told.
        session = result.structured_content["sessionId"]
        await one.process("poll", session, timeout=1500)
        assert len(told) == 2
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
