// Requests a large response and does not read it; requests 50 others on the same connection; then
// reads the large one. Arguments: port, file of the certificate.
const [port, chain] = process.argv.slice(1);
const fs = require('node:fs');
const http2 = require('node:http2');
const tls = require('node:tls');

const ca = fs.readFileSync(chain);
const createConnection = () => tls.connect({
  host: '127.0.0.1', port: Number(port), servername: 'a.test', ca, ALPNProtocols: ['h2'],
});
const session = http2.connect('https://a.test', { createConnection });

function get(path) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path });
    let bytes = 0;
    stream.on('data', (data) => { bytes += data.length; });
    stream.on('end', () => resolve(bytes));
    stream.on('error', reject);
  });
}

async function run() {
  const large = session.request({ ':path': '/large' });
  await new Promise((resolve) => large.once('response', resolve));
  const others = await Promise.all(Array.from({ length: 50 }, () => get('/cached')));
  console.log(`${others.filter((bytes) => bytes === 32).length} others`);
  let bytes = 0;
  for await (const data of large) bytes += data.length;
  console.log(`${bytes} bytes`);
  session.close();
}

run().catch((error) => { console.error(error); process.exit(1); });
