#!/usr/bin/python3
"""A window with a terminal that shows a session: VTE reads the pty itself, in direct mode.

    examples/vte_pane.py TOOL WORKSPACE [ARGUMENT…]  # opens the tool, and prints what claims it
    examples/vte_pane.py --claim TOKEN               # after that one was killed, within its grace

The tool's file must say `direct = true`. Closing the window, also by Ctrl-Shift-W, closes the
session. Needs python3-gi, gir1.2-gtk-3.0 and gir1.2-vte-2.91.
"""

import os
import sys

import gi

gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
gi.require_version("Vte", "2.91")
from gi.repository import Gdk, Gio, GLib, Gtk, Vte  # noqa: E402

NAME = "org.st2.Tools"
MANAGER = ("/org/st2/Tools", "org.st2.Tools.Manager1")
SESSION = "org.st2.Tools.Session1"
PROPERTIES = "org.freedesktop.DBus.Properties"
READ_MAX = 256 * 1024
PATIENCE_MS = 60_000


class Broker:
    """The calls that a pane makes. They block: the window is not there yet, or on its way out."""

    def __init__(self):
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)

    def call(self, place, method, signature, *arguments):
        return self.call_with_descriptors(place, method, signature, *arguments)[0]

    def call_with_descriptors(self, place, method, signature, *arguments):
        parameters, flags = GLib.Variant(signature, arguments), Gio.DBusCallFlags.NONE
        reply, descriptors = self.bus.call_with_unix_fd_list_sync(
            NAME, *place, method, parameters, None, flags, PATIENCE_MS, None, None
        )
        return reply.unpack(), descriptors

    def property(self, place, name):
        path, interface = place
        return self.call((path, PROPERTIES), "Get", "(ss)", interface, name)[0]

    def open(self, tool, workspace, arguments):
        options = {"workspace": GLib.Variant("s", os.path.abspath(workspace))}
        if arguments:
            options["argv"] = GLib.Variant("as", arguments)
        path, info = self.call(MANAGER, "Open", "(sa{sv})", tool, options)
        return path, info["token"]

    def claim(self, token):
        token, paths = self.call(MANAGER, "ClaimLease", "(s)", token)
        if not paths:
            sys.exit("the lease has no session any more")
        return paths[0], token


class Pane(Gtk.Window):
    """A window that shows one session for as long as both live."""

    def __init__(self, broker, path):
        super().__init__()
        self.broker, self.session = broker, (path, SESSION)
        self.set_title(f"{self.property('Tool')} {self.property('Id')}")
        self.terminal = Vte.Terminal()
        self.add(self.terminal)
        self.hold()
        self.connect("destroy", self.close_session)
        keys = Gtk.AccelGroup()
        held = Gdk.ModifierType.CONTROL_MASK | Gdk.ModifierType.SHIFT_MASK
        keys.connect(Gdk.KEY_W, held, Gtk.AccelFlags.VISIBLE, lambda *_: self.close())
        self.add_accel_group(keys)

    def call(self, method, signature, *arguments):
        return self.broker.call(self.session, method, signature, *arguments)

    def property(self, name):
        return self.broker.property(self.session, name)

    def hold(self):
        """Takes the terminal, and shows what the broker has of its output so far."""
        unseen = self.property("UnseenAt")
        options = {"framing": GLib.Variant("s", "direct")}
        (stream, info), descriptors = self.broker.call_with_descriptors(
            self.session, "Attach", "(a{sv})", options
        )
        self.terminal.set_size(info["columns"], info["rows"])
        self.show_retained(unseen[-1] if unseen else 0, info["begin"])
        # VTE owns the descriptor from here on, and tells the kernel its size.
        controller = descriptors.get(info["controller"])
        self.terminal.set_pty(Vte.Pty.new_foreign_sync(controller))
        if unseen:
            # An earlier pane took some output with it: a full-screen tool draws all of it again.
            self.call("Signal", "(s)", "SIGWINCH")
        # Nothing is sent on the stream: whatever happens to it is the end of the hold. As long as
        # it is open, the broker leaves the terminal to us.
        self.stream = descriptors.get(stream)
        ends = GLib.IOCondition.IN | GLib.IOCondition.HUP
        GLib.unix_fd_add_full(GLib.PRIORITY_LOW, self.stream, ends, self.hold_is_over)

    def show_retained(self, cursor, end):
        while cursor < end:
            count = min(READ_MAX, end - cursor)
            data, _, cursor, _ = self.call("Read", "(tua{sv})", cursor, count, {})
            self.terminal.feed(bytes(data))

    def hold_is_over(self, _stream, _condition):
        """The session ended, or another claimed it."""
        closed, outcome = self.call("Wait", "(t)", 1000)
        self.disconnect_by_func(self.close_session)
        leave(outcome if closed else None)
        return GLib.SOURCE_REMOVE

    def close_session(self, _window):
        (outcome,) = self.call("Close", "(a{sv})", {})
        leave(outcome)


def leave(outcome):
    if outcome:
        print(outcome["kind"], outcome["signal"] or outcome["code"], outcome["reason"], flush=True)
    else:
        print("claimed by another", flush=True)
    Gtk.main_quit()


def main(arguments):
    broker = Broker()
    match arguments:
        case ["--claim", token]:
            path, token = broker.claim(token)
        case [tool, workspace, *rest] if not tool.startswith("-"):
            path, token = broker.open(tool, workspace, rest)
        case _:
            sys.exit(__doc__)
    pane = Pane(broker, path)
    print(f"token {token}", flush=True)
    pane.show_all()
    Gtk.main()


if __name__ == "__main__":
    main(sys.argv[1:])
