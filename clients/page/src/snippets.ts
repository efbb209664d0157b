/** How each client is told where this server is. */

/** What to write for one client; `note` says where it goes. */
export interface Snippet {
  id: string;
  title: string;
  note: string;
  code: string;
}

const EDIT = {
  path: "greet.py",
  original: 'def greet(name):\n    print("Hello " + name)\n',
  update: 'def greet(name, mark="!"):\n    print("Hello " + name + mark)\n',
};

/** All snippets for a server at an address, which may end with a slash. */
export function snippetsFor(address: string, { needsKey }: { needsKey: boolean }): Snippet[] {
  const url = address.replace(/\/+$/, "");
  return [
    curl(url, needsKey),
    python(url, needsKey),
    typescript(url, needsKey),
    openai(url, needsKey),
    claudeCode(url),
    openCode(url),
    continueDev(url, needsKey),
    morph(url, needsKey),
    editors(url),
    commandLine(url, needsKey),
  ];
}

function curl(url: string, needsKey: boolean): Snippet {
  const key = needsKey ? ` \\\n    -H "Authorization: Bearer $APPLY_API_KEY"` : "";
  const body = JSON.stringify(EDIT, null, 2).replaceAll("'", "'\\''");
  return {
    id: "curl",
    title: "curl",
    note: "In a shell.",
    code: `curl -sS ${url}/v1/apply -H 'Content-Type: application/json'${key} -d '${body}'`,
  };
}

function python(url: string, needsKey: boolean): Snippet {
  const key = needsKey ? ', api_key=os.environ["APPLY_API_KEY"]' : "";
  return {
    id: "python",
    title: "Python",
    note: "With the client in clients/python.",
    code: `${needsKey ? "import os\n\n" : ""}from apply_client import ApplyClient

with ApplyClient("${url}"${key}) as client:
    result = client.apply(
        ${JSON.stringify(EDIT.original)},
        ${JSON.stringify(EDIT.update)},
        path="${EDIT.path}",
    )
    print(result.status, result.merged)`,
  };
}

function typescript(url: string, needsKey: boolean): Snippet {
  const key = needsKey ? ", apiKey: process.env.APPLY_API_KEY" : "";
  return {
    id: "typescript",
    title: "TypeScript",
    note: "With the client in clients/typescript.",
    code: `import { ApplyClient } from "apply-client";

const client = new ApplyClient({ baseUrl: "${url}"${key} });
const result = await client.apply(${JSON.stringify(EDIT, null, 2)});
console.log(result.status, result.merged);`,
  };
}

function openai(url: string, needsKey: boolean): Snippet {
  const key = needsKey ? 'os.environ["APPLY_API_KEY"]' : '"none"';
  return {
    id: "openai",
    title: "OpenAI's client",
    note: "In Python; clients of other makers need the same base address.",
    code: `${needsKey ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key=${key})
original = ${JSON.stringify(EDIT.original)}
update = ${JSON.stringify(EDIT.update)}
answer = client.chat.completions.create(
    model="auto",
    messages=[{"role": "user", "content": f"<code>{original}</code>\\n<update>{update}</update>"}],
)
print(answer.choices[0].message.content)`,
  };
}

const MCP_COMMAND = ["/path/to/client-venv/bin/apply-client", "mcp", "--root", "/path/to/project"];

function claudeCode(url: string): Snippet {
  const [command, ...args] = MCP_COMMAND;
  const env = { APPLY_SERVICE_URL: url, APPLY_API_KEY: "${APPLY_API_KEY:-}" };
  return {
    id: "claude-code",
    title: "Claude Code and Cursor",
    note: "In .mcp.json or .cursor/mcp.json in the root of the project.",
    code: JSON.stringify({ mcpServers: { apply: { type: "stdio", command, args, env } } }, null, 2),
  };
}

function openCode(url: string): Snippet {
  const apply = {
    type: "local",
    command: MCP_COMMAND,
    environment: { APPLY_SERVICE_URL: url },
    enabled: true,
  };
  return {
    id: "opencode",
    title: "OpenCode",
    note: "In opencode.json in the project.",
    code: JSON.stringify({ $schema: "https://opencode.ai/config.json", mcp: { apply } }, null, 2),
  };
}

function continueDev(url: string, needsKey: boolean): Snippet {
  return {
    id: "continue",
    title: "Continue",
    note: "In ~/.continue/config.yaml, for the button Apply.",
    code: `models:
  - name: apply-service
    provider: openai
    model: auto
    apiBase: ${url}/v1
    apiKey: ${needsKey ? "YOUR_KEY" : "none"}
    roles: [apply]
    promptTemplates:
      apply: "<code>{{{ original_code }}}</code>\\n<update>{{{ new_code }}}</update>"`,
  };
}

function morph(url: string, needsKey: boolean): Snippet {
  return {
    id: "morph",
    title: "Morph's MCP server",
    note: "In its environment; its keys must begin with sk-.",
    code: `MORPH_API_URL=${url}\nMORPH_API_KEY=${needsKey ? "sk-YOUR_KEY" : "sk-none"}`,
  };
}

function editors(url: string): Snippet {
  return {
    id: "editors",
    title: "Editors",
    note: "VS Code, then Neovim. The key goes into VS Code with Apply: Set API Key.",
    code: `// settings.json of VS Code\n{ "applyService.url": "${url}" }\n\n-- init.lua of Neovim\nrequire("apply_service").setup({ url = "${url}" })`,
  };
}

function commandLine(url: string, needsKey: boolean): Snippet {
  return {
    id: "command-line",
    title: "Command line",
    note: "update.txt holds the update; --write changes the file.",
    code: `export APPLY_SERVICE_URL=${url}${needsKey ? "\nexport APPLY_API_KEY=YOUR_KEY" : ""}\napply-client apply greet.py --update update.txt --write`,
  };
}
