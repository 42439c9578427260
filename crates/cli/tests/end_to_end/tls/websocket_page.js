// An origin of HTTP/1.1 with a page that opens a WebSocket to it, on the listener that it gets as its
// file descriptor 0. The WebSocket sends back what comes, and asks no more of RFC 6455 than that: a
// frame has less than 126 bytes. The page is loaded once its picture is, which is answered when the
// WebSocket is closed.
const crypto = require('node:crypto');
const http = require('node:http');

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>page</title>
<p id="text">not yet</p>
<img src="/closed" alt="">
<script>
const text = document.getElementById("text");
const socket = new WebSocket("wss://" + location.host + "/chat", "chat");
const got = [];
socket.onerror = () => { text.textContent = "failed"; };
socket.onopen = () => { for (const word of ["one", "two", "three"]) socket.send(word); };
socket.onmessage = (event) => {
  got.push(event.data);
  if (got.length < 3) return;
  const [page] = performance.getEntriesByType("navigation");
  text.textContent = got.join(" ") + " by " + socket.protocol + ", page by " + page.nextHopProtocol;
  socket.close();
};
</script>
`;
const CLOSE = 8;
let closed = false;
const waiting = [];

function end() {
  closed = true;
  for (const response of waiting) response.writeHead(404).end();
  waiting.length = 0;
}

const server = http.createServer((request, response) => {
  response.setHeader('Cache-Control', 'no-store');
  if (request.url === '/page') {
    response.setHeader('Content-Type', 'text/html');
    response.end(PAGE);
  } else if (request.url === '/closed' && !closed) {
    waiting.push(response);
  } else {
    response.writeHead(404).end();
  }
});

server.on('upgrade', (request, socket) => {
  const { headers } = request;
  const accept = crypto.createHash('sha1').update(headers['sec-websocket-key'] + GUID).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`
    + `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n`);
  let bytes = Buffer.alloc(0);
  socket.on('data', (data) => {
    bytes = Buffer.concat([bytes, data]);
    for (;;) {
      const length = bytes.length < 2 ? Infinity : bytes[1] & 127;
      if (bytes.length < 6 + length) return;
      const mask = bytes.subarray(2, 6);
      const payload = bytes.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]);
      // by a server without a mask
      socket.write(Buffer.concat([Buffer.from([bytes[0], length]), payload]));
      if ((bytes[0] & 15) === CLOSE) socket.end();
      bytes = bytes.subarray(6 + length);
    }
  });
  socket.on('error', () => {});
  socket.on('close', end);
});
server.listen({ fd: 0 });
