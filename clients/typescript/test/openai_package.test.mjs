/** OpenAI's own package against the service: only the base URL is changed. */

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

import { listOf, LOST_DIFF, MERGED, ORIGINAL, UPDATE } from "./greeting.mjs";

const openai = new OpenAI({ baseURL: `${process.env.SERVICE_URL}/v1`, apiKey: "unused" });

function bodyOf(update, members = {}) {
  const content =
    `<instruction>Pass the mark.</instruction>\n<code>${ORIGINAL}</code>\n` +
    `<update>${update}</update>`;
  return { model: "auto", messages: [{ role: "user", content }], ...members };
}

test("an edit comes back merged, with usage", async () => {
  const completion = await openai.chat.completions.create(bodyOf(UPDATE));
  assert.equal(completion.object, "chat.completion");
  const [choice] = completion.choices;
  assert.deepEqual([choice.message.role, choice.finish_reason], ["assistant", "stop"]);
  assert.equal(choice.message.content, MERGED);
  assert.ok(completion.usage.total_tokens > 0);
});

test("the pieces of a stream are the merged file, and usage comes if it is asked for", async () => {
  const stream = await openai.chat.completions.create(
    bodyOf(UPDATE, { stream: true, stream_options: { include_usage: true } }),
  );
  const pieces = [];
  const reasons = [];
  let usage = null;
  for await (const chunk of stream) {
    pieces.push(chunk.choices[0]?.delta.content ?? "");
    reasons.push(chunk.choices[0]?.finish_reason ?? null);
    usage = chunk.usage ?? usage;
  }
  assert.equal(pieces.join(""), MERGED);
  assert.deepEqual(reasons.filter((reason) => reason !== null), ["stop"]);
  assert.ok(usage.total_tokens > 0);
});

test("the package's stream helper puts the same completion together", async () => {
  const completion = await openai.chat.completions.stream(bodyOf(UPDATE)).finalChatCompletion();
  assert.equal(completion.choices[0].message.content, MERGED);
});

test("a prediction is taken as text and as parts", async () => {
  for (const content of [MERGED, [{ type: "text", text: MERGED }]]) {
    const completion = await openai.chat.completions.create(
      bodyOf(UPDATE, { prediction: { type: "content", content } }),
    );
    assert.equal(completion.choices[0].message.content, MERGED);
  }
});

test("a refused edit is the package's own error, streamed or not", async () => {
  for (const stream of [false, true]) {
    await assert.rejects(
      openai.chat.completions.create(bodyOf(LOST_DIFF, { stream })),
      (error) => {
        assert.ok(error instanceof OpenAI.UnprocessableEntityError);
        assert.ok(error instanceof OpenAI.APIError);
        assert.equal(error.status, 422);
        assert.ok(error.code && error.type && error.message.includes("hint:"));
        return true;
      },
    );
  }
});

test("an unknown model and a wrong parameter are the package's own errors", async () => {
  await assert.rejects(
    openai.chat.completions.create(bodyOf(UPDATE, { model: "gpt-nothing" })),
    (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found",
  );
  await assert.rejects(
    openai.chat.completions.create(bodyOf(UPDATE, { temperature: 9 })),
    OpenAI.BadRequestError,
  );
});

test("models are listed and found", async () => {
  const ids = (await listOf(openai.models.list())).map(({ id }) => id);
  assert.ok(ids.length > 0);
  assert.equal((await openai.models.retrieve(ids[0])).id, ids[0]);
});
