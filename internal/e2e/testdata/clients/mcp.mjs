// Calls tools of an MCP server with the official client, and prints what a model sees of each result as a line of JSON.
// The arguments are the tools and their arguments as JSON, in pairs, then -- and the server's command.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const end = process.argv.indexOf('--')
const calls = process.argv.slice(2, end), [command, ...args] = process.argv.slice(end + 1)
const client = new Client({ name: 'test', version: '1' })
await client.connect(new StdioClientTransport({ command, args, env: process.env }))
console.log(JSON.stringify((await client.listTools()).tools.map(t => t.name).sort()))
const results = []
for (let i = 0; i < calls.length; i += 2) {
  results.push(client.callTool({ name: calls[i], arguments: JSON.parse(calls[i + 1]) }))
}
for (const result of results) {
  const { content, structuredContent, isError } = await result
  console.log(JSON.stringify({ text: content.map(c => c.text).join(''), structuredContent, isError }))
}
await client.close()
