// An edit by OpenAI's package for Node.js, as its documentation has it, at another base URL.
// `openai.mjs responses` asks by the newer API.
import OpenAI from 'openai';
import { answer, messageOf, readTask } from './task.mjs';

const task = await readTask();
const client = new OpenAI({ baseURL: `${task.url}/v1`, apiKey: task.key });

async function chat(more) {
  const request = { model: 'auto', messages: [{ role: 'user', content: messageOf(task) }], ...more };
  if (!task.stream) return [(await client.chat.completions.create(request)).choices[0].message.content];
  const pieces = [];
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    const piece = chunk.choices[0]?.delta?.content;
    if (piece) pieces.push(piece);
  }
  return pieces;
}

async function responses(more) {
  const request = { model: 'auto', input: messageOf(task), ...more };
  if (!task.stream) return [(await client.responses.create(request)).output_text];
  const pieces = [];
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    if (event.type === 'response.output_text.delta') pieces.push(event.delta);
  }
  return pieces;
}

await answer(task, process.argv[2] === 'responses' ? responses : chat, OpenAI.APIError);
