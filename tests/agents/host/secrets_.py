"""Secrets that a program writes are not shown, however they are cut."""

from harness import host

SECRETS = [
    ("password: hunter2-correct-horse", "hunter2-correct-horse"),
    ("Authorization: Bearer abcDEF123.456-xyz", "abcDEF123"),
    ("API_KEY=0123456789abcdef0123", "0123456789abcdef"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "ghp_0123456789abcdef"),
]


async def defect_a_secret_split_across_reads_is_never_shown():
    """The program writes each secret in two pieces, at every position, and the host reads in between."""
    async with host() as one:
        for line, secret in SECRETS:
            # A line for each position: its first piece, a wait for the host, the rest.
            script = (
                "import sys, tty\n"
                f"line = {line!r}\n"
                "tty.setcbreak(0)\n"
                "for at in range(1, len(line)):\n"
                "    sys.stdout.write(f'{at}) ' + line[:at]); sys.stdout.flush()\n"
                "    sys.stdin.read(1)\n"
                "    sys.stdout.write(line[at:] + ' after\\n'); sys.stdout.flush()\n"
                "print('done')\n"
            )
            session = await one.start("python3", "-c", script)
            polled, read, cursor = one.told[session], "", 0
            for at in range(1, len(line)):
                while f"\n{at}) " not in "\n" + polled:
                    polled += (await one.process("poll", session, timeout=5000))["output"]
                for answer in [await one.session("inspect", session), await one.process("log", session)]:
                    check(answer["output"], secret, line, at)
                piece = await one.session("read", session, cursor=cursor)
                read, cursor = read + piece["output"], piece["next"]
                await one.process("write", session, data="x")
                while f"\n{at + 1}) " not in polled and "done" not in polled:
                    polled += (await one.process("poll", session, timeout=5000))["output"]
            await one.ends(session)
            read += await one.everything(session)
            for text in [polled, read, (await one.process("log", session, offset=0))["output"]]:
                check(text, secret, line, "all")
                assert all(f"{at}) " in text for at in range(1, len(line))), text
            assert "[redacted]" in polled


def check(text, secret, line, at):
    """No piece of the secret of more than a few characters is in the text."""
    for begin in range(len(secret) - 8):
        assert secret[begin:begin + 9] not in text, (line, at, secret[begin:begin + 9], text[-200:])


async def secrets_are_neither_in_records_nor_on_the_screen_nor_in_errors():
    async with host() as one:
        secret = "hunter2-correct-horse"
        session = await one.start(
            "sh", "-c", "printf '\\033]2;token=%s\\007' $2; echo password=$2; read x", "--token", "--token", secret,
        )
        await one.shows(session, "password=")
        for answer in [
            await one.process("list"), await one.session("status", session), await one.call("screen", sessionId=session),
            await one.session("inspect", session), await one.process("kill", session),
        ]:
            assert secret not in str(answer), answer
