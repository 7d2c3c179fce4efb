// The official SDK as the client of `warder mcp`: node client.mjs WARDER OUTSIDE_FILE. Prints one JSON object.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [warder, outside] = process.argv.slice(2);
const seen = { questions: [], progress: [] };

async function connect(capabilities) {
  const client = new Client({ name: "sdk", version: "1" }, { capabilities });
  if (capabilities.elicitation)
    client.setRequestHandler(ElicitRequestSchema, async (request) => {
      seen.questions.push(request.params.message);
      return { action: "accept", content: { answer: "once" } };
    });
  await client.connect(new StdioClientTransport({ command: warder, args: ["mcp"], env: process.env }));
  return client;
}

const call = async (client, name, args, options) =>
  JSON.parse((await client.callTool({ name, arguments: args }, undefined, options)).content[0].text);

const client = await connect({ elicitation: {} });
seen.server = client.getServerVersion();
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
await client.ping();
seen.written = await call(client, "write_file", { path: "a.txt", content: "one\n" });
seen.read = await call(client, "read_file", { path: "a.txt" });
seen.granted = await call(client, "read_file", { path: outside });
// The last sleep: progress that comes in one piece with the answer the SDK drops.
seen.shell = await call(client, "run_shell", { command: "echo a; sleep 0.3; echo b; sleep 0.3" },
  { onprogress: (progress) => seen.progress.push(progress.message) });
const abort = new AbortController();
const aborted = call(client, "run_shell", { command: "sleep 100" }, { signal: abort.signal });
setTimeout(() => abort.abort("enough"), 300);
seen.aborted = await aborted.then(() => "answered", (error) => String(error.message ?? error));
seen.after = await call(client, "run_shell", { command: "echo after" });
seen.unknown = await client.callTool({ name: "launch", arguments: {} }).then(() => 0, (error) => error.code);
await client.close();

const plain = await connect({});
seen.refused = await call(plain, "read_file", { path: outside });
await plain.close();
console.log(JSON.stringify(seen));
