// A host on the official TypeScript SDK: every tool once, and what it refuses.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const root = mkdtempSync(join(tmpdir(), "workspace"));
const client = new Client({ name: "typescript", version: "1" });
await client.connect(
  new StdioClientTransport({
    command: join(process.env.ST2_TOOLS_BIN_DIR, "st2-tools"),
    args: ["mcp", "--task", "from-typescript"],
    env: process.env,
    cwd: root,
  }),
);

async function call(name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.equal(result.isError ?? false, false, JSON.stringify(result));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  assert.equal(result.structuredContent.ok, true);
  return result.structuredContent;
}

const session = (verb, args) => call(`coordinate_agents_session_${verb}`, { root, ...args });
const act = (action, args) => call("process", { action, ...args });

async function shows(sessionId, text) {
  for (let seen = ""; !seen.includes(text); ) {
    const answer = await act("poll", { sessionId, timeout: 5000 });
    seen += answer.output;
    assert(seen.includes(text) || !answer.ended, seen);
  }
}

try {
  const { tools } = await client.listTools();
  assert.equal(tools.length, 9);

  // Sessions.
  const { sessionId, session: record } = await session("open", { agent: "shell" });
  assert.equal(record.task, "from-typescript");
  await session("write", { sessionId, input: "echo $((6 * 7)) words" });
  await shows(sessionId, "42 words");
  assert((await session("read", { sessionId })).output.includes("42 words"));
  assert((await session("inspect", { sessionId })).output.includes("42 words"));
  assert.equal((await session("status", { sessionId })).session.exitCode, null);
  assert((await call("screen", { sessionId })).output.includes("42 words"));

  // Keys, pastes, Enter.
  await act("send-keys", { sessionId, literal: "echo one", keys: ["space"] });
  await act("paste", { sessionId, text: "two" });
  await act("submit", { sessionId });
  await shows(sessionId, "one two");
  await act("write", { sessionId, data: "echo three\r" });
  await shows(sessionId, "three");
  assert((await act("log", { sessionId, limit: 5 })).totalLines > 3);
  const closed = await session("close", { sessionId });
  assert.equal(closed.session.reason, "closed-by-owner");

  // Commands, and a long one that tells of its progress.
  const done = await call("exec", { command: "echo out; exit 4", shell: true, pty: true });
  assert.deepEqual([done.output, done.session.exitCode], ["out\n", 4]);
  let told = 0;
  const onprogress = () => (told += 1);
  const running = await call("exec", { command: ["sleep", "1000"], pty: true, yieldMs: 1500 }, { onprogress });
  assert.equal(running.status, "running");
  assert(told >= 1);
  assert.equal((await act("kill", { sessionId: running.sessionId })).confirmed, true);
  assert.equal((await act("remove", { sessionId: running.sessionId })).removed, true);
  assert((await act("clear", {})).cleared >= 2);
  assert.deepEqual((await act("list", {})).sessions, []);

  // A cancelled wait.
  const waits = await call("exec", { command: ["sleep", "1000"], pty: true, background: true });
  const controller = new AbortController();
  const poll = { action: "poll", sessionId: waits.sessionId, timeout: 120_000 };
  const cancelled = client.callTool({ name: "process", arguments: poll }, undefined, { signal: controller.signal });
  setImmediate(() => controller.abort("no longer wanted"));
  await assert.rejects(cancelled);
  assert.equal((await session("status", { sessionId: waits.sessionId })).session.exitCode, null);
  await act("kill", { sessionId: waits.sessionId });

  // Failures.
  const failed = await client.callTool({ name: "screen", arguments: { sessionId: "session_none" } });
  assert.equal(failed.isError, true);
  assert.equal(failed.structuredContent.error.code, "SESSION_NOT_FOUND");
  await assert.rejects(client.callTool({ name: "exec", arguments: { command: ["true"], novel: 1 } }), { code: -32602 });
} finally {
  await client.close();
}
