// What Morph's SDK sends for an edit, and what it makes of the answer.
//
//     node morph_record.mjs < edits
//
// Each line of the input is an edit with `original`, `update`, `instruction` and `expected`. A line of
// the output has the `headers` of its request that speak of the edit, the request's `body`, and
// `merged`: what the SDK makes of the answer `expected`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { MorphClient } from '@morphllm/morphsdk';

let received = null;
let answer = '';
const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  received = { headers: request.headers, body: JSON.parse(Buffer.concat(pieces).toString()) };
  const choice = { index: 0, delta: { content: answer }, finish_reason: 'stop' };
  const event = { id: 'one', object: 'chat.completion.chunk', created: 0, model: 'any', choices: [choice] };
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.end(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

const morph = new MorphClient({ apiKey: 'none' });
const settings = {
  morphApiUrl: `http://127.0.0.1:${server.address().port}`,
  anchorCompactionThreshold: 1,
};
for await (const line of createInterface({ input: process.stdin })) {
  const edit = JSON.parse(line);
  answer = edit.expected;
  const result = await morph.fastApply.applyEdit(
    { originalCode: edit.original, codeEdit: edit.update, instruction: edit.instruction },
    settings,
  );
  const context = received.headers['x-morph-apply-context'];
  const headers = context === undefined ? {} : { 'X-Morph-Apply-Context': context };
  console.log(JSON.stringify({ headers, body: received.body, merged: result.mergedCode }));
}
server.close();
