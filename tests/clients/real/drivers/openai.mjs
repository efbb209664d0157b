// An edit by OpenAI's package for Node.js, as its documentation has it, at another base URL.
import OpenAI from 'openai';
import { messageOf, readTask, tell } from './task.mjs';

const task = await readTask();
const client = new OpenAI({ baseURL: `${task.url}/v1`, apiKey: task.key });
const request = { model: 'auto', messages: [{ role: 'user', content: messageOf(task) }] };
try {
  const pieces = [];
  if (task.stream) {
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      const piece = chunk.choices[0]?.delta?.content;
      if (piece) pieces.push(piece);
    }
  } else {
    pieces.push((await client.chat.completions.create(request)).choices[0].message.content);
  }
  tell({ text: pieces.join(''), pieces: pieces.length });
} catch (error) {
  if (!(error instanceof OpenAI.APIError)) throw error;
  tell({ error: error.message });
}
