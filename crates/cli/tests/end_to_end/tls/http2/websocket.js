// Opens WebSockets on streams of one connection (RFC 8441), and says what comes of each. Argument:
// port of the proxy.
const http2 = require('node:http2');

const session = http2.connect(`http://127.0.0.1:${process.argv[1]}`);

function open(path, protocol, more = {}) {
  return session.request({
    ':method': 'CONNECT',
    ':protocol': protocol,
    ':scheme': 'http',
    ':authority': 'a.test',
    ':path': path,
    'sec-websocket-version': '13',
    'sec-websocket-protocol': 'chat',
    'x-user': path,
    ...more,
  });
}

function answered(stream) {
  return new Promise((resolve) => {
    stream.once('response', (fields) => resolve(fields));
    stream.once('error', (error) => resolve({ ':status': error.code }));
  });
}

// What is sent comes back, each byte, in pieces of all sizes.
async function echo(stream, seed) {
  const sent = Buffer.alloc(300_000);
  for (let at = 0; at < sent.length; at += 1) sent[at] = (at * seed + (at >> 8)) & 255;
  let from = 0;
  for (let size = 1; from < sent.length; size = size * 2 + 1) {
    stream.write(sent.subarray(from, from + size));
    from += size;
  }
  const got = [];
  let bytes = 0;
  for await (const data of stream) {
    got.push(data);
    bytes += data.length;
    if (bytes === sent.length) stream.end();
  }
  return Buffer.concat(got).equals(sent);
}

async function run() {
  const settings = await new Promise((resolve) => session.once('remoteSettings', resolve));
  console.log(`offered ${settings.enableConnectProtocol}`);
  const streams = [3, 7].map((seed) => {
    const stream = open('/chat', 'websocket');
    return [seed, stream, answered(stream)];
  });
  for (const [seed, stream, answer] of streams) {
    const fields = await answer;
    const of = ['x-asked', 'sec-websocket-protocol', 'sec-websocket-accept', 'upgrade'];
    console.log(`${fields[':status']} ${of.map((name) => fields[name]).join(', ')}`);
    console.log(`echo ${await echo(stream, seed)}`);
  }
  for (const path of ['/wrong', '/plain', '/denied']) {
    const stream = open(path, 'websocket');
    stream.resume();
    console.log(`${path} ${(await answered(stream))[':status']}`);
  }
  const other = open('/chat', 'connect-udp');
  other.resume();
  console.log(`other ${(await answered(other))[':status']}`);
  const length = open('/chat', 'websocket', { 'content-length': '5' });
  length.resume();
  console.log(`length ${(await answered(length))[':status']}`);
  const get = session.request({ ':path': '/', ':authority': 'a.test' });
  get.resume();
  console.log(`get ${(await answered(get))[':status']}`);
  session.close();
}

run().catch((error) => { console.error(error); process.exit(1); });
