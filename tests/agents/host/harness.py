"""An agent host: the official MCP client, and what every test of it needs."""

import asyncio
import json
import os
import pathlib
import subprocess
import tempfile
from contextlib import asynccontextmanager

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

PATIENCE = 20
ST2_TOOLS = os.path.join(os.environ["ST2_TOOLS_BIN_DIR"], "st2-tools")
INVALID_PARAMS = -32602


class Host:
    """A host of its own, with a server of its own."""

    def __init__(self, client, root):
        self.client = client
        self.root = root
        self.told = {}

    async def ask(self, tool, arguments, **options):
        """Calls a tool; gives the protocol's result."""
        with anyio.fail_after(PATIENCE + 10):
            return await self.client.call_tool(tool, arguments, **options)

    async def call(self, tool, **arguments):
        """Calls a tool that is to succeed; gives what it says."""
        result = await self.ask(tool, arguments)
        answer = result.structured_content
        assert not result.is_error and answer["ok"] is True, (tool, arguments, answer)
        assert json.loads(result.content[0].text) == answer, "the text says the same"
        return answer

    async def fails(self, tool, code, **arguments):
        """Calls a tool that is to fail with this code; gives the message."""
        result = await self.ask(tool, arguments)
        answer = result.structured_content
        assert result.is_error, (tool, arguments, answer)
        assert set(answer) == {"ok", "command", "error"} and answer["ok"] is False, answer
        error = answer["error"]
        assert set(error) == {"code", "message", "recoverable"}, error
        assert error["code"] == code, (tool, arguments, error)
        assert isinstance(error["recoverable"], bool)
        assert 0 < len(error["message"].encode()) <= 2048 and "\n" not in error["message"], error
        return error["message"]

    async def refuses(self, tool, **arguments):
        """Calls a tool with arguments that it does not take; gives the message."""
        try:
            answer = await self.ask(tool, arguments)
        except MCPError as error:
            assert error.code == INVALID_PARAMS, error
            return error.message
        raise AssertionError((tool, arguments, answer))

    async def open(self, agent="shell", root=None, **arguments):
        """Opens a session; gives its id."""
        root = root or self.root
        answer = await self.call("coordinate_agents_session_open", root=root, agent=agent, **arguments)
        return answer["sessionId"]

    async def session(self, verb, session, root=None, **arguments):
        """One of the five other session tools."""
        tool = f"coordinate_agents_session_{verb}"
        return await self.call(tool, root=root or self.root, sessionId=session, **arguments)

    async def exec(self, *argv, **arguments):
        """Runs a command on a terminal."""
        arguments.setdefault("pty", True)
        answer = await self.call("exec", command=list(argv), **arguments)
        # What the answer has told is not told again by a poll.
        self.told[answer["sessionId"]] = answer["output"]
        return answer

    async def start(self, *argv, **arguments):
        """Starts a command and does not wait for it; gives its session."""
        return (await self.exec(*argv, background=True, **arguments))["sessionId"]

    async def process(self, action, session=None, **arguments):
        """An action of `process`."""
        if session:
            arguments["sessionId"] = session
        return await self.call("process", action=action, **arguments)

    async def shows(self, session, text):
        """Polls until the output that was not told yet holds a text; gives all of it."""
        seen = self.told.pop(session, "")
        with anyio.fail_after(PATIENCE):
            while text not in seen:
                answer = await self.process("poll", session, timeout=5000)
                seen += answer["output"]
                assert text in seen or not answer["ended"], (text, seen)
        return seen

    async def draws(self, session, *texts):
        """Waits until the screen holds all of these texts; gives it."""
        with anyio.fail_after(PATIENCE):
            while True:
                screen = await self.call("screen", sessionId=session)
                if all(text in screen["output"] for text in texts):
                    return screen["output"]
                # Woken by output, if more comes.
                await self.process("poll", session, timeout=200)

    async def ends(self, session):
        """Waits for the end of a session; gives its record."""
        with anyio.fail_after(PATIENCE):
            while True:
                answer = await self.process("poll", session, timeout=5000)
                if answer["ended"]:
                    return answer["session"]

    async def everything(self, session):
        """All that a session has written, once it has ended."""
        await self.ends(session)
        text, cursor = "", 0
        while True:
            piece = await self.session("read", session, cursor=cursor, root=self.root)
            text, cursor = text + piece["output"], piece["next"]
            if piece["ended"]:
                return text


def server(*arguments, policy=None, cwd=None):
    """How a host starts its server."""
    environment = dict(os.environ)
    if policy:
        environment["ST2_TOOLS_POLICY_PATH"] += f":{policy}"
    return StdioServerParameters(command=ST2_TOOLS, args=["mcp", *arguments], env=environment, cwd=cwd)


@asynccontextmanager
async def host(*arguments, root=None, policy=None, mode="legacy", **options):
    """A host with a workspace of its own."""
    with tempfile.TemporaryDirectory(prefix="workspace") as own:
        root = root or own
        parameters = server(*arguments, policy=policy, cwd=root)
        async with Client(parameters, mode=mode, **options) as client:
            yield Host(client, root)


def sessions():
    """All sessions of the broker, as a person sees them, by id."""
    listed = subprocess.run([ST2_TOOLS, "--json", "list"], check=True, capture_output=True, timeout=PATIENCE)
    return {row["Id"]: row for row in json.loads(listed.stdout)}


def phase(session):
    """The phase of a session by its id here; none where the broker knows it no more."""
    row = sessions().get(session.removeprefix("session_"))
    return row and row["Phase"]


async def until(what, holds):
    """Waits until a condition holds that no event tells of."""
    with anyio.move_on_after(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)
        return
    raise AssertionError(f"{what} did not happen")


def lives(pid):
    """Whether a process lives; a zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return not stat.rpartition(")")[2].startswith(" Z")


def git(directory, *arguments):
    """Runs git; gives what it says."""
    environment = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null")
    ran = subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
        cwd=directory, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE,
    )
    return ran.stdout


def repository(directory, **files):
    """Makes a repository with these files committed."""
    git(directory, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (pathlib.Path(directory) / name).write_text(text)
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=first")
