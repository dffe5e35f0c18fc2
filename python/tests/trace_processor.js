// Perfetto's trace processor, as its web page runs it, behind a Unix socket:
//
//     node trace_processor.js DIRECTORY TRACE SOCKET
//
// DIRECTORY has engine_bundle.js and the WebAssembly that belongs to it. The bundle is a web worker
// that answers the trace processor's remote procedure calls; here it finds what it needs of one.

"use strict";

const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");

const [directory, trace, socket] = process.argv.slice(2);

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
globalThis.location = { href: "file:///engine_bundle.js" };
globalThis.XMLHttpRequest = class {
  open(_, name) {
    this.name = path.basename(name);
  }
  send() {
    this.response = fs.readFileSync(path.join(directory, this.name));
  }
};
// Emscripten takes a process for Node's and would not look like a worker.
const { stdout, exit } = process;
globalThis.process = undefined;
(0, eval)(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"));

let client;
const port = { postMessage: (bytes) => client?.write(bytes) };
globalThis.onmessage({ data: port });

/** A protobuf field of bytes. */
function field(number, bytes) {
  const head = [];
  for (let rest of [(number << 3) | 2, bytes.length]) {
    for (; rest > 127; rest >>>= 7) head.push((rest & 127) | 128);
    head.push(rest);
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** A `TraceProcessorRpcStream` with one `TraceProcessorRpc`: its `request`, and more fields. */
function call(request, ...more) {
  return field(1, Buffer.concat([Buffer.from([0x10, request]), ...more]));
}

const APPEND_TRACE_DATA = 1;
const FINALIZE_TRACE_DATA = 2;
const ask = (bytes) => port.onmessage({ data: new Uint8Array(bytes) });
// It is ready when what it waits for has been settled.
setTimeout(() => {
  ask(call(APPEND_TRACE_DATA, field(101, fs.readFileSync(trace))));
  ask(call(FINALIZE_TRACE_DATA));
  const server = net.createServer((connection) => {
    client = connection;
    connection.on("data", ask);
    connection.on("close", () => exit(0));
  });
  server.listen(socket, () => stdout.write("ready\n"));
});
