// Uses a forward proxy by HTTP/2: a tunnel, a request beside it on the same connection, and a tunnel
// that is refused. Arguments: port of the proxy, file of its certificate, authority of the origin.
const [port, chain, origin] = process.argv.slice(1);
const fs = require('node:fs');
const http2 = require('node:http2');
const tls = require('node:tls');

const ca = fs.readFileSync(chain);
const createConnection = () => tls.connect({
  host: '127.0.0.1', port: Number(port), servername: 'proxy.test', ca, ALPNProtocols: ['h2'],
});
const session = http2.connect('https://proxy.test', { createConnection });

function answered(stream) {
  return new Promise((resolve, reject) => {
    stream.once('response', (fields) => resolve(fields[':status']));
    stream.once('error', reject);
  });
}

function bytesOf(stream) {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    stream.on('data', (data) => { bytes += data.length; });
    stream.once('end', () => resolve(bytes));
    stream.once('error', reject);
  });
}

async function run() {
  const tunnel = session.request({ ':method': 'CONNECT', ':authority': origin });
  console.log(`tunnel ${await answered(tunnel)}`);
  const get = session.request({ ':scheme': 'http', ':authority': origin, ':path': '/cached' });
  console.log(`beside ${await answered(get)} ${await bytesOf(get)} bytes`);
  tunnel.write('GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const bytes = await bytesOf(tunnel);
  tunnel.end();
  console.log(`through ${bytes > 10485760 && bytes < 10486760}`);
  const refused = session.request({ ':method': 'CONNECT', ':authority': '127.0.0.1:1' });
  console.log(`other ${await answered(refused)}`);
  const left = session.request({ ':method': 'CONNECT', ':authority': origin });
  await answered(left);
  left.close(http2.constants.NGHTTP2_CANCEL);
  session.close();
}

run().catch((error) => { console.error(error); process.exit(1); });
