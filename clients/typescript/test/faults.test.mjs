/** The client against servers that refuse, break off, cut characters apart and speak nonsense. */

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import {
  APIConnectionError,
  APIStatusError,
  APITimeoutError,
  ApplyClient,
  ApplyClientError,
  AuthenticationError,
  BadRequestError,
  EditRejectedError,
  InvalidResponseError,
  NotFoundError,
  RateLimitError,
  ServerError,
  TooLargeError,
  UnknownChoiceError,
  UnprocessableEditError,
} from "apply-client";

import { listOf } from "./greeting.mjs";
import {
  event,
  problem,
  QUICK,
  reset,
  RESULT,
  result,
  serve,
  silence,
  stream,
  whole,
} from "./scripted_server.mjs";

const EDIT = { original: "naive\n", update: "naïve — 😀\n" };
const PROGRESS =
  event("region", { region: 0, start_line: 1, end_line: 1 }) +
  event("token", { text: "naïve — 😀", region: 0 }) +
  event("region_done", { region: 0 });

const servers = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function clientOf(answers, options = {}) {
  const server = await serve(...answers);
  servers.push(server);
  return { client: new ApplyClient({ baseUrl: server.url, ...QUICK, ...options }), server };
}

for (const [name, fault] of [
  ["429", problem(429, "queue-full")],
  ["503", problem(503, "not-ready")],
  ["a reset", reset],
  ["a body cut short", (socket) => whole(200, "{}", { "Content-Length": 900 })(socket)],
]) {
  test(`${name} is tried again, by apply and before a stream begins`, async () => {
    const { client, server } = await clientOf([fault, fault, result()]);
    assert.equal((await client.apply(EDIT)).merged, RESULT.merged);
    assert.equal(server.requests.length, 3);
    assert.deepEqual(server.requests[2], server.requests[0]);
    if (name !== "a body cut short") {
      const streaming = await clientOf([fault, fault, stream(event("result", RESULT))]);
      const items = await listOf(streaming.client.applyStream(EDIT));
      assert.deepEqual(items.map(({ type }) => type), ["result"]);
      assert.equal(streaming.server.requests.length, 3);
    }
  });
}

for (const [status, kind] of [
  [400, BadRequestError],
  [401, AuthenticationError],
  [403, AuthenticationError],
  [404, NotFoundError],
  [409, UnknownChoiceError],
  [413, TooLargeError],
  [422, UnprocessableEditError],
  [500, ServerError],
  [502, ServerError],
  [504, ServerError],
]) {
  test(`${status} is ${kind.name}, and is not tried again`, async () => {
    const { client, server } = await clientOf([problem(status, "some-code", { remedy: "do so" })]);
    await assert.rejects(client.apply(EDIT), (error) => {
      assert.equal(error.constructor, kind);
      assert.ok(error instanceof APIStatusError && error instanceof ApplyClientError);
      assert.equal(error.name, kind.name);
      assert.equal(error.message, "some-code happened; do so");
      assert.deepEqual([error.status, error.code], [status, "some-code"]);
      return true;
    });
    await assert.rejects(listOf(client.applyStream(EDIT)), kind);
    assert.equal(server.requests.length, 2);
  });
}

test("when all tries are spent the last refusal is thrown", async () => {
  const full = problem(429, "queue-full", { headers: { "X-Request-Id": "r-9" }, id: "apply-9" });
  const { client, server } = await clientOf([full]);
  await assert.rejects(client.apply(EDIT), (error) => {
    assert.ok(error instanceof RateLimitError);
    assert.equal(error.requestId, "r-9");
    return true;
  });
  assert.equal(server.requests.length, QUICK.maxRetries + 1);
});

test("a Retry-After beyond the total time is not waited for", async () => {
  const later = problem(503, "not-ready", { headers: { "Retry-After": "3600" } });
  const { client, server } = await clientOf([later]);
  await assert.rejects(client.apply(EDIT), ServerError);
  assert.equal(server.requests.length, 1);
});

