// An origin of HTTP/1.1 that takes WebSockets (RFC 6455), on the listener that it gets as its file
// descriptor 0: it sends back what comes. By path: /chat answers as it is to, /wrong with the accept
// of another key, /plain with content.
const crypto = require('node:crypto');
const http = require('node:http');

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const server = http.createServer((request, response) => response.end('none'));

server.on('upgrade', (request, socket, head) => {
  socket.on('error', () => {});
  const { headers, method, url } = request;
  const key = url === '/wrong' ? 'another' : headers['sec-websocket-key'];
  if (url === '/plain') {
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone`);
    return;
  }
  const accept = crypto.createHash('sha1').update(key + GUID).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`
    + `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${headers['sec-websocket-protocol']}\r\n`
    + `X-Asked: ${method} ${url} ${headers.host} ${headers['x-user']}\r\n\r\n`);
  socket.write(head);
  socket.pipe(socket);
});
server.listen({ fd: 0 });
