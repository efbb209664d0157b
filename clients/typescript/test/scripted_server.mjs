/** A server on a bare socket that answers each request as its script says, well or badly. */

import { createServer } from "node:net";

/** Tries come back within milliseconds; the total time is never what ends a test. */
export const QUICK = { timeoutMs: 30_000, maxRetries: 3, firstDelayMs: 5, maxDelayMs: 10 };

export const RESULT = {
  id: "apply-1",
  status: "applied",
  confidence: 1,
  merged: "naïve — 😀\n",
  diff: null,
  edits: null,
  findings: [],
  removed_lines: [],
  decisions: null,
  source: "merge",
  scope: "file",
  regions: [],
  usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cached_tokens: 0 },
  speculation: {
    drafted: 0,
    accepted: 0,
    target_passes: 0,
    decode_passes: 0,
    mean_accepted_length: 0,
    tokens_per_target_pass: 0,
    by_reference: {},
  },
  timing: { queue: 0, prefill: 0, decode: 0, total: 0 },
  model: "none",
  system_fingerprint: null,
};

/**
 * Serve `answers`, one a request and the last one for all further ones; each gets the socket and
 * the request. Gives the address, the requests and `close`.
 */
export async function serve(...answers) {
  const requests = [];
  const sockets = new Set();
  const server = createServer((socket) => {
    let received = "";
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.on("data", (piece) => {
      received += piece;
      if (isWhole(received)) {
        requests.push(received);
        received = "";
        answers[Math.min(requests.length, answers.length) - 1](socket);
      }
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    // `fetch` may keep an idle connection for seconds.
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}

/** An answer with a whole body, after which the connection is closed. */
export function whole(status, body, headers = {}) {
  const isRaw = typeof body === "string" || Buffer.isBuffer(body);
  const content = Buffer.from(isRaw ? body : JSON.stringify(body));
  return (socket) => {
    socket.write(headOf(status, { "Content-Length": content.length, ...headers }));
    socket.end(content);
  };
}

/** A result. */
export function result(members = {}) {
  return whole(200, { ...RESULT, ...members });
}

/** A refusal as the service writes it. */
export function problem(status, code, { headers = {}, ...members } = {}) {
  const body = { type: "about:blank", title: "", status, detail: `${code} happened`, code };
  const type = { "Content-Type": "application/problem+json" };
  return whole(status, { ...body, ...members }, { ...type, ...headers });
}

/** A stream of these bytes in pieces of a size, one chunk each. */
export function stream(text, { pieceBytes = 1 << 20, ending = "end" } = {}) {
  return async (socket) => {
    socket.setNoDelay(true);
    const type = { "Content-Type": "text/event-stream", "X-Request-Id": "stream-1" };
    socket.write(headOf(200, { "Transfer-Encoding": "chunked", ...type }));
    const content = Buffer.from(text);
    for (let start = 0; start < content.length; start += pieceBytes) {
      const piece = content.subarray(start, start + pieceBytes);
      socket.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece]));
      await new Promise((resolve) => socket.write("\r\n", resolve));
      await new Promise(setImmediate);
    }
    if (ending === "end") {
      socket.end("0\r\n\r\n");
    } else if (ending === "reset") {
      socket.resetAndDestroy();
    }
  };
}

/** Close the connection with a reset and say nothing. */
export function reset(socket) {
  socket.resetAndDestroy();
}

/** Say nothing and keep the connection open until the client leaves. */
export function silence() {}

/** One server-sent event. */
export function event(name, content) {
  return `event: ${name}\ndata: ${JSON.stringify(content)}\n\n`;
}

function headOf(status, headers) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\nConnection: close\r\n${lines.join("")}\r\n`;
}

function isWhole(received) {
  const end = received.indexOf("\r\n\r\n");
  const length = /content-length: (\d+)/i.exec(received)?.[1] ?? 0;
  return end >= 0 && Buffer.byteLength(received.slice(end + 4)) >= Number(length);
}
