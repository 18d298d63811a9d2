"""The tool `process`."""

import json

import anyio

from harness import PATIENCE, host, lives


async def the_list_is_of_this_server_newest_first():
    async with host() as one:
        ids = [await one.start("sleep", "1000", task=f"t{n}") for n in range(3)]
        listed = (await one.process("list"))["sessions"]
        assert [session["sessionId"] for session in listed] == ids[::-1]
        only = (await one.process("list", task="t1"))["sessions"]
        assert [session["sessionId"] for session in only] == [ids[1]] and only[0]["task"] == "t1"
        assert (await one.process("list", task="none"))["sessions"] == []
        for id in ids:
            await one.process("kill", id)


async def a_log_is_read_by_line():
    async with host() as one:
        session = (await one.exec("sh", "-c", "seq 0 499; printf unfinished"))["sessionId"]
        last = await one.process("log", session)
        assert (last["totalLines"], last["offset"], last["truncated"]) == (501, 301, True), last
        assert last["output"].startswith("301\n") and last["output"].endswith("499\nunfinished")
        some = await one.process("log", session, offset=10, limit=3)
        assert (some["output"], some["offset"]) == ("10\n11\n12\n", 10)
        assert (await one.process("log", session, offset=9999))["output"] == ""
        assert await one.process("log", session) == last, "reading changes nothing"
        await one.refuses("process", action="log", sessionId=session, limit=2001)


async def a_log_is_bounded_and_goes_on_at_the_next_offset():
    async with host() as one:
        lines = [f"{n} {'é' * 1000}\n" for n in range(60)]
        done = await one.call("exec", command=["python3", "-c", "for n in range(60): print(n, 'é' * 1000)"])
        session = done["sessionId"]
        last = await one.process("log", session)
        given = last["output"].splitlines(keepends=True)
        assert given == lines[-len(given):] and len(last["output"].encode()) <= 32 * 1024 < len("".join(lines[-len(given) - 1:]).encode())
        assert (last["offset"], last["nextOffset"], last["totalLines"]) == (60 - len(given), 60, 60), last
        assert (last["truncated"], last["cut"]) == (True, False), "whole lines"
        whole, offset, answers = "", 0, 0
        while True:
            piece = await one.process("log", session, offset=offset, limit=2000)
            assert piece["offset"] == offset and len(piece["output"].encode()) <= 32 * 1024
            whole, offset, answers = whole + piece["output"], piece["nextOffset"], answers + 1
            if offset == piece["totalLines"]:
                break
        assert whole == "".join(lines) and answers == 4, answers
        long = (await one.call("exec", command=["python3", "-c", "print('é' * 50_000); print('last')"]))["sessionId"]
        piece = await one.process("log", long, offset=0)
        assert (piece["output"], piece["truncated"], piece["cut"], piece["nextOffset"]) == ("é" * 16 * 1024, True, True, 1), piece
        assert (await one.process("log", long, offset=1))["output"] == "last\n"


async def arguments_in_records_are_bounded():
    async with host() as one:
        script = "sleep 1000 # " + "é" * 50_000
        running = await one.call("exec", command=script, shell=True, background=True, name="long")
        session = running["sessionId"]
        listed = (await one.process("list"))["sessions"][0]
        for answer in [running, await one.process("poll", session), await one.session("status", session), {"session": listed}]:
            record = answer["session"]
            assert record["args"][0] == "-c" and record["argsTruncated"] is True, record
            assert script.startswith(record["args"][1]) and 4090 < sum(len(one.encode()) for one in record["args"]) <= 4096
            assert len(json.dumps(answer, ensure_ascii=False).encode()) < 6000
        await one.process("kill", session)
        short = (await one.exec("echo", "a", "b"))["session"]
        assert (short["args"], short["argsTruncated"]) == (["a", "b"], False), short


async def keys_are_sent_after_bytes_after_text():
    async with host() as one:
        script = "stty raw -echo; echo ready; dd bs=1 count=9 2>/dev/null | od -An -tx1"
        session = await one.start("sh", "-c", script)
        await one.shows(session, "ready")
        await one.process("send-keys", session, literal="hi", hex=["00", "ff"], keys=["C-c", "Up", "^X"], delayMs=1)
        await one.ends(session)
        assert "68 69 00 ff 03 1b 5b 41 18" in await one.everything(session)


async def application_cursor_keys_follow_the_mode_of_the_screen():
    async with host() as one:
        script = "stty raw -echo; printf '\\033[?1hready'; dd bs=1 count=6 2>/dev/null | od -An -tx1"
        session = await one.start("sh", "-c", script)
        await one.shows(session, "ready")
        await one.process("send-keys", session, keys=["up", "home"])
        await one.ends(session)
        assert "1b 4f 41 1b 4f 48" in await one.everything(session)


