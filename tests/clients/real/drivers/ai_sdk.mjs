// An edit by the AI SDK with its provider for OpenAI-compatible services.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { messageOf, readTask, tell } from './task.mjs';

const task = await readTask();
const provider = createOpenAICompatible({
  name: 'apply-service',
  baseURL: `${task.url}/v1`,
  apiKey: task.key,
});
const request = { model: provider('auto'), prompt: messageOf(task) };
try {
  const pieces = [];
  if (task.stream) {
    let failure = null;
    const { textStream } = streamText({ ...request, onError: ({ error }) => (failure = error) });
    for await (const piece of textStream) pieces.push(piece);
    if (failure !== null) throw failure;
  } else {
    pieces.push((await generateText(request)).text);
  }
  tell({ text: pieces.join(''), pieces: pieces.length });
} catch (error) {
  tell({ error: `${error.name}: ${error.message}` });
}
