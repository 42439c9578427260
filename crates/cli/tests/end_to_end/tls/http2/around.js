// An origin and a client of HTTP/2: interim responses, trailers both ways, awaited content, crumbs of
// cookies. Prints `ready` and the port of the origin, which speaks HTTP/2 in clear if the argument is
// `http2`; reads the port of the gateway.
const http = require('node:http');
const http2 = require('node:http2');

const byHttp2 = process.argv[1] === 'http2';
const origin = (byHttp2 ? http2 : http).createServer((request, response) => {
  if (request.method === 'POST') {
    let bytes = 0;
    request.on('data', (data) => { bytes += data.length; });
    request.on('end', () => {
      const { trailers, headers } = request;
      response.end(JSON.stringify({ bytes, trailers, cookie: headers.cookie }));
    });
    return;
  }
  response.writeEarlyHints({ link: '</a.css>; rel=preload' });
  response.writeHead(200, { Trailer: 'x-sum', 'Cache-Control': 'no-store' });
  response.write('hello');
  response.addTrailers({ 'x-sum': '5', 'content-length': '9' });
  response.end();
});

function received(session) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': '/', te: 'trailers' });
    const got = [];
    stream.on('headers', (fields) => got.push(fields[':status'], fields.link));
    stream.on('response', (fields) => got.push(fields[':status']));
    stream.on('data', (data) => got.push(data.toString()));
    stream.on('trailers', (fields) => got.push(JSON.stringify(fields)));
    stream.on('end', () => resolve(got.join(' ')));
    stream.on('error', reject);
  });
}

function sent(session) {
  return new Promise((resolve, reject) => {
    const fields = {
      ':method': 'POST', ':path': '/', expect: '100-continue', cookie: ['a=1', 'b=2'],
    };
    const stream = session.request(fields, { waitForTrailers: true });
    stream.on('continue', () => stream.end(Buffer.alloc(300000)));
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-t': '1', 'content-length': '3' }));
    const got = [];
    stream.on('data', (data) => got.push(data.toString()));
    stream.on('end', () => resolve(got.join('')));
    stream.on('error', reject);
  });
}

async function run(port) {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  console.log(await received(session));
  console.log(await sent(session));
  session.close();
  // the gateway keeps its connection
  if (byHttp2) process.exit(0);
  origin.close();
}

origin.listen(0, '127.0.0.1', () => console.log(`ready ${origin.address().port}`));
process.stdin.once('data', (data) => {
  process.stdin.destroy();
  run(Number(data)).catch((error) => { console.error(error); process.exit(1); });
});