async def a_paste_is_marked_where_the_program_asked():
    async with host() as one:
        for asked, options, expected in [
            ("\\033[?2004h", {}, "1b 5b 32 30 30 7e 61 62 1b 5b 32 30 31 7e"),
            ("", {}, "61 62"),
            ("", {"bracketed": True}, "1b 5b 32 30 30 7e 61 62 1b 5b 32 30 31 7e"),
            ("\\033[?2004h", {"bracketed": False}, "61 62"),
        ]:
            count = len(expected.split())
            script = f"stty raw -echo; printf '{asked}ready'; dd bs=1 count={count} 2>/dev/null | od -An -v -tx1"
            session = await one.start("sh", "-c", script)
            await one.shows(session, "ready")
            await one.process("paste", session, text="ab", **options)
            await one.ends(session)
            text = await one.everything(session)
            assert expected in " ".join(text.split()), (asked, options, text)
        session = await one.start("cat")
        message = await one.fails(
            "process", "SESSION_WRITE_FAILED", action="paste", sessionId=session, text="a\u001b[201~b")
        assert "paste" in message
        await one.process("kill", session)


async def the_end_of_input_is_told_to_a_terminal_and_to_a_reader_of_keys_not():
    async with host() as one:
        session = await one.start("cat")
        await one.process("write", session, data="line\r", eof=True)
        assert (await one.ends(session))["exitCode"] == 0
        session = await one.start("sh", "-c", "stty raw; echo ready; exec cat")
        await one.shows(session, "ready")
        await one.fails("process", "SESSION_WRITE_FAILED", action="write", sessionId=session, data="", eof=True)
        await one.process("kill", session)


async def clear_forgets_what_has_ended_and_remove_ends_what_has_not():
    async with host() as one:
        ended = (await one.exec("true"))["sessionId"]
        running = await one.start("sleep", "1000")
        assert (await one.process("clear"))["cleared"] == 1
        assert [session["sessionId"] for session in (await one.process("list"))["sessions"]] == [running]
        await one.fails("process", "SESSION_NOT_FOUND", action="poll", sessionId=ended)
        removed = await one.process("remove", running)
        assert removed["removed"] and removed["session"]["signal"] == "SIGKILL", removed
        assert not lives(removed["session"]["pid"])
        await one.fails("process", "SESSION_NOT_FOUND", action="log", sessionId=running)
        assert (await one.process("list"))["sessions"] == []


async def a_session_that_waits_for_input_says_so():
    async with host() as one:
        waits = await one.start("sh", "-c", "printf 'name? '; read x")
        await one.shows(waits, "name?")
        first = (await one.session("status", waits))["session"]
        assert first["waitingForInput"] is False, "it wrote just now"
        with anyio.fail_after(40):
            while not (await one.session("status", waits))["session"]["waitingForInput"]:
                await anyio.sleep(0.2)
        await one.process("kill", waits)


async def keys_without_a_terminal_are_refused_before_anything_is_typed():
    async with host() as one:
        session = (await one.call("exec", command=["cat"], stdin=True, background=True))["sessionId"]
        message = await one.fails(
            "process", "SESSION_WRITE_FAILED", action="send-keys", sessionId=session, literal="abc", keys=["enter"])
        assert "no terminal" in message and session in message
        assert (await one.process("send-keys", session, literal="def", hex=["0a"]))["bytes"] == 4
        await one.process("write", session, eof=True)
        assert await one.everything(session) == "def\n"


async def what_was_typed_before_a_failure_is_told():
    async with host() as one:
        # A terminal in raw mode has no end of input, and the text before it was taken.
        session = await one.start("sh", "-c", "stty raw -echo; echo ready; exec sleep 1000")
        await one.shows(session, "ready")
        message = await one.fails(
            "process", "SESSION_WRITE_FAILED", action="write", sessionId=session, data="abc", eof=True)
        assert message.startswith("3 bytes were taken"), message
        # The queue of a program that does not read is filled: then bytes are not taken, and no key after them.
        piece, told = "x" * 240_000, []
        while not told:
            result = await one.ask("process", {
                "action": "send-keys", "sessionId": session, "literal": piece, "keys": ["a"]})
            told = [result.structured_content["error"]] if result.is_error else []
        assert told[0]["message"].startswith("65536 of 240000 bytes were taken: "), told
        assert (told[0]["code"], told[0]["recoverable"]) == ("SESSION_WRITE_FAILED", True), told
        await one.process("kill", session)
