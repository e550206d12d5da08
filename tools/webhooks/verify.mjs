// Verifies deliveries of webhooks with the official JavaScript library, as main.go does with that for Go.
import { readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';

const isValid = (d) => {
  try {
    new Webhook(d.secret).verify(d.body, { 'webhook-id': d.id, 'webhook-timestamp': d.timestamp, 'webhook-signature': d.signature });
    return true;
  } catch {
    return false;
  }
};

let refused = 0;
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  const d = JSON.parse(line);
  if (!isValid(d)) throw new Error('a delivery is refused');
  for (const member of ['id', 'timestamp', 'body']) {
    const bytes = Buffer.from(d[member]);
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes);
      changed[i] ^= 1;
      if (isValid({ ...d, [member]: changed.toString() })) throw new Error('a changed delivery is accepted');
      refused++;
    }
  }
}
if (refused === 0) throw new Error('no delivery was read');
console.log('JavaScript:', refused, 'changed deliveries refused');
