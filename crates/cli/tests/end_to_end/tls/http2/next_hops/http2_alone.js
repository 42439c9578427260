// A server that speaks HTTP/2 over TLS and nothing else: it refuses handshakes without it. Prints
// its port. Arguments: files of its chain and key.
const fs = require('node:fs');
const http2 = require('node:http2');

const [chain, key] = process.argv.slice(1).map((name) => fs.readFileSync(name));
const server = http2.createSecureServer({ cert: chain, key, allowHTTP1: false });
server.on('stream', (stream) => {
  stream.respond({ ':status': 200, 'cache-control': 'no-store' });
  stream.end('by HTTP/2');
});
server.on('unknownProtocol', (socket) => socket.destroy());
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
// it ends with the test
process.stdin.on('end', () => process.exit(0)).resume();