test("without a service the error says how often it was tried", async () => {
  const { client, server } = await clientOf([result()]);
  await server.close();
  await assert.rejects(client.apply(EDIT), (error) => {
    assert.ok(error instanceof APIConnectionError && !(error instanceof APITimeoutError));
    assert.match(error.message, /POST \/v1\/apply: .*ECONNREFUSED.* \(4 tries, at most 4 within/);
    assert.ok(error.cause instanceof Error);
    return true;
  });
});

test("silence ends with the total time, which is the client's or the call's", async () => {
  const { client } = await clientOf([silence], { timeoutMs: 50 });
  await assert.rejects(client.apply(EDIT), APITimeoutError);
  const patient = await clientOf([silence, stream(PROGRESS, { ending: "none" })]);
  await assert.rejects(patient.client.apply(EDIT, { timeoutMs: 50 }), APITimeoutError);
  const endless = patient.client.applyStream(EDIT, { timeoutMs: 100 });
  await assert.rejects(listOf(endless), APITimeoutError);
});

test("a caller's signal ends a call with its own reason", async () => {
  const { client, server } = await clientOf([silence]);
  const reason = new Error("enough");
  const controller = new AbortController();
  const pending = client.apply(EDIT, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(pending, reason);
  await assert.rejects(client.apply(EDIT, { signal: controller.signal }), reason);
  await assert.rejects(listOf(client.applyStream(EDIT, { signal: controller.signal })), reason);
  await assert.rejects(listOf(client.applyMany([EDIT], { signal: controller.signal })), reason);
  assert.ok(server.requests.length <= 1);
});

test("a signal ends the wait before another try, and a stream in its middle", async () => {
  const later = problem(503, "not-ready", { headers: { "Retry-After": "20" } });
  const { client, server } = await clientOf([later, stream(PROGRESS, { ending: "none" })]);
  const controller = new AbortController();
  const pending = client.apply(EDIT, { signal: controller.signal });
  while (server.requests.length === 0) {
    await new Promise(setImmediate);
  }
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(pending, { name: "AbortError" });
  const middle = new AbortController();
  const watch = async () => {
    for await (const { type } of client.applyStream(EDIT, { signal: middle.signal })) {
      if (type === "region_done") {
        middle.abort();
      }
    }
  };
  await assert.rejects(watch(), { name: "AbortError" });
});

for (const pieceBytes of [1, 2, 3, 5, 7, 4096]) {
  test(`a stream in pieces of ${pieceBytes} bytes is the same stream`, async () => {
    const text = `: comment\r\n\r\n${PROGRESS.replaceAll("\n", "\r\n")}${event("result", RESULT)}`;
    const { client } = await clientOf([stream(text, { pieceBytes })]);
    const items = await listOf(client.applyStream(EDIT));
    assert.deepEqual(items.slice(0, 3), [
      { type: "region", region: 0, start_line: 1, end_line: 1 },
      { type: "token", text: "naïve — 😀", region: 0 },
      { type: "region_done", region: 0 },
    ]);
    assert.equal(items.length, 4);
    assert.equal(items[3].result.merged, RESULT.merged);
  });
}

for (const [name, ending] of [["ends", "end"], ["is reset", "reset"]]) {
  test(`a stream that ${name} before its result is no result, and is not tried again`, async () => {
    const cut = PROGRESS + event("result", RESULT).slice(0, -1);
    const { client, server } = await clientOf([stream(cut, { ending })]);
    const types = [];
    await assert.rejects(async () => {
      for await (const { type } of client.applyStream(EDIT)) {
        types.push(type);
      }
    }, APIConnectionError);
    assert.deepEqual(types, ["region", "token", "region_done"]);
    assert.equal(server.requests.length, 1);
  });
}

test("an error event is thrown as the error that apply throws", async () => {
  const finding = { code: "lines_lost", severity: "error", message: "lost", hint: "send it" };
  const sent = {
    type: "about:blank",
    title: "",
    status: 422,
    detail: "lost",
    code: "rejected",
    findings: [finding],
  };
  const { client } = await clientOf([stream(PROGRESS + event("error", sent)), whole(422, sent)]);
  const check = (error) => {
    assert.ok(error instanceof EditRejectedError);
    assert.deepEqual(error.findings, [finding]);
    return true;
  };
  await assert.rejects(listOf(client.applyStream(EDIT)), (error) => {
    assert.equal(error.requestId, "stream-1");
    return check(error);
  });
  await assert.rejects(client.apply(EDIT), check);
});

test("events of unknown names are skipped, and nothing is read behind the result", async () => {
  const text = `event: news\ndata: 1\n\ndata: 2\n\n${event("result", RESULT)}${event("token", 3)}`;
  const { client } = await clientOf([stream(text, { ending: "none" })]);
  const items = await listOf(client.applyStream(EDIT));
  assert.deepEqual(items.map(({ type }) => type), ["result"]);
});

test("who leaves a stream closes its connection", async () => {
  let closed;
  const left = new Promise((resolve) => (closed = resolve));
  const answer = (socket) => {
    socket.on("close", closed);
    return stream(PROGRESS, { ending: "none" })(socket);
  };
  const { client } = await clientOf([answer]);
  for await (const { type } of client.applyStream(EDIT)) {
    assert.equal(type, "region");
    break;
  }
  await left;
});

for (const [name, answer] of [
  ["HTML", whole(200, "<html>hello</html>")],
  ["another JSON", whole(200, { merged: 1 })],
  ["nothing", whole(200, "")],
  ["bytes for text", result({ merged: { base64: "AAAA" } })],
  ["no merged file", result({ merged: null })],
  ["no UTF-8", whole(200, Buffer.of(0x22, 0xff, 0xfe, 0x22))],
]) {
  test(`${name} is InvalidResponseError`, async () => {
    const { client, server } = await clientOf([answer]);
    await assert.rejects(client.apply(EDIT), InvalidResponseError);
    assert.equal(server.requests.length, 1);
  });
}

test("what is no file is refused before anything is sent", async () => {
  const { client, server } = await clientOf([result()]);
  for (const original of [undefined, null, 7, { base64: "" }, ["a"]]) {
    await assert.rejects(client.apply({ original, update: "" }), TypeError);
  }
  assert.equal(server.requests.length, 0);
});

test("bytes that are no Base64, and garbage in streams, are InvalidResponseError", async () => {
  const { client } = await clientOf([
    result({ merged: { base64: "*" } }),
    stream("event: token\ndata: {\n\n"),
    stream("event: region\ndata: {\"region\": 1}\n\n"),
    stream("event: result\ndata: {}\n\n"),
    stream(Buffer.from("event: token\ndata: \xff\n\n", "latin1")),
  ]);
  const bytes = { ...EDIT, original: new Uint8Array(1) };
  await assert.rejects(client.apply(bytes), InvalidResponseError);
  for (let count = 0; count < 4; count += 1) {
    await assert.rejects(listOf(client.applyStream(EDIT)), InvalidResponseError);
  }
});

test("a refusal by something else keeps its text, and redirects are not followed", async () => {
  const { client, server } = await clientOf([
    whole(502, "<h1>Bad gateway</h1>"),
    whole(401, { error: { message: "no key" } }),
    whole(307, "", { Location: "/elsewhere" }),
  ]);
  await assert.rejects(client.models(), /the service answered 502: <h1>Bad gateway/);
  await assert.rejects(client.models(), AuthenticationError);
  await assert.rejects(client.models(), (error) => error.status === 307);
  assert.equal(server.requests.length, 3);
});

test("the key goes with every request, and base addresses may have a path", async () => {
  const { server } = await clientOf([result()]);
  const client = new ApplyClient({ baseUrl: `${server.url}/code/`, apiKey: "sk-1", ...QUICK });
  await client.apply(EDIT);
  assert.match(server.requests[0], /^POST \/code\/v1\/apply HTTP\/1\.1\r\n/);
  assert.match(server.requests[0], /\r\nauthorization: Bearer sk-1\r\n/i);
});

test("status is asked once: ready, not ready, and nobody there", async () => {
  const live = whole(200, { status: "live" });
  const { client, server } = await clientOf([
    live,
    whole(200, { status: "ready" }),
    live,
    problem(503, "not-ready"),
  ]);
  assert.deepEqual(await client.status(), { isReady: true, reason: null });
  assert.deepEqual(await client.status(), { isReady: false, reason: "not-ready happened" });
  assert.equal(server.requests.length, 4);
  await server.close();
  await assert.rejects(client.status(), /\(1 try, at most 1 within/);
});

test("no more edits are read than are on their way, and each has its outcome", async () => {
  let numOpen = 0;
  let mostOpen = 0;
  const answer = (socket) => {
    numOpen += 1;
    mostOpen = Math.max(mostOpen, numOpen);
    setTimeout(() => {
      numOpen -= 1;
      const isRefused = /"update":"refuse/.test(server.requests.at(-1));
      (isRefused ? problem(400, "bad") : result())(socket);
    }, 5);
  };
  const { client, server } = await clientOf([answer]);
  let numTaken = 0;
  let numRead = 0;
  function* edits() {
    while (numRead < 20) {
      assert.ok(numRead - numTaken <= 6);
      numRead += 1;
      yield EDIT;
    }
  }
  const positions = [];
  for await (const { position, result: merged, error, edit } of client.applyMany(edits(), {
    maxConcurrency: 3,
  })) {
    numTaken += 1;
    positions.push(position);
    assert.equal(edit, EDIT);
    assert.equal(error, null);
    assert.equal(merged.merged, RESULT.merged);
  }
  assert.deepEqual(positions.sort((a, b) => a - b), [...Array(20).keys()]);
  assert.equal(mostOpen, 3);
});

test("an edit that fails is an outcome; an error of the edits themselves is thrown", async () => {
  const { client } = await clientOf([problem(400, "bad"), result()]);
  const outcomes = await listOf(client.applyMany([EDIT, EDIT], { maxConcurrency: 1 }));
  assert.deepEqual(outcomes.map(({ result: merged }) => merged === null), [true, false]);
  assert.ok(outcomes[0].error instanceof BadRequestError);
  async function* broken() {
    yield EDIT;
    throw new Error("the list ended badly");
  }
  await assert.rejects(listOf(client.applyMany(broken())), /the list ended badly/);
});

test("who leaves many edits, or aborts them, gives up what is on its way", async () => {
  const { client, server } = await clientOf([result(), silence]);
  let isClosed = false;
  async function* edits() {
    try {
      for (;;) {
        yield EDIT;
      }
    } finally {
      isClosed = true;
    }
  }
  for await (const { position } of client.applyMany(edits(), { maxConcurrency: 4 })) {
    assert.equal(position, 0);
    break;
  }
  assert.ok(isClosed);
  const controller = new AbortController();
  const pending = listOf(client.applyMany(edits(), { signal: controller.signal }));
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(pending, { name: "AbortError" });
  assert.ok(server.requests.length >= 1);
});

test("edits that never come keep nobody from leaving", async () => {
  const { client } = await clientOf([result()]);
  async function* waiting() {
    yield EDIT;
    await new Promise(() => undefined);
  }
  const outcomes = client.applyMany(waiting());
  assert.equal((await outcomes.next()).value.position, 0);
  assert.equal((await outcomes.return()).done, true);
});
